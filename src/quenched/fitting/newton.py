"""The mode of the log joint density and the curvature there, by a damped Newton method: a machine like the ascent's.

Newton steps do not care about the units of the parameters; with the Hessian scaled to a unit diagonal before it is
factored, standard deviations from 1e-4 to 1e5 in one model are no obstacle. Negative curvature is climbed as if it were
positive. Learned precisions are renewed after each step from the Laplace approximation (one EM step). A mode at infinity
(a centred hierarchical model) is never reached; the search just ends, and the caller must judge the point by its bound.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from quenched.arrays import Array, choose, namespace, number, pick
from quenched.families import LOG_TWO_PI, cholesky_or_nan, factor_of_inverse, natural_units, solve_lower
from quenched.objective import Problem
from quenched.targets import Form, Hyper, Moments

_MAX_TRIALS = 30  # of one step, raising the damping each time
_MAX_EXTRA = 20  # trials beyond one per step: a search that needs more is on its way to infinity
_SETTLED = 0.05  # relative change of a precision
_FLOOR = 1e-12  # of eigenvalues, in units of a unit diagonal


class Search(NamedTuple):
    """When a search ends."""

    tolerance: Array | float = 1e-3  # nats that a further step would gain
    max_steps: Array | int = 30


class Expansion(NamedTuple):
    """The target's function to second order at a point."""

    point: Array
    value: Array
    gradient: Array
    hessian: Array

    @property
    def sound(self) -> Array:
        """Value and gradient are finite, whatever the Hessian is."""
        xp = namespace(self.value)
        return xp.isfinite(self.value) & xp.isfinite(self.gradient).all(axis=-1)

    @property
    def finite(self) -> Array:
        return self.sound & namespace(self.value).isfinite(self.hessian).all(axis=(-1, -2))


class Mode(NamedTuple):
    """A stationary point of the log joint, or as near as the search came."""

    point: Array
    precision: Array  # minus the Hessian of the log joint; not always positive definite
    value: Array
    hyper: Hyper
    converged: Array
    concave: Array  # the log joint curved downwards wherever the search looked
    n_expansions: Array

    def evidence(self) -> Array:
        """The Laplace approximation of the log evidence; of each, if these are rows."""
        scale = factor_of_inverse(self.precision)
        log_determinant = np.sum(np.log(np.diagonal(scale, axis1=-2, axis2=-1)), axis=-1)
        return self.value + 0.5 * self.point.shape[-1] * LOG_TWO_PI + log_determinant


class Newton(NamedTuple):
    """A search under way."""

    at: Expansion
    hyper: Hyper
    damping: Array
    direction: Array  # of the next trial
    decrement: Array  # about twice the nats it promises
    spread: Array  # units in which the precision has a unit diagonal
    eigen: tuple[Array, Array]  # of the scaled precision, where it cannot be factored
    definite: Array  # it can be factored, as far as is known
    concave: Array
    steps: Array
    trials: Array  # of this step
    count: Array  # expansions
    converged: Array
    running: Array
    due: Array  # eigenvalues must be taken before the next turn
    rising: Array  # the target has risen at the trial, and must be known to second order there

    @property
    def trial(self) -> Array:
        return self.at.point + self.direction


