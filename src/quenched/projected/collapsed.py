"""Importance weights where there are too many parameters to be weighed at once: groups are integrated over.

Log p − log q of ten thousand groups is a sum of ten thousand small numbers, and its weights are hopelessly uneven although each
group is all but right. But given the few parameters that all groups share, the outer ones, groups are independent: for an outer
draw g the target integrates to p(g) = p₀(g) Π_c ∫ p(u_c | g) du_c, each integral by frozen points of the Gaussian q(u_c | g). So
the outer parameters are weighed by log p(g) − log q(g), and each group by what its own integral says of its moments.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy

from quenched.arrays import Array
from quenched.compiling import program
from quenched.draws import Points, Purpose, TermDraws, check_draws, generator, stream
from quenched.families import LOG_TWO_PI, Pattern, SparseGaussian
from quenched.interrupts import obey_interrupts
from quenched.objective import Problem
from quenched.precision import in_double
from quenched.projected.bound import Structure, structure_of
from quenched.projected.pieces import Looked
from quenched.projected.programs import programs_of
from quenched.projected.seeing import Sight
from quenched.targets import Hyper
from quenched.trust import Weights, weigh_ratios

_MOST_OUTER = 64  # parameters that groups may share
_FEW = 0.25  # of all coordinates: what is left to be weighed when hardly fewer are outer tells no more than all at once
_MOST_INSIDE = 8  # of a group
_POINTS = (16, 32)  # of each group: of one number, and of several
_DRAWS = (128, 512)  # of the outer parameters, the fewest and the most
_MOST_VALUES = 2e8  # log densities of rows, beyond which the fewest draws are taken
_TOO_MANY = 1e9  # it would take longer than the fit
_AT_A_TIME = 2**18  # points of rows


class Collapsed(NamedTuple):
    """What is left to weigh when groups are integrated over.

    Attributes
    ----------
    log_ratios
        log p(g) − log q(g) at draws of the outer parameters.
    shift, ratio
        Of every coordinate of the real line: how far the weights move its mean, in standard deviations, and its standard
        deviation, relative to itself.
    shift_error, ratio_error
        Their standard errors.
    n_outer
        How many are outer.
    """

    log_ratios: np.ndarray
    shift: np.ndarray
    ratio: np.ndarray
    shift_error: np.ndarray
    ratio_error: np.ndarray
    n_outer: int

    @property
    def remark(self) -> str:
        """What a person should know of it."""
        return (
            f"Weights of all {len(self.shift):,} numbers at once are uneven and tell little: k-hat and evidence are those of "
            f"the {self.n_outer} that the others share, the others integrated over."
        )


@dataclass(frozen=True, eq=False)
class _Split:
    """Outer coordinates, and of all others the group; outer ones have group -1."""

    outer: np.ndarray
    label: np.ndarray
    n_groups: int

    def members(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Groups of the same size, (groups,), and their coordinates, (groups, size)."""
        inner = np.flatnonzero(self.label >= 0)
        inner = inner[np.argsort(self.label[inner], kind="stable")]
        sizes = np.bincount(self.label[inner], minlength=self.n_groups)
        begins = np.cumsum(sizes) - sizes
        found = []
        for size in np.unique(sizes):
            groups = np.flatnonzero(sizes == size)
            found.append((groups, inner[begins[groups][:, None] + np.arange(size)]))
        return found


def collapse(problem: Problem, posterior: SparseGaussian, hyper: Hyper, seed: int) -> Collapsed | None:
    """Weigh a posterior by its outer parameters and its groups; None where it does not fall into small groups."""
    structure = structure_of(problem)
    split = _split(structure.pattern)
    if split is None:
        return None
    several = bool(np.bincount(split.label[split.label >= 0]).max() > 1)
    values = float(structure.n_rows) * _POINTS[several]
    if values * _DRAWS[0] > _TOO_MANY:
        return None
    n = int(np.clip(_MOST_VALUES / values, *_DRAWS))
    draws = TermDraws(_POINTS[several], stream(seed, Purpose.WEIGHTS))
    with in_double():
        return _Integrals(problem, structure, split, posterior, hyper, draws).weighed(n)


