"""Where to begin: chosen by the bound, not by the density.

Two candidates from every start. The *mode* with its curvature is best for posteriors near a Gaussian, however badly
scaled. A *short diagonal fit* of the bound with a few broad draws is not fooled by a density that rises without bound
(centred hierarchical models) nor by a narrow wrong mode. The candidate with the higher bound on the same draws wins.
The short fit is left out when the density was concave all the way to the mode and the bound there is close to the
Laplace evidence: then there is nothing to be fooled by.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from quenched.arrays import Array
from quenched.draws import Purpose, make, stream
from quenched.families import Diagonal, Family, Member
from quenched.fitting.ascent import Watch, ascend
from quenched.fitting.blame import blame_draws, blame_start
from quenched.fitting.mode import MAX_STEPS, MODE_TOLERANCE, Mode, Search, find_mode
from quenched.objective import Objective, Totals
from quenched.optimise import LBFGS
from quenched.outcome import Status
from quenched.problem import SMALL_CHUNK, Problem
from quenched.targets import Hyper

MAX_HESSIAN_DIM = 1500  # beyond, a dense Hessian costs more than it gives
_SHORT_FIT = 20  # evaluations of a short fit
LOOK_BACK = _SHORT_FIT // 2
LONGEST_SHORT_FIT = 60  # of one that is still rising and may win
SHORT_FIT_TOLERANCE = 1e-2  # of its gradient
MAX_SHRINKS = 12


class Start(NamedTuple):
    """A posterior to start from."""

    posterior: Member
    hyper: Hyper
    bound: float
    totals: Totals | None = None  # on the draws of the fit, when they have been taken
    mode: Mode | None = None
    precision: np.ndarray | None = None  # of the target near its mode, where the family cannot hold all of it


class CannotStart(Exception):
    """The log density is not finite where it must be; `message` names the parameter."""

    def __init__(self, message: str, status: Status = Status.NOT_FINITE):
        super().__init__(message)
        self.status = status


class NoCurvature(CannotStart):
    """The log density has no finite Hessian at the start, which a mode needs and a fit does not."""


class Starter:
    """Finds starts for one problem and counts what they cost."""

    def __init__(self, problem: Problem, family: Family, objective: Objective, seed: int, expired: Callable[[], bool]):
        self.problem, self.family, self.objective = problem, family, objective
        self.seed, self.expired = stream(seed, Purpose.SHORT_FIT), expired
        self.search = Search(problem)
        self.n_short = 0

    @property
    def n_evaluations(self) -> int:
        return self.search.n_evaluations + self.n_short

    def best_candidate(self, point: np.ndarray) -> Start:
        """The mode or the short diagonal fit, whichever has the higher bound."""
        if self.problem.dim > MAX_HESSIAN_DIM:
            self._must_be_finite(point)
            return self.judged(*self._short_fit(point, -np.inf))
        try:
            mode = self.mode(point)
        except NoCurvature:
            return self.judged(*self._short_fit(point, -np.inf))
        by_mode = self.at_mode(mode)
        if self.expired():
            return by_mode
        if to_be_trusted(mode, _worth(by_mode)):
            return by_mode
        best = max(by_mode, self.judged(*self._short_fit(point, _worth(by_mode))), key=_worth)
        return best if np.isfinite(_worth(best)) else self.plain(point, 1.0)

    def mode(self, point: np.ndarray, *, tolerance: float = MODE_TOLERANCE, max_steps: int = MAX_STEPS) -> Mode:
        """The mode near a point, at which the target must be finite."""
        first = self.search.expand(point, 0.1 * np.maximum(np.abs(point), 1.0), self.problem.hyper)
        if not (np.isfinite(first.value) and np.isfinite(first.gradient).all()):
            raise CannotStart(blame_start(self.problem, point, first.value, first.gradient))
        if not first.finite:
            raise NoCurvature("start: the second derivatives of the log density are not finite there; start elsewhere.")
        options = {"tolerance": tolerance, "max_steps": max_steps, "expired": self.expired}
        return find_mode(self.search, first, self.problem.hyper, **options)

    def at_mode(self, mode: Mode) -> Start:
        """The member of the family that fits the curvature at a mode."""
        sizes = self.problem.space.sizes
        start = self.judged(self.family.member(mode.point, mode.precision, sizes), mode.hyper)
        return start._replace(precision=None if self.family.groups(sizes) is None else mode.precision)

    def plain(self, point: np.ndarray, scale: float) -> Start:
        """The point with one standard deviation for all."""
        self._must_be_finite(point)
        posterior = self._finite_everywhere(self.objective, point, scale)
        return self.judged(posterior, self.problem.hyper, profile=False)

    def judged(self, posterior: Member, hyper: Hyper, profile: bool = True) -> Start:
        """A candidate with its bound on the draws of the fit."""
        before = self.objective.n_evaluations
        bound, hyper, totals = self.objective.bound(posterior, hyper, profile=profile)
        self.n_short += self.objective.n_evaluations - before
        return Start(posterior, hyper, bound if np.isfinite(bound) else -np.inf, totals)

    def _must_be_finite(self, point: np.ndarray) -> None:
        executor = self.problem.executor(1)
        one = executor.evaluate(point[None], np.ones(1), self.problem.data, self.problem.hyper.free)
        value, gradient = float(one.values[0]), np.asarray(one.gradients[0])
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise CannotStart(blame_start(self.problem, point, value, gradient))

    def _short_fit(self, point: np.ndarray, rival: float) -> tuple[Member, Hyper]:
        """A short fit of means and standard deviations alone, with a few broad draws matched per coordinate.

        It goes on for as long as it rises and is not far below the bound of its rival.
        """
        problem = self.problem
        draws = make("matched", SMALL_CHUNK, problem.dim, self.seed, Diagonal().groups(problem.space.sizes))
        objective = Objective(problem, draws)
        broad = self._finite_everywhere(objective, point, 1.0)
        ascent = ascend(
            objective,
            broad,
            problem.hyper,
            LBFGS(),
            gradient_tolerance=SHORT_FIT_TOLERANCE,
            max_evaluations=LONGEST_SHORT_FIT,
            whiten_every=LONGEST_SHORT_FIT,
            watch=_while_promising(rival, problem.dim, self.expired),
            active=without_correlations(broad, problem.hyper.free.size),
        )
        self.n_short += objective.n_evaluations
        return ascent.posterior, ascent.hyper

    def _finite_everywhere(self, objective: Objective, point: np.ndarray, scale: float) -> Member:
        """One standard deviation for all, shrunk until the target and its gradient are finite at every draw."""
        hyper = self.problem.hyper
        for _ in range(MAX_SHRINKS):
            spread = np.full(self.problem.dim, scale)
            posterior = self.family.isotropic(point, spread, self.problem.space.sizes)
            totals = objective.totals(posterior, hyper.free)
            if all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(totals)):
                return posterior
            scale /= 4.0
        raise CannotStart(blame_draws(self.problem, posterior, objective))


def to_be_trusted(mode: Mode, worth: float) -> bool:
    """Whether the bound at a mode shows that there was nothing to be fooled by."""
    return mode.concave and mode.converged and worth > mode.evidence() - 0.05 * len(mode.point) - 0.1


def _worth(start: Start) -> float:
    """The bound of a candidate; nothing if its gradient is not finite."""
    finite = all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(start.totals))
    return start.bound if finite else -np.inf


def _while_promising(rival: float, dim: int, expired: Callable[[], bool]) -> Watch:
    """Stop a short fit that cannot win, or that has had its turn and no longer rises."""
    bounds = []

    def watch(bound: float, n_draws: int) -> Status | None:
        bounds.append(bound)
        if expired():
            return Status.MAX_SECONDS
        earlier = bounds[-min(LOOK_BACK, len(bounds))]
        return Status.MAX_EVALUATIONS if gives_up(len(bounds), bound, earlier, rival, dim) else None

    return watch


def gives_up(n: Array, bound: Array, earlier: Array, rival: Array, dim: int) -> Array:
    """Whether a short fit ends after `n` evaluations; `earlier` is its bound `LOOK_BACK` evaluations ago."""
    hopeless = (n >= LOOK_BACK) & (bound < rival - 5.0 * dim - 50.0)
    fading = (bound - earlier <= 0.5) | (bound <= rival - 0.5 * dim - 5.0)
    return (n < _SHORT_FIT) & hopeless | (n >= _SHORT_FIT) & fading


def without_correlations(posterior: Member, n_free: int) -> np.ndarray:
    """Zero for the coordinates of a triangular scale below its diagonal, one for all others."""

    def mark(path, leaf):
        return np.full(np.shape(leaf), float(not any(getattr(key, "name", "") == "lower" for key in path)))

    marked = jax.tree_util.tree_map_with_path(mark, posterior)
    return np.concatenate([*(np.ravel(leaf) for leaf in jax.tree.leaves(marked)), np.ones(n_free)])
