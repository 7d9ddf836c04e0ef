"""The bound of a sum of terms under a Gaussian whose precision has the sparsity of the model.

F(m, Λ) = Σ_terms Σ_rows E g(v) + entropy, with E over the Gaussian of what each row sees, on frozen points. Its slopes are
Σ Aᵀ ∂E/∂μ in the mean, and in the covariance ½ (Λ − Λ*), with Λ* = −2 Σ Aᵀ (∂E/∂C) A: a matrix with the pattern of the model.

Where coordinates are skewed (`families.stretched`), the numbers that a row sees are stretched by their own sds, which C has on its
diagonal; so all of this stays as it is, the entropy too, and there is a slope in the rates besides.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.compiling import program
from quenched.draws import Points, TermDraws
from quenched.families import (
    LOG_TWO_PI,
    Factor,
    Pattern,
    SparseGaussian,
    StretchedGaussian,
    make_pattern,
    power_of,
)
from quenched.objective import Problem
from quenched.projected.dealing import dealing, in_turn
from quenched.projected.expectation import Expectation
from quenched.projected.reduction import Reduction, reduction
from quenched.projected.seeing import Sight
from quenched.targets import Hyper, LocalTerm, local_terms

_STRUCTURES: dict[Any, "Structure"] = {}  # of the targets that were fitted last
_KEPT = 4
_NEARBY = 1e-4  # of a hyperparameter: differences of slopes are taken as derivatives
_CROWDED = 4  # rows for each weight behind a dense design, below which it is crowded
_STRAIGHT = np.zeros(0)  # rates of a Gaussian


@dataclass(frozen=True, eq=False)
class Structure:
    """What is known of a sum of terms before any number is: who meets whom, and how the rows see a Gaussian."""

    pattern: Pattern
    sights: tuple[Sight, ...]
    reductions: tuple[Reduction, ...]

    @property
    def local(self) -> tuple[LocalTerm, ...]:
        """The terms on the real line."""
        return tuple(sight.term for sight in self.sights)

    @cached_property
    def may_skew(self) -> np.ndarray:
        """Which coordinates may be skewed: a sum of stretched ones would be none of the few numbers that a row sees."""
        found = np.ones(self.pattern.dim, bool)
        for sight in self.sights:
            found[sight.combined()] = False
        return found

    @cached_property
    def dealing(self) -> tuple[np.ndarray, ...]:
        """Of the rows of each term, which share their draws."""
        return dealing(self.sights, self.pattern.dim)

    def order(self, term: int, points: Points) -> np.ndarray | None:
        """In which the rows of a term are dealt to sets of draws; None where there is but one."""
        several = len(points.z) > 1 and self.sights[term].n > 1
        return in_turn(self.dealing[term], len(points.z)) if several else None

    @cached_property
    def reductions_of_skewed(self) -> tuple[Reduction, ...]:
        """The reductions where coordinates are skewed."""
        pairs = zip(self.reductions, self.sights, strict=True)
        return tuple(reduction.leaving(sight.single(self.may_skew)) for reduction, sight in pairs)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers that the rows of each term depend on."""
        pairs = zip(self.reductions, self.sights, strict=True)
        return tuple(reduction.size(sight.size) for reduction, sight in pairs)

    @property
    def crowded(self) -> bool:
        """Some rows of several numbers are hardly more than the weights behind them: their errors do not average out."""
        pairs = zip(self.sights, self.sizes, strict=True)
        return any(size > 1 and _CROWDED * sight.n_weights > sight.n for sight, size in pairs)

    @property
    def n_rows(self) -> int:
        """Of all terms."""
        return sum(sight.n for sight in self.sights)


@lru_cache(maxsize=4)
def structure_of(problem: Problem) -> Structure:
    """Work it out once for a target; what its rows depend on again where every fit hands them data or hyperparameters."""
    key = (problem.target, problem.space)
    known = _STRUCTURES.get(key)
    if known is not None and not any(term.asks for term in problem.target.terms.terms):
        return known
    sights, pattern = (known.sights, known.pattern) if known is not None else _sights(problem)
    found = Structure(pattern, sights, tuple(reduction(sight.term, problem) for sight in sights))
    _STRUCTURES[key] = found
    while len(_STRUCTURES) > _KEPT:
        _STRUCTURES.pop(next(iter(_STRUCTURES)))
    return found


def _sights(problem: Problem) -> tuple[tuple[Sight, ...], Pattern]:
    """How the rows see a Gaussian, and who meets whom."""
    held = jax.tree.map(np.asarray, problem.data[0])
    local = local_terms(problem.target.terms, held, problem.space)
    bare = [Sight(term) for term in local]
    pairs = [pair for sight in bare for pair in sight.pairs()]
    rows, columns = (np.concatenate(part) for part in zip(*pairs, strict=True))
    hubs = np.unique(np.concatenate([sight.hubs() for sight in bare]))
    pattern = make_pattern(problem.dim, rows, columns, hubs)
    return tuple(Sight(term, pattern) for term in local), pattern


class Expected(NamedTuple):
    """The sum of terms under a Gaussian, and its slopes."""

    value: float
    gradient: np.ndarray  # in the mean
    precision: np.ndarray  # Λ*, values on the pattern
    free: np.ndarray  # gradient in the hyperparameters
    skew: np.ndarray  # gradient in the rates; none for a Gaussian

    @property
    def finite(self) -> bool:
        """All of it are numbers."""
        return bool(np.isfinite(self.value) and all(np.isfinite(part).all() for part in self[1:]))


