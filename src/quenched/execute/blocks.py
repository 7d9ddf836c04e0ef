"""Rows a block at a time, so that they may be more than memory holds.

A sum over rows is the sum over blocks of them, less what all blocks have in common (the log-Jacobian, priors): the function of
no rows at all. So the same programs serve, and values, gradients and second derivatives are simply added.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from quenched.execute.effort import effort
from quenched.execute.execution import Execution, Work
from quenched.execute.executor import Evaluation, Executor
from quenched.execute.traced import Traced, bytes_of_a_point
from quenched.interrupts import obey_interrupts

_NUMBERS = 2**22  # points times rows at a time
_FEWEST, _MOST = 2**10, 2**17  # rows


@dataclass(frozen=True, eq=False)
class InBlocks(Execution):
    """In this process, some rows after the others.

    Attributes
    ----------
    n
        Rows, of the longest kind of term.
    between
        between(data, first, last) -> the data of those rows alone.
    """

    n: int
    between: Callable[[Any, int, int], Any]
    memory: float | None = None

    def executor(self, work: Work, n_draws: int) -> "BlockExecutor":
        return BlockExecutor(self, work, n_draws)

    def promoted(self, data: Any, promote: Callable[[Any], Any]) -> Any:
        """They stay where they are until they are read."""
        return data

    def describe(self) -> dict[str, Any]:
        return {"rows": "in blocks"}


class BlockExecutor(Executor):
    """Adds a traced function up over blocks of rows."""

    def __init__(self, execution: InBlocks, work: Work, n_draws: int):
        assert work.programs is not None
        self.execution, self.chunk = execution, n_draws
        numbers = _NUMBERS if execution.memory is None else execution.memory / 64
        self.rows = int(np.clip(numbers / n_draws, _FEWEST, _MOST))
        nothing = self._block(work.data, 0, 0)
        own = effort(bytes_of_a_point(work.programs, work.dim, self._block(work.data, 0, self.rows), work.free))
        self.traced_blocks, self.nothing = Traced(work.programs, n_draws, n_draws, own), nothing

    def evaluate(self, points, counts, data, free):
        return Evaluation(*self._sum(data, lambda block: self.traced_blocks.evaluate(points, counts, block, free)))

    def values(self, points, data, free):
        return self._sum(data, lambda block: self.traced_blocks.values(points, block, free))

    def second_order(self, point, spread, data, free):
        value, gradient, hessian = self._sum(
            data, lambda block: self.traced_blocks.second_order(point, spread, block, free)
        )
        return float(value), gradient, hessian

    def second_order_cost(self, dim):
        return self.traced_blocks.second_order_cost(dim)

    def _sum(self, data: Any, function: Callable[[Any], Any]) -> Any:
        count, total = 0, None
        for block in self._blocks(data):
            obey_interrupts()
            found = jax.tree.map(np.asarray, function(block))
            total = found if total is None else jax.tree.map(np.add, total, found)
            count += 1
        if count > 1:
            common = function(self.nothing)
            total = jax.tree.map(lambda whole, part: whole - (count - 1) * np.asarray(part), total, common)
        return total

    def _blocks(self, data: Any) -> Iterator[Any]:
        for first in range(0, self.execution.n, self.rows):
            yield self._block(data, first, first + self.rows)

    def _block(self, data: Any, first: int, last: int) -> Any:
        """In double precision."""
        real = lambda leaf: np.asarray(leaf, np.float64 if np.asarray(leaf).dtype.kind == "f" else None)
        return jax.tree.map(real, self.execution.between(data, first, last))
