"""Threads that call programs, so that several cores work.

JAX runs the programs that one thread has called one after the other, however many cores there are. What is called here in
turn by one thread after the other runs side by side.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from quenched.precision import in_double
from quenched.threads import cores

_MOST = 4


class Callers:
    """Some threads, which end when nobody holds them any more."""

    def __init__(self, n: int):
        self.n = n
        self._threads = [ThreadPoolExecutor(1) for _ in range(n)]
        # What JAX is set to in a scope holds for the thread that has entered it.
        self._device = jax.config.jax_default_device  # pyright: ignore

    def __call__(self, place: int, program: Callable, *inputs: Any) -> Future:
        """Have a program called by the thread of a place. It may still run when it has been called."""
        return self._threads[place % self.n].submit(self._call, program, inputs)

    def _call(self, program: Callable, inputs: tuple) -> Any:
        with in_double(), jax.default_device(self._device):
            return program(*inputs)


def enough_callers() -> Callers:
    """One for each core, up to a few, and one more: a program can begin while what another has found is looked at."""
    return Callers(min(cores(), _MOST) + 1)