class FreeChanges(NamedTuple):
    """Derivatives in the hyperparameters, one row for each, of what `Expected` holds."""

    gradient: np.ndarray
    precision: np.ndarray
    free: np.ndarray


class ProjectedBound:
    """The bound of a problem on one set of frozen points, for Gaussians or for `skewed` ones."""

    def __init__(self, problem: Problem, draws: TermDraws, *, skewed: bool = False):
        self.problem, self.draws, self.skewed = problem, draws, skewed
        self.structure = structure = structure_of(problem)
        reductions = structure.reductions_of_skewed if skewed else structure.reductions
        pairs = list(zip(structure.sights, reductions, strict=True))
        points = [draws.points(reduced.size(sight.size), place) for place, (sight, reduced) in enumerate(pairs)]
        self.terms = [
            Expectation(sight.term, reduced, own, problem, structure.order(place, own))
            for place, ((sight, reduced), own) in enumerate(zip(pairs, points, strict=True))
        ]
        self.n_evaluations = 0

    @property
    def pattern(self) -> Pattern:
        """Of the precision."""
        return self.structure.pattern

    def expected(self, mean: np.ndarray, factor: Factor, free: np.ndarray, skew: np.ndarray = _STRAIGHT) -> Expected:
        """At a mean, a precision that is factored, and the rates at which coordinates are stretched."""
        value, gradient, of_free = 0.0, np.zeros(len(mean)), np.zeros_like(free)
        precision, of_powers = np.zeros(self.pattern.size), np.zeros(len(skew))
        powers, changes = map(np.asarray, _powers(skew)) if len(skew) else (skew, skew)
        for sight, term in zip(self.structure.sights, self.terms, strict=True):
            own = _seen_powers(sight, term, powers)
            found = term.slopes(sight.means(mean), sight.covariances(factor), free, own)
            value += found.value
            gradient += sight.gradient(found.means, len(mean))
            sight.add_curvature(precision, found.curvature)
            of_free = of_free + found.free
            if found.powers is not None:
                slopes = np.zeros((sight.n, sight.size))
                slopes[:, term.reduction.alone] = found.powers
                of_powers += sight.gradient(slopes, len(mean))
        self.n_evaluations += self.draws.n
        of_skew = of_powers * changes * self.structure.may_skew[: len(skew)]
        return Expected(value, gradient, precision, of_free, of_skew)

    def free_changes(
        self, mean: np.ndarray, factor: Factor, free: np.ndarray, skew: np.ndarray = _STRAIGHT
    ) -> "FreeChanges":
        """How the slopes of the expected sum change with each hyperparameter, at a posterior that is held."""
        found = []
        for unit in np.eye(len(free)):
            change = self._between(mean, factor, (free - _NEARBY * unit, free + _NEARBY * unit), skew)
            found.append(FreeChanges(*(part / (2.0 * _NEARBY) for part in change)))
        return FreeChanges(*(np.stack(part) for part in zip(*found, strict=True)))

    def moved(
        self,
        mean: np.ndarray,
        factor: Factor,
        free: np.ndarray,
        step: np.ndarray,
        skew: np.ndarray = _STRAIGHT,
    ) -> "FreeChanges":
        """What a step of the hyperparameters changes of the slopes, at a posterior that is held."""
        return self._between(mean, factor, (free, free + step), skew)

    def _between(
        self, mean: np.ndarray, factor: Factor, ends: tuple[np.ndarray, np.ndarray], skew: np.ndarray
    ) -> "FreeChanges":
        """By how much the slopes differ between two values of the hyperparameters."""
        powers = np.asarray(_powers(skew)[0]) if len(skew) else skew
        found = FreeChanges(np.zeros(len(mean)), np.zeros(self.pattern.size), np.zeros(len(ends[0])))
        for sight, term in zip(self.structure.sights, self.terms, strict=True):
            if not term.asks_hyper:
                continue
            seen, own = (sight.means(mean), sight.covariances(factor)), _seen_powers(sight, term, powers)
            behind, ahead = (term.slopes(*seen, free, own) for free in ends)
            found.gradient[:] += sight.gradient(ahead.means - behind.means, len(mean))
            sight.add_curvature(found.precision, ahead.curvature - behind.curvature)
            found.free[:] += ahead.free - behind.free
        self.n_evaluations += 2 * self.draws.n
        return found

    def bound(self, expected: Expected, factor: Factor) -> float:
        """From the expected sum to the bound."""
        return float(expected.value + entropy(factor))


def bound_at(bound: ProjectedBound, posterior: SparseGaussian | StretchedGaussian, hyper: Hyper) -> float:
    """The bound at a posterior."""
    mean, free, skew = map(np.asarray, (posterior.mean, hyper.free, posterior.skew))
    return bound.bound(bound.expected(mean, posterior.factor, free, skew), posterior.factor)


@program
def _powers(skew):
    """Of all coordinates, and how they change with their rates."""
    return jax.jvp(power_of, (skew,), (jax.numpy.ones_like(skew),))


def _seen_powers(sight: Sight, term: Expectation, powers: np.ndarray) -> np.ndarray | None:
    """Of what the rows of a term see alone, (n, numbers); None where there is nothing to stretch."""
    alone = term.reduction.alone
    return sight.means(powers)[:, alone] if len(powers) and len(alone) else None


def entropy(factor: Factor) -> float:
    """Of the Gaussian with this precision."""
    return 0.5 * factor.pattern.dim * (LOG_TWO_PI + 1.0) - 0.5 * factor.log_determinant