def _split(pattern: Pattern) -> _Split | None:
    """The fewest outer coordinates, by how many others they meet, without which the rest falls into small groups."""
    ones = np.ones(len(pattern.rows), np.int8)
    graph = scipy.sparse.csr_array((ones, (pattern.rows, pattern.columns)), (pattern.dim, pattern.dim))
    degrees = np.bincount(pattern.rows, minlength=pattern.dim) + np.bincount(pattern.columns, minlength=pattern.dim)
    for bits in range(int(np.log2(max(degrees.max(initial=1), 1))), 1, -1):
        outer = degrees >= 2**bits
        if outer.sum() > min(_MOST_OUTER, _FEW * pattern.dim):
            return None
        inner = np.flatnonzero(~outer)
        n, found = scipy.sparse.csgraph.connected_components(graph[inner][:, inner], directed=False)
        if outer.any() and n > 1 and np.bincount(found).max() <= _MOST_INSIDE:
            label = np.full(pattern.dim, -1)
            label[inner] = found
            return _Split(np.flatnonzero(outer), label, int(n))
    return None


class _Integrals:
    """The integrals of all groups at draws of the outer parameters."""

    def __init__(
        self,
        problem: Problem,
        structure: Structure,
        split: _Split,
        posterior: SparseGaussian,
        hyper: Hyper,
        draws: TermDraws,
    ):
        self.problem, self.split, self.free = problem, split, np.asarray(hyper.free)
        self.draws, self.mean, self.sd = draws, np.asarray(posterior.mean), np.sqrt(posterior.variance())
        units = np.zeros((posterior.dim, len(split.outer)))
        units[split.outer, np.arange(len(split.outer))] = 1.0
        self.scale = np.linalg.cholesky(posterior.factor.solve(units)[split.outer])
        self._condition(posterior)
        self.terms = [_GroupedRows(sight, split, self.spread, problem) for sight in structure.sights]

    def _condition(self, posterior: SparseGaussian) -> None:
        """q(u_c | g): `slopes` of its mean in g, points around it, and their log density and weight."""
        split, values, place = self.split, np.asarray(posterior.values), posterior.pattern.places
        self.slopes = np.zeros((posterior.dim, len(split.outer)))
        self.slopes[split.outer] = np.eye(len(split.outer))
        self.spread, self.variance = np.zeros((self.draws.n, posterior.dim)), np.zeros(posterior.dim)
        self.log_weights = np.zeros((split.n_groups, self.draws.n))
        for groups, members in split.members():
            size = members.shape[1]
            own = values[place(members[:, :, None], members[:, None, :])]
            across = values[place(members[:, :, None], split.outer[None, None, :])]
            self.slopes[members] = -np.linalg.solve(own, across)
            lower = np.linalg.cholesky(own)
            inverse = np.linalg.inv(lower)  # u = mean + inverseᵀ z
            points: Points = self.draws.points(size, size)
            z = points.z[np.arange(len(groups)) % len(points.z)]  # (groups, points, size)
            self.spread[:, members] = (z @ inverse).swapaxes(0, 1)
            self.variance[members] = np.sum(inverse**2, axis=1)
            log_q = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)[:, None] - 0.5 * np.sum(z**2, axis=2)
            self.log_weights[groups] = np.log(points.weights) - log_q + 0.5 * size * LOG_TWO_PI

    def weighed(self, n: int) -> Collapsed:
        outer = self.split.outer
        z = check_draws(n, len(outer), generator(self.draws.seed, Purpose.CHECK))
        log_q = -0.5 * np.sum(z**2, axis=1) - np.log(np.diag(self.scale)).sum() - 0.5 * len(outer) * LOG_TWO_PI
        ratios, moments = np.empty(n), np.empty((n, 4, len(self.mean)), np.float32)
        for place, step in enumerate(z @ self.scale.T):
            obey_interrupts()
            value, moments[place] = self._at(step)
            ratios[place] = value - log_q[place]
        shift, ratio, shift_error, ratio_error = _moved(moments, weigh_ratios(ratios))
        return Collapsed(ratios, shift, ratio, shift_error, ratio_error, len(outer))

    def _at(self, step: np.ndarray) -> tuple[float, np.ndarray]:
        """log p(g) this far from the mean; and first and second moments of all coordinates given g, of p and of q."""
        split, away = self.split, self.slopes @ step
        totals = np.zeros((split.n_groups + 1, self.draws.n))
        for rows in self.terms:
            rows.add(totals, self.mean + away, self.free)
        logs = totals[:-1] + self.log_weights
        largest = np.max(logs, axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            weights = np.exp(logs - largest)
            sums = weights.sum(axis=1, keepdims=True)
            value = float(totals[-1, 0] + np.sum(largest + np.log(sums)))
            weights /= sums
        inner = split.label >= 0
        own, around = weights[split.label[inner]], self.spread[:, inner].T
        first, second = np.sum(own * around, axis=1), np.sum(own * around**2, axis=1)
        moments = np.stack([away, away**2, away, away**2 + self.variance])
        moments[0, inner] += first
        moments[1, inner] += 2.0 * away[inner] * first + second
        return value, moments / self.sd ** np.array([1, 2, 1, 2])[:, None]


class _GroupedRows:
    """The rows of a term, by the group that each belongs to; those of no group are counted last."""

    def __init__(self, sight: Sight, split: _Split, spread: np.ndarray, problem: Problem):
        self.sight, self.given, self.n = sight, problem.data[1], sight.n
        self.values = programs_of(sight.term, problem).values
        group = np.full(sight.n, -1)
        for piece in sight.pieces:
            seen = (
                split.label[piece.flat].max(axis=1) if isinstance(piece, Looked) else split.label[piece.positions].max()
            )
            group = np.maximum(group, seen)
        shape = (split.n_groups + 1, self.n)
        self.into = scipy.sparse.csr_array((np.ones(self.n), (group % shape[0], np.arange(self.n))), shape)
        # In single precision: they are steps, and take as much memory as all rows at all points.
        around = np.stack([sight.means(one).astype(np.float32) for one in spread])
        size = min(_AT_A_TIME // len(spread), sight.n)
        rows = [np.minimum(np.arange(first, first + size), self.n - 1) for first in range(0, self.n, size)]
        cut = lambda own: jax.tree.map(lambda array: array[own], sight.term.held)
        self.pieces = [(own, jax.device_put(around[:, own]), jax.device_put(cut(own))) for own in rows]

    def add(self, totals: np.ndarray, vector: np.ndarray, free: np.ndarray) -> None:
        """The log densities of all rows, at a vector and all points around it, to those of their groups."""
        numbers = self.sight.means(vector)
        found = [_around(self.values, numbers[own], *rest, self.given, free) for own, *rest in self.pieces]
        totals += self.into @ np.concatenate(found)[: self.n]


@partial(program, of_functions=True, static_argnums=0)
def _around(values: Any, numbers: Array, around: Array, held: Any, given: Any, free: Array) -> Array:
    return values(numbers + around, held, given, free).T


def _moved(moments: np.ndarray, weights: Weights) -> tuple[np.ndarray, ...]:
    """How far weights of the outer draws move all coordinates, and with what error: of shifts, and of ratios.

    As in `trust.reweight`, moments are compared with those of q at the same draws, whose noise cancels.
    """
    relative = (len(moments) * weights.weights)[:, None]
    first, second, own, square = moments.astype(np.float64).swapaxes(0, 1)
    mean, plain = np.mean(relative * first, axis=0), own.mean(axis=0)
    spread = np.mean(relative * (second - 2.0 * mean * first + mean**2), axis=0)
    was = np.mean(square - 2.0 * plain * own + plain**2, axis=0)
    moves_mean = relative * (first - mean) - (own - plain)
    moves_spread = relative * ((second - 2.0 * mean * first + mean**2) / spread - 1.0)
    moves_spread -= (square - 2.0 * plain * own + plain**2) / was - 1.0
    ratio = np.sqrt(spread / was)
    error = lambda moves: np.sqrt(np.mean(moves**2, axis=0) / len(moments))
    return mean - plain, ratio, error(moves_mean), 0.5 * ratio * error(moves_spread)
