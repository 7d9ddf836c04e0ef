"""Keep NumPy's BLAS out of the way of JAX's threads."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finds the libraries once: that takes milliseconds


def quiet_blas(on_host: bool) -> AbstractContextManager:
    """One BLAS thread in this scope, unless the target itself is NumPy code.

    The matrices on the host are small, and the target runs on JAX's own threads. BLAS threads that spin for work beside
    them made a factorisation of a 100 x 100 matrix a hundred times slower on two busy cores.
    """
    return nullcontext() if on_host else _controller().limit(limits=1, user_api="blas")
