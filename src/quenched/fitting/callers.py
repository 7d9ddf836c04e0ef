"""Threads that call programs, so that several cores work.

JAX runs the programs that one thread has called one after the other, however many cores there are. What is called here in
turn by one thread after the other runs side by side.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

from quenched.precision import in_double

_MOST = 4


class Callers:
    """Some threads, which end when nobody holds them any more."""

    def __init__(self, n: int):
        self.n = n
        self._threads = [ThreadPoolExecutor(1) for _ in range(n)]
        # What JAX is set to in a scope holds for the thread that has entered it.
        self._device = jax.config.jax_default_device  # pyright: ignore

    def __call__(self, place: int, program: Callable, *inputs: Any) -> Any:
        """The program's result, which may not be there yet, called by the thread of a place."""
        if self.n == 1:
            return program(*inputs)
        return self._threads[place % self.n].submit(self._call, program, inputs).result()

    def _call(self, program: Callable, inputs: tuple) -> Any:
        with in_double(), jax.default_device(self._device):
            return program(*inputs)


def one_for_each_core() -> Callers:
    """As many as there are cores, up to a few."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Callers(min(cores, _MOST))
