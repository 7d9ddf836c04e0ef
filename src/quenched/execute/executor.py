"""How a target's function is evaluated at many points.

Every executor answers the same three questions: values and gradients at a chunk of points, values alone, and the
second-order expansion at one point. Who asks does not know whether JAX, NumPy or another process does the work.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.arrays import Array
from quenched.execute.effort import Effort


class Evaluation(NamedTuple):
    """The function at a chunk of points."""

    values: Array  # (chunk,)
    gradients: Array  # (chunk, dim), on the real line
    free_gradient: Array  # summed over the points that count


class Executor(ABC):
    """Evaluates f(vector, data, free) for vectors on the real line."""

    chunk: int  # points per call: the one shape that is ever compiled
    values_chunk: int = 64  # points whose values alone are taken at a time
    effort: Effort = Effort.ALL  # of the compiler, for programs of which `traced` is a part
    most: int = sys.maxsize  # points that memory holds at a time
    traced: Callable[..., Evaluation] | None = None  # `evaluate` as a function that JAX can trace, if it is one
    traced_values: Callable[..., Array] | None = None  # likewise, `values`
    mirrors: bool = True  # whether half of mirrored draws may stand for the other half
    shards: int = 1  # that a chunk is divided into
    here: bool = True  # what is `put` goes to the device of this process, and may be shared with other executors

    def put(self, chunks: Array, *, once: bool = False) -> Array:
        """Draws in chunks, or what goes with them, on the device; what is looked at `once` goes there with the call."""
        return chunks if once else jax.device_put(chunks)

    def run(self, program: Callable[[], Any], *kind: Any) -> Any:
        """What a program with `traced` inside answers; `kind` tells programs apart that are compiled for themselves."""
        return program()

    @abstractmethod
    def evaluate(self, points: Array, counts: Array, data: Any, free: Array) -> Evaluation:
        """Values and gradients at exactly `chunk` points; `counts` is zero for points that only fill up."""

    @abstractmethod
    def values(self, points: Array, data: Any, free: Array) -> Array:
        """Values at exactly `chunk` points."""

    value_cost: int = 0  # gradient evaluations that a value alone is worth

    @abstractmethod
    def second_order(
        self, point: np.ndarray, spread: np.ndarray, data: Any, free: Array
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, gradient and Hessian at one point; `spread` is a guess at the scale of each coordinate."""

    @abstractmethod
    def second_order_cost(self, dim: int) -> int:
        """Gradient evaluations that `second_order` is worth."""
