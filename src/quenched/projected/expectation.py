"""The expected log density of the rows of a term under Gaussians of their own, on frozen points.

E g(v) for v ~ N(μ, C) is Σ_s w_s g(μ + chol(C) z_s). Its slope in μ and C says all that a fit needs of the rows: at the best
Gaussian the precision is −2 Σ Aᵀ (∂E/∂C) A, on these points exactly and not only in expectation.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from quenched.draws import Points
from quenched.execute import Wait
from quenched.interrupts import obey_interrupts
from quenched.objective import Problem
from quenched.projected.programs import programs_of
from quenched.projected.reduction import Reduction
from quenched.targets import LocalTerm

_AT_A_TIME = 2**18  # points of rows: what stays near the processor, and bounds the memory


class Slopes(NamedTuple):
    """Of the rows of a term: their sum, and its slopes."""

    value: float
    means: np.ndarray  # (n, size)
    curvature: np.ndarray  # −2 ∂/∂C, (n, size, size)
    free: np.ndarray
    powers: np.ndarray | None = None  # as they were given


class Expectation:
    """One term on some points. Sets of them take turns with its rows in an `order`, with -1 for no row; None: as they stand."""

    def __init__(
        self, term: LocalTerm, reduction: Reduction, points: Points, problem: Problem, order: np.ndarray | None = None
    ):
        self.term, self.reduction, self.points, self.given = term, reduction, points, problem.data[1]
        self.order = np.arange(term.n) if order is None else order
        self.rows = np.flatnonzero(self.order >= 0)  # turns in which there is a row
        n_sets, n_draws, size = points.z.shape
        chunk = max(_AT_A_TIME // n_draws, 1)
        self.chunk = -(-min(chunk, len(self.order)) // n_sets) * n_sets
        self.lower = np.tril_indices(size)
        self.programs = programs_of(term, problem)
        self.asks_hyper = term.term is not None and "hyper" in term.term.asks
        self.wait = Wait("the expected log densities of some rows")

    @property
    def n_points(self) -> int:
        """Points of each row."""
        return self.points.z.shape[1]

    def slopes(
        self,
        means: np.ndarray,
        covariances: np.ndarray,
        free: np.ndarray,
        powers: np.ndarray | None = None,
    ) -> Slopes:
        """At Gaussians of what the rows see, of which the numbers that stand alone are stretched by powers (n, numbers)."""
        total, of_free, by_mean, by_covariance, by_power = 0.0, np.zeros_like(free), [], [], []
        for inputs, left in self._chunks(means, covariances, free, powers):
            value, slopes = self.wait(self.programs.slopes(*inputs))
            total += float(value)
            by_mean.append(np.asarray(slopes[0])[:left])
            by_covariance.append(np.asarray(slopes[1])[:left])
            of_free = of_free + np.asarray(slopes[2])
            if powers is not None:
                by_power.append(np.asarray(slopes[3])[:left])
        of_powers = self._as_they_stand(by_power) if by_power else None
        return Slopes(total, *self._back(*map(self._as_they_stand, (by_mean, by_covariance))), of_free, of_powers)

    def _chunks(
        self, means: np.ndarray, covariances: np.ndarray, free: np.ndarray, powers: np.ndarray | None
    ) -> Iterator[tuple[tuple, int]]:
        """Inputs of a program, rows by rows; the last rows are filled up with some that do not count."""
        n = len(self.order)
        means, covariances = self.reduction.project(means, covariances)
        packed = covariances[:, *self.lower]
        for first in range(0, n, self.chunk):
            obey_interrupts()
            rows = self.order[np.minimum(np.arange(first, first + self.chunk), n - 1)]
            counts = ((np.arange(first, first + self.chunk) < n) & (rows >= 0)).astype(float)
            held, power = jax.tree.map(lambda array: array[rows], (self.term.held, powers))  # noqa: B023
            fixed = (*self.points, self.reduction.back, self.given, free)
            yield (means[rows], packed[rows], counts, held, *fixed, power), min(self.chunk, n - first)

    def _as_they_stand(self, parts: list[np.ndarray]) -> np.ndarray:
        """What was found of the rows, in the order in which they stand."""
        turns = np.concatenate(parts)
        found = np.empty((self.term.n, *turns.shape[1:]))
        found[self.order[self.rows]] = turns[self.rows]
        return found

    def _back(self, means: np.ndarray, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size = means.shape[1]
        curvature = np.empty((len(means), size, size))
        i, j = self.lower
        # An entry off the diagonal stands for two.
        entries = packed * np.where(i == j, -2.0, -1.0)
        curvature[:, i, j] = entries
        curvature[:, j, i] = entries
        return self.reduction.spread(means, curvature)