@dataclass(frozen=True)
class NewtonMachine:
    """The search: is told the target's value at `newton.trial`, and its derivatives where that is higher."""

    form: Form

    def begin(self, at: Expansion, hyper: Hyper) -> Newton:
        """At a point where the target is known to second order."""
        xp = namespace(at.value)
        zero, yes = number(0, at.gradient), number(True, at.gradient)
        nothing, square = xp.zeros_like(at.gradient), xp.zeros_like(at.hessian)
        real = number(0.0, at.gradient)
        eigen = (nothing, square)
        flags = (~yes, yes, ~yes, ~yes)  # not converged, running, nothing due, not rising
        state = Newton(at, hyper, real, nothing, real, nothing, eigen, yes, yes, zero, zero, zero + 1, *flags)
        return self._aim(state)

    def tell(self, newton: Newton, value: Array, search: Search) -> Newton:
        """Take in the target's value at the trial: where it has risen, `take` must follow."""
        rising = self._rises(newton, value, search)
        return choose(
            rising,
            lambda: newton._replace(rising=rising),
            lambda: self._after(newton, rising, search),
        )

    def take(self, newton: Newton, trial: Expansion, search: Search) -> Newton:
        """Step to the trial, where the target has risen and is now known to second order."""
        at = choose(trial.finite, lambda: trial, lambda: newton.at)
        return self._after(newton._replace(at=at), trial.finite, search)

    def tell_all(self, newton: Newton, trial: Expansion, search: Search) -> Newton:
        """`tell` and `take` at once, where the target is known to second order whether it has risen or not."""
        accepted = self._rises(newton, trial.value, search) & trial.finite
        at = choose(accepted, lambda: trial, lambda: newton.at)
        return self._after(newton._replace(at=at), accepted, search)

    def _rises(self, newton: Newton, value: Array, search: Search) -> Array:
        """Whether a value at the trial is enough to step there."""
        nothing_left = newton.decrement < search.tolerance
        here = joint_value(self.form, newton.at.point, newton.at.value, newton.hyper)
        there = joint_value(self.form, newton.trial, value, newton.hyper)
        return ~nothing_left & (there >= here + 1e-4 * newton.decrement - 1e-13 * abs(here))  # False for NaN

    def _after(self, newton: Newton, accepted: Array, search: Search) -> Newton:
        """After a trial; when the step has ended, renew the precisions and see whether all has settled."""
        xp, damping = namespace(newton.damping), newton.damping
        nothing_left = ~accepted & (newton.decrement < search.tolerance)
        lower, higher = pick(damping > 1e-3, damping / 8.0, 0.0 * damping), xp.maximum(4.0 * damping, 1e-3)
        ahead = newton._replace(
            rising=newton.rising & False,
            damping=pick(nothing_left, damping, pick(accepted, lower, higher)),
            definite=newton.definite | accepted,
            trials=newton.trials + 1,
            count=newton.count + ~nothing_left,
        )
        spent = ahead.count > search.max_steps + _MAX_EXTRA  # the expansion at the start is not counted
        ended = accepted | nothing_left | (ahead.trials >= _MAX_TRIALS) | spent
        ahead = choose(ended, lambda: self._stepped(ahead, accepted, spent, search), lambda: ahead)
        return choose(ahead.running, lambda: self._aim(ahead), lambda: ahead)

    def _stepped(self, newton: Newton, accepted: Array, spent: Array, search: Search) -> Newton:
        """The end of a step."""
        hyper, steps = self._renewed(newton.at, newton.hyper), newton.steps + 1
        converged = ~accepted & ~spent & settled(hyper, newton.hyper)
        return newton._replace(
            hyper=hyper,
            steps=steps,
            trials=newton.trials * 0,
            definite=newton.definite | True,  # other precisions may make it so
            converged=converged,
            running=~converged & (steps < search.max_steps) & ~spent,
        )

    def _aim(self, newton: Newton) -> Newton:
        """The next direction, by a factor of the damped precision, or by its eigenvalues where it has none."""
        xp = namespace(newton.damping)
        _, gradient, precision = self._joint(newton.at, newton.hyper)
        spread = natural_units(precision)
        scaled = precision * spread * spread[:, None]
        damped = choose(newton.damping > 0, lambda: scaled + newton.damping * xp.eye(len(spread)), lambda: scaled)
        factor = cholesky_or_nan(damped)
        factored = xp.isfinite(factor).all()
        definite = newton.definite & factored
        known = ~newton.definite  # eigenvalues were taken for an earlier trial from here
        direction = choose(
            definite,
            lambda: spread * _solve(factor, spread * gradient),
            lambda: _along_eigenvectors(newton.eigen, spread, gradient, newton.damping),
        )
        return newton._replace(
            direction=direction,
            decrement=gradient @ direction,
            spread=spread,
            definite=definite,
            concave=choose(
                newton.concave & (newton.trials == 0),  # where it is not known yet
                lambda: choose(
                    newton.damping > 0, lambda: xp.isfinite(cholesky_or_nan(scaled)).all(), lambda: factored
                ),
                lambda: newton.concave,
            ),
            due=~definite & ~known,
        )

    def with_eigenvalues(self, newton: Newton) -> Newton:
        """Where the precision cannot be factored: negative curvature replaced by its size."""
        xp = namespace(newton.damping)
        _, gradient, precision = self._joint(newton.at, newton.hyper)
        scaled = precision * newton.spread * newton.spread[:, None]
        values, basis = xp.linalg.eigh(0.5 * (scaled + scaled.T))
        eigen = (xp.maximum(abs(values), _FLOOR), basis)
        direction = _along_eigenvectors(eigen, newton.spread, gradient, newton.damping)
        return newton._replace(eigen=eigen, direction=direction, decrement=gradient @ direction, due=newton.due & False)

    def report(self, newton: Newton) -> Mode:
        """What was found."""
        value, _, precision = self._joint(newton.at, newton.hyper)
        concave = newton.concave & (newton.damping == 0.0)
        return Mode(newton.at.point, precision, value, newton.hyper, newton.converged, concave, newton.count)

    def _joint(self, at: Expansion, hyper: Hyper) -> tuple[Array, Array, Array]:
        return log_joint(self.form, at, hyper)

    def _renewed(self, at: Expansion, hyper: Hyper) -> Hyper:
        """Closed-form precisions under the Laplace approximation at a point."""
        if not self.form.learns:
            return hyper
        xp = namespace(at.value)
        covariance = inverse(self._joint(at, hyper)[2])
        mean_value = at.value + 0.5 * xp.sum(at.hessian * covariance)
        second_moment = at.point @ at.point + xp.trace(covariance)
        return self.form.updated(hyper, Moments(number(mean_value, at.point), number(second_moment, at.point)))


