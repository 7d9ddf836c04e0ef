"""The mode of the log joint density and the curvature there, by a damped Newton method.

Newton steps do not care about the units of the parameters; with the Hessian scaled to a unit diagonal before it is
factored, standard deviations from 1e-4 to 1e5 in one model are no obstacle. Negative curvature is climbed as if it were
positive. Learned precisions are renewed after each step from the Laplace approximation (one EM step).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from quenched.arrays import Array
from quenched.families import LOG_TWO_PI, NewtonSolver, factor_of_inverse, inverse
from quenched.problem import Problem
from quenched.targets import Form, Hyper, Moments

MAX_TRIALS = 30  # of one step, raising the damping each time
MAX_STEPS = 30
MAX_EXTRA = 20  # trials beyond one per step: a search that needs more is on its way to infinity
MODE_TOLERANCE = 1e-3  # nats that a further step would gain


class Mode(NamedTuple):
    """A stationary point of the log joint, or as near as the search came."""

    point: np.ndarray
    precision: np.ndarray  # minus the Hessian of the log joint; not always positive definite
    value: float
    hyper: Hyper
    converged: bool
    concave: bool  # the log joint curved downwards wherever the search looked

    def evidence(self) -> float:
        """The Laplace approximation of the log evidence."""
        scale = factor_of_inverse(self.precision)
        return self.value + 0.5 * len(self.point) * LOG_TWO_PI + float(np.sum(np.log(np.diag(scale))))


class Expansion(NamedTuple):
    """The target's function to second order at a point."""

    point: Array
    value: Array
    gradient: Array
    hessian: Array

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all() and np.isfinite(self.hessian).all())


def log_joint(form: Form, at: Expansion, hyper: Hyper) -> tuple[Array, Array, Array]:
    """Value, gradient and negative Hessian of the log joint. Takes arrays of NumPy or JAX."""
    weight = form.weight(hyper)
    value = form.offset(hyper) + weight * at.value
    prior = form.prior(hyper)
    if prior is None:
        return value, weight * at.gradient, -weight * at.hessian
    mean, precision = prior
    value = value + form.log_prior(at.point[None], hyper)[0]
    return value, weight * at.gradient - precision @ (at.point - mean), precision - weight * at.hessian


class Search:
    """Expansions of a problem, and what they cost."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.executor = problem.executor(1)
        self.n_evaluations = 0

    def expand(self, point: np.ndarray, spread: np.ndarray, hyper: Hyper) -> Expansion:
        self.n_evaluations += self.executor.second_order_cost(self.problem.dim)
        return Expansion(point, *self.executor.second_order(point, spread, self.problem.data, hyper.free))

    def joint(self, at: Expansion, hyper: Hyper) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, gradient and negative Hessian of the log joint."""
        value, gradient, precision = log_joint(self.problem.form, at, hyper)
        return float(value), np.asarray(gradient), np.asarray(precision)

    def renewed(self, at: Expansion, hyper: Hyper) -> Hyper:
        """Closed-form precisions under the Laplace approximation at a point."""
        if not self.problem.form.learns:
            return hyper
        covariance = inverse(self.joint(at, hyper)[2])
        mean_value = at.value + 0.5 * np.sum(at.hessian * covariance)
        second_moment = at.point @ at.point + np.trace(covariance)
        return self.problem.form.updated(hyper, Moments(np.asarray(mean_value), np.asarray(second_moment)))


def find_mode(
    search: Search,
    start: Expansion,
    hyper: Hyper,
    *,
    max_steps: int = MAX_STEPS,
    tolerance: float = MODE_TOLERANCE,
    expired: Callable[[], bool] = lambda: False,
) -> Mode:
    """Climb from `start` until the Newton decrement is below `tolerance` nats and the precisions have settled.

    A mode at infinity (a centred hierarchical model) is never reached; the search just ends, and the caller must judge
    the point by its bound.
    """
    at, damping, converged, concave, steps, left = start, 0.0, False, True, 0, max_steps + MAX_EXTRA
    while steps < max_steps and left > 0 and not converged and not expired():
        concave = concave and _curves_down(search.joint(at, hyper)[2])
        ahead, damping, trials = _step(search, at, hyper, damping, tolerance, min(left, MAX_TRIALS))
        steps, left = steps + 1, left - trials
        at = at if ahead is None else ahead
        new = search.renewed(at, hyper)
        converged = ahead is None and left > 0 and bool(settled(new, hyper))
        hyper = new
    value, _, precision = search.joint(at, hyper)
    return Mode(at.point, precision, value, hyper, converged, concave and damping == 0.0)


def _step(search: Search, at: Expansion, hyper: Hyper, damping: float, tolerance: float, most: int):
    """One damped Newton step, None when there is nothing left to gain; the damping, and how many lengths were tried."""
    value, gradient, precision = search.joint(at, hyper)
    solver = NewtonSolver(precision)
    for trials in range(most):
        direction = solver.solve(gradient, damping)
        decrement = float(gradient @ direction)
        if decrement < tolerance:
            return None, damping, trials
        trial = search.expand(at.point + direction, solver.spread, hyper)
        enough = value + 1e-4 * decrement - 1e-13 * abs(value)
        if trial.finite and search.joint(trial, hyper)[0] >= enough:
            return trial, damping / 8.0 if damping > 1e-3 else 0.0, trials + 1
        damping = max(4.0 * damping, 1e-3)
    return None, damping, most


def _curves_down(precision: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        return False
    return True


def settled(new: Hyper, old: Hyper) -> Array:
    """Whether a step has left the precisions where they were."""
    pairs = ((new.prior_precision, old.prior_precision), (new.noise_precision, old.noise_precision))
    prior, noise = (abs(a - b) <= 0.05 * abs(b) for a, b in pairs)
    return prior & noise
