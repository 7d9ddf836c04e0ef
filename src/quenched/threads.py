"""Cores there are, and how the BLAS of NumPy and SciPy is kept out of the way of JAX's threads."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def cores() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _controller(with_scipy: bool) -> ThreadpoolController:
    return ThreadpoolController()  # finds the libraries once: that takes milliseconds


class _Quiet:
    """The setting belongs to the process: the first of several threads changes it, and the last one puts it back."""

    def __init__(self):
        self.lock, self.inside, self.limiters = Lock(), 0, {}

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            self.inside += 1
            self._limit()
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1
                while not self.inside and self.limiters:
                    self.limiters.popitem()[1].restore_original_limits()  # the last one first

    def look_again(self) -> None:
        """A library may have come since the scope was entered."""
        with self.lock:
            if self.inside:
                self._limit()

    def _limit(self) -> None:
        with_scipy = "scipy.linalg" in sys.modules  # which brings a BLAS of its own, perhaps in the middle of a fit
        if with_scipy not in self.limiters:
            limiter: Any = _controller(with_scipy).limit(limits=1, user_api="blas")
            self.limiters[with_scipy] = limiter


_quiet = _Quiet()


def quiet_blas(on_host: bool) -> AbstractContextManager:
    """One BLAS thread in this scope, unless the target itself is NumPy code.

    The matrices on the host are small, and the target runs on JAX's own threads. BLAS threads that spin for work beside
    them made a factorisation of a 100 x 100 matrix a hundred times slower on two busy cores.
    """
    return nullcontext() if on_host else _quiet()


def bring_lapack() -> None:
    """Load SciPy's LAPACK, which the programs of JAX call, before one of them does: in a scope of `quiet_blas`, with one thread.

    JAX loads it when it compiles the first such program, and so in the middle of a fit, whose scope began without it.
    """
    import scipy.linalg  # noqa: F401

    _quiet.look_again()


def in_one_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The same function, with one thread for SciPy's LAPACK: the same bits within a fit and after it."""

    @wraps(function)
    def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        import scipy.linalg  # noqa: F401  # before the scope, which covers what is there when it begins

        with _quiet():
            return function(*arguments, **options)

    return call