def log_joint(form: Form, at: Expansion, hyper: Hyper) -> tuple[Array, Array, Array]:
    """Value, gradient and negative Hessian of the log joint."""
    weight, prior = form.weight(hyper), form.prior(hyper)
    value = joint_value(form, at.point, at.value, hyper)
    if prior is None:
        return value, weight * at.gradient, -weight * at.hessian
    mean, precision = prior
    gradient, hessian = weight * at.gradient - precision @ (at.point - mean), precision - weight * at.hessian
    as_given = namespace(at.value).asarray
    return as_given(value), as_given(gradient), as_given(hessian)


def joint_value(form: Form, point: Array, value: Array, hyper: Hyper) -> Array:
    """The log joint at a point, given the target's value there."""
    joint = form.offset(hyper) + form.weight(hyper) * value
    if form.prior(hyper) is not None:
        joint = joint + form.log_prior(point[None], hyper)[0]
    return number(joint, point)


def settled(new: Hyper, old: Hyper) -> Array:
    """Whether a step has left the precisions where they were."""
    pairs = ((new.prior_precision, old.prior_precision), (new.noise_precision, old.noise_precision))
    prior, noise = (abs(a - b) <= _SETTLED * abs(b) for a, b in pairs)
    return prior & noise


def inverse(precision: Array) -> Array:
    """The covariance of a precision; where it is not positive definite, of the one with its curvature made positive."""
    xp = namespace(precision)
    spread = natural_units(precision)
    scaled, eye = precision * spread * spread[:, None], xp.eye(len(spread))
    factor = cholesky_or_nan(scaled)

    def by_eigenvalues():
        values, basis = xp.linalg.eigh(0.5 * (scaled + scaled.T))
        return (basis / xp.maximum(abs(values), _FLOOR)) @ basis.T

    covariance = choose(xp.isfinite(factor).all(), lambda: _solve(factor, eye), by_eigenvalues)
    return covariance * spread * spread[:, None]


def _solve(factor: Array, right: Array) -> Array:
    return solve_lower(factor, solve_lower(factor, right), transposed=True)


def _along_eigenvectors(eigen: tuple[Array, Array], spread: Array, gradient: Array, damping: Array) -> Array:
    values, basis = eigen
    xp = namespace(values)
    weights = 1.0 / xp.where(values + damping > 0, values + damping, 1.0)  # zero where none were taken yet
    return spread * (basis @ (weights * (basis.T @ (spread * gradient))))


class Expander:
    """Expansions of one problem on the host, and what they cost."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.executor = problem.executor(1)
        self.n_evaluations = 0

    @property
    def cost(self) -> int:
        """Gradient evaluations that one is worth."""
        return self.executor.second_order_cost(self.problem.dim)

    def expand(self, point: np.ndarray, spread: np.ndarray, hyper: Hyper) -> Expansion:
        """At a point; `spread` is a guess at the scale of each coordinate."""
        self.n_evaluations += self.cost
        value, gradient, hessian = self.executor.second_order(point, spread, self.problem.data, hyper.free)
        return Expansion(point, np.asarray(value)[()], gradient, hessian)

    def value(self, point: np.ndarray, hyper: Hyper) -> np.ndarray:
        """The target's value alone."""
        self.n_evaluations += self.executor.value_cost
        return np.asarray(self.executor.values(point[None], self.problem.data, hyper.free))[0]

    def joint(self, at: Expansion, hyper: Hyper) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, gradient and negative Hessian of the log joint."""
        value, gradient, precision = log_joint(self.problem.form, at, hyper)
        return float(value), np.asarray(gradient), np.asarray(precision)

    def find_mode(self, at: Expansion, hyper: Hyper, search: Search, expired=lambda: False) -> Mode:
        """Drive the machine on the host."""
        machine = NewtonMachine(self.problem.form)
        newton = machine.begin(at, jax.tree.map(np.asarray, hyper))
        while True:
            if newton.due:
                newton = machine.with_eigenvalues(newton)
            if not newton.running or expired():
                return machine.report(newton)
            idle = newton.decrement < search.tolerance  # no trial is needed to end this step
            newton = machine.tell(newton, newton.at.value if idle else self.value(newton.trial, newton.hyper), search)
            if newton.rising:
                newton = machine.take(newton, self.expand(newton.trial, newton.spread, newton.hyper), search)
