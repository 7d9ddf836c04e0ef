"""Keep NumPy's BLAS out of the way of JAX's threads."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finds the libraries once: that takes milliseconds


class _Quiet:
    """The setting belongs to the process: the first of several threads changes it, and the last one puts it back."""

    def __init__(self):
        self.lock, self.inside, self.limiter = Lock(), 0, None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            self.inside += 1
            if self.inside == 1:
                limiter: Any = _controller().limit(limits=1, user_api="blas")
                self.limiter = limiter
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1
                if not self.inside and self.limiter is not None:
                    self.limiter.restore_original_limits()
                    self.limiter = None


_quiet = _Quiet()


def quiet_blas(on_host: bool) -> AbstractContextManager:
    """One BLAS thread in this scope, unless the target itself is NumPy code.

    The matrices on the host are small, and the target runs on JAX's own threads. BLAS threads that spin for work beside
    them made a factorisation of a 100 x 100 matrix a hundred times slower on two busy cores.
    """
    return nullcontext() if on_host else _quiet()
