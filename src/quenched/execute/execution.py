"""Where a function is evaluated, and how many points at a time: handed to a fit, and asked by both of its drivers."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from quenched.arrays import Array
from quenched.execute.executor import Executor
from quenched.execute.host import Host
from quenched.execute.traced import Programs, Traced, bytes_of_a_point, points_that_fit

SMALL_CHUNK = 32  # points per call while there are few draws: one compiled shape serves every number of them


@dataclass(frozen=True, eq=False)
class Work:
    """One function f(vector, data, free) to be evaluated: as compiled programs, or on the host."""

    programs: Programs | None  # None for a function that JAX cannot trace
    on_host: Callable | None  # value_and_gradient(vector, data); None for one that it can
    dim: int
    data: Any
    free: Array

    @cached_property
    def bytes_of_a_point(self) -> int:
        """Memory that value and gradient at one point need, at the most."""
        assert self.programs is not None  # what a function on the host needs nobody knows
        return bytes_of_a_point(self.programs, self.dim, self.data, self.free)


class Execution(ABC):
    """Makes the executor for a piece of work and a number of draws."""

    memory: float | None  # bytes for evaluating the function; None for no limit

    @abstractmethod
    def executor(self, work: Work, n_draws: int) -> Executor:
        """The executor for this many draws; its chunk does not change while draws double a few times."""


@dataclass(frozen=True)
class Here(Execution):
    """In this process, on this device.

    Parameters
    ----------
    memory
        Bytes for evaluating the function; None for no limit.
    """

    memory: float | None = None

    def executor(self, work, n_draws):
        few = n_draws <= 16 * SMALL_CHUNK and work.dim <= 2 * SMALL_CHUNK
        chunk = SMALL_CHUNK if few and 2 * n_draws >= SMALL_CHUNK else n_draws  # half full at least
        if work.programs is None:
            assert work.on_host is not None
            return Host(work.on_host, chunk)
        return Traced(work.programs, chunk, self._most_points(work))

    def _most_points(self, work: Work) -> int:
        return sys.maxsize if self.memory is None else points_that_fit(work.bytes_of_a_point, self.memory)
