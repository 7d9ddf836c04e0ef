"""What every stage of many fits works with: the problems, their data, and how many are taken at a time."""

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.execute import Programs, bytes_of_a_point
from quenched.families import Family, Member
from quenched.fitting.many.lanes import Done, Work, drive
from quenched.fitting.many.rows import Widths, put, repeated, rows, take
from quenched.fitting.progress import Watcher
from quenched.problem import Problem

_POINTS_AT_A_TIME = (16, 64)  # of one problem: the fewest, the most
_CACHED = 2**25  # bytes of intermediates beyond which more points at a time are slower
_VECTORS = 50  # as long as the posterior has numbers
_HEAVY = 2**20  # bytes at a time that make a problem a heavy one
_NARROW, _WIDEST = 32, 128  # lanes
_MEMORY = 2**28  # bytes for evaluating the target, unless told otherwise


class Scene:
    """Many problems of one shape.

    Attributes
    ----------
    problem
        One of them, which stands for all.
    data
        Of all, along the first axis.
    points
        Where each starts, on the real line.
    """

    def __init__(self, everything: Problem, family: Family, points: np.ndarray, seed: int, watch: Watcher):
        self.data, self.family, self.points, self.seed, self.watch = everything.data, family, points, seed, watch
        self.problem = dataclasses.replace(everything, data=jax.tree.map(lambda leaf: leaf[0], everything.data))
        self.sizes, self.n = everything.space.sizes, len(points)
        self.hyper = repeated(everything.hyper, self.n)
        self.interrupted = False

    @property
    def programs(self) -> Programs:
        assert self.problem.programs is not None  # functions on the host are fitted one by one
        return self.problem.programs

    @cached_property
    def widths(self) -> Widths:
        """Problems at a time: as many as memory allows; and where each is quick, not so few that compiling costs more."""
        problem, coupled = self.problem, self.family.coupled_coordinates(self.sizes)
        each = _POINTS_AT_A_TIME[0] * self._point + 8 * _VECTORS * problem.dim * (coupled + 3) // 2
        most = min(_WIDEST, max(1, int((problem.memory or _MEMORY) // each)))
        return Widths(1 if each > _HEAVY else min(_NARROW, self.n), most)

    @cached_property
    def points_at_a_time(self) -> int:
        """Draws of each problem that are evaluated together."""
        fewest, most = _POINTS_AT_A_TIME
        return int(np.clip(_CACHED // (self.widths.most * self._point), fewest, most))

    @cached_property
    def _point(self) -> int:
        problem = self.problem
        return bytes_of_a_point(self.programs, problem.dim, problem.data, problem.hyper.free)

    def isotropic(self, index: np.ndarray, scale: float) -> Member:
        """Posteriors at the starts of these problems, with one standard deviation for all."""
        spread = np.full(self.problem.dim, scale)
        at_zero = repeated(self.family.isotropic(np.zeros(self.problem.dim), spread, self.sizes), len(index))
        moved = jax.vmap(lambda member, shift: member.shifted(shift))(at_zero, self.points[index])
        return jax.tree.map(np.array, moved)  # copies, which may be overwritten

    def apply(self, index: np.ndarray, program: Callable, *inputs: Any) -> Any:
        """program(*inputs, data) for rows of inputs that go with the problems in `index`; answers with NumPy rows."""
        results: Any = None
        first = 0
        while first < len(index):
            width = self.widths.fit(len(index) - first)
            places = np.minimum(np.arange(first, first + width), len(index) - 1)  # the last group is filled up
            found = jax.tree.map(
                np.asarray, program(*rows(inputs, places), take(self.data, jnp.asarray(index[places])))
            )
            if results is None:
                results = jax.tree.map(lambda leaf: np.zeros((len(index), *leaf.shape[1:]), leaf.dtype), found)
            put(results, places, found)
            first += width
        return results

    def drive(self, work: Work, index: np.ndarray, inputs: Any, doing: str) -> Done:
        """Carry problems through their work in lanes, until time is up."""

        def stop(n_ended: int) -> bool:
            self.watch.say(f"{doing}: {n_ended} of {len(index)} problems")
            return self.stopped

        return drive(work, index, inputs, self.data, self.widths, stop)

    @property
    def stopped(self) -> bool:
        return self.interrupted or self.watch.expired
