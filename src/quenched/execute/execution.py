"""Where a function is evaluated, and how many points at a time: handed to a fit, and asked by both of its drivers."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np

from quenched.arrays import Array
from quenched.compiling import points_together
from quenched.execute.differences import ValuesOnly
from quenched.execute.effort import Effort, effort
from quenched.execute.executor import Executor
from quenched.execute.host import Calls, Host, HostFunction, InTurn
from quenched.execute.pool import Pool
from quenched.execute.traced import Programs, Traced, bytes_of_a_point, points_that_fit

SMALL_CHUNK = 32  # points per call while there are few draws: one compiled shape serves every number of them


_FEW = 16 * SMALL_CHUNK
_FEW_VALUES, _MANY_VALUES = 64, 640  # the many are as many as check draws come at a time
_BYTES_AT_A_TIME = 2**28  # by what value and gradient need at the most: values alone need a small part of that


def large_chunk(n_draws: int, dim: int) -> int:
    """Points per call where there are many draws, or large ones: the same when they have doubled, and doubled again."""
    while n_draws % 4 == 0 and n_draws // 2 >= max(_FEW, 4 * dim):  # even, as pairs are
        n_draws //= 2
    return n_draws


def values_chunk(bytes_of_a_point: int) -> int:
    """Points whose values are taken at a time: many where each is worth the while of several cores, and yet not too large.

    Where they are quick, few: points that only fill up a chunk cost as much as others.
    """
    many = effort(bytes_of_a_point) is not Effort.LITTLE and bytes_of_a_point * _MANY_VALUES <= _BYTES_AT_A_TIME
    return _MANY_VALUES if many else _FEW_VALUES


@dataclass(frozen=True, eq=False)
class Work:
    """One function f(vector, data, free) to be evaluated: as compiled programs, or on the host."""

    programs: Programs | None  # None for a function that JAX cannot trace
    on_host: HostFunction | None  # None for one that it can
    dim: int
    data: Any
    free: Array

    @cached_property
    def bytes_of_a_point(self) -> int:
        """Memory that value and gradient at one point need, at the most."""
        assert self.programs is not None  # what a function on the host needs nobody knows
        return bytes_of_a_point(self.programs, self.dim, self.data, self.free)

    @cached_property
    def points_together(self) -> int:
        """How many gradients LAPACK may be called for at a time; very many where it is not called."""
        assert self.programs is not None
        return points_together(self.programs.gradient_of_one, np.zeros(self.dim), self.data, self.free)


class Execution(ABC):
    """Makes the executor for a piece of work and a number of draws."""

    memory: float | None  # bytes for evaluating the function; None for no limit

    @abstractmethod
    def executor(self, work: Work, n_draws: int) -> Executor:
        """The executor for this many draws; its chunk does not change while draws double a few times."""

    def promoted(self, data: Any, promote: Callable[[Any], Any]) -> Any:
        """The data as the function is handed them."""
        return self.placed(jax.tree.map(promote, data))

    def placed(self, data: Any) -> Any:
        """The data, where they are wanted."""
        return data

    def describe(self) -> dict[str, Any]:
        """What the settings of a fit remember of it."""
        return {}


@dataclass(frozen=True)
class Here(Execution):
    """In this process, on this device.

    Parameters
    ----------
    memory
        Bytes for evaluating the function; None for no limit.
    """

    memory: float | None = None
    calls: Calls = field(default_factory=InTurn, compare=False)

    def executor(self, work, n_draws):
        if work.on_host is not None:
            return on_host(work.on_host, n_draws, self.calls)
        few = n_draws <= _FEW and work.dim <= 2 * SMALL_CHUNK
        # Half full at least.
        chunk = SMALL_CHUNK if few and 2 * n_draws >= SMALL_CHUNK else large_chunk(n_draws, work.dim)
        assert work.programs is not None
        one = work.bytes_of_a_point
        return Traced(work.programs, chunk, self._most_points(work), effort(one), values_chunk(one))

    def describe(self):
        return {"calls": self.calls.count} if self.calls.count else {}

    def _most_points(self, work: Work) -> int:
        return sys.maxsize if self.memory is None else points_that_fit(work.bytes_of_a_point, self.memory)


@dataclass(frozen=True)
class Elsewhere(Execution):
    """Calls of a function on the host, on an executor of `concurrent.futures`; the sums are taken here, as ever."""

    pool: Pool
    memory: float | None = None

    def executor(self, work, n_draws):
        assert work.on_host is not None  # or it would be traced, and nothing is sent
        return on_host(work.on_host, n_draws, self.pool)

    def describe(self):
        pool = self.pool
        return {
            "executor": type(pool.executor).__name__,
            "workers": pool.workers,
            "calls": pool.count,
            "lost": pool.lost,
        }


def on_host(function: HostFunction, n_draws: int, calls: Calls) -> Host:
    """All draws in one chunk: so calls can be done side by side, and sums are the same wherever they are done."""
    return (Host if function.gives_gradient else ValuesOnly)(function, n_draws, calls)
