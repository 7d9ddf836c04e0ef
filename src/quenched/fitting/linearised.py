"""Raise the bound by values alone: statistical linearisation on frozen draws, for simulators without gradient.

At the best Gaussian the mean gradient of log p is zero and its mean Hessian is minus the precision. Both means can be read
off a quadratic in z that is fitted to the values log p(m + L z_s) by least squares, which is exact where log p is quadratic
(Stein's lemma; least-squares variational inference takes the same fit on fresh draws). Mirrored draws part it in two: the
odd halves of the values give the gradient, the even halves the Hessian. One fit takes as many calls as there are draws; a
gradient by differences takes 2 dim + 1 times as many, but has less error where log p is far from quadratic. How far it is,
the residuals of the first fit tell, and with them which of the two is cheaper.
"""

from typing import ClassVar, NamedTuple

import numpy as np

from quenched.draws import Draws
from quenched.families import Member
from quenched.fitting.ascent import Ascent, Watch
from quenched.fitting.method import Base, Joint, Method
from quenched.objective import Objective, place
from quenched.results import Code

_SPARE = 1.5  # mirrored pairs per number that is fitted to them
_ERROR = 0.005  # standard deviations, of a mean on account of the fit
_WORTH = 0.01  # of the slack: where another turn is not worth its calls
_TURNS = 30
_TURNS_OF_EACH = (6, 5)  # of the linearisation and of an ascent by differences, as seen on near-Gaussian posteriors
_WIDEST = 4.0  # factor by which one turn may change a standard deviation


class Quadratic(NamedTuple):
    """log p around the mean of a posterior, in its own units: a + gradient · z + ½ z · hessian z."""

    bound: float
    gradient: np.ndarray
    hessian: np.ndarray
    residual: float  # variance of what a quadratic does not explain

    @property
    def promise(self) -> float:
        """Nats to be gained by going to its own Gaussian, if that is near."""
        away = self.hessian + np.eye(len(self.hessian))
        return 0.5 * float(self.gradient @ self.gradient) + 0.25 * float(np.sum(away**2))


class ByValues(Method):
    """`Joint` for functions without gradient: linearised where that takes fewer calls, by differences where not."""

    joint: Joint = Joint()
    in_lanes: ClassVar[bool] = False

    @property
    def name(self):
        return self.joint.name

    def run(self, objective, base, slack, watch, record):
        if not base.origin.reference.family.every_gaussian or slack == 0.0:
            return self.joint.run(objective, base, slack, watch, record)
        draws = _enough(objective.draws, objective.problem.dim)
        if draws is None:
            return self.joint.run(objective, base, slack, watch, record)
        reached, cheaper = self._climb(objective.on(draws), base, slack, watch, objective.n)
        if not cheaper:
            return self.joint.run(objective, base, slack, watch, record)
        if reached.code is Code.NO_ASCENT:
            found = Base(base.origin._replace(reference=reached.posterior), base.hyper, reached.bound)
            return self.joint.run(objective, found, slack, watch, record)
        bound = _bound(objective, reached.posterior, base)
        return reached._replace(bound=bound, rise=bound - base.bound)

    def _climb(self, objective: Objective, base: Base, slack: float, watch: Watch, n: int) -> tuple[Ascent, bool]:
        """Turn by turn to the Gaussian of the fitted quadratic; and whether that is cheaper than differences."""
        fitted, posterior = Fitted(objective), base.origin.reference
        at, code, size, turns = fitted.at(posterior, base), Code.RUNNING, 1.0, 1
        if not np.isfinite(at.bound) or not _pays(at, objective, n):
            return _ascent(posterior, base, at, Code.RUNNING, turns), False
        while code is Code.RUNNING:
            trial = _moved(posterior, at, size)
            ahead, turns = fitted.at(trial, base), turns + 1
            better = np.isfinite(ahead.bound) and (ahead.bound > at.bound or ahead.promise < at.promise)
            if better:
                posterior, at, size = trial, ahead, min(1.0, 2.0 * size)
            else:
                size *= 0.5
            if at.promise <= _WORTH * slack or (size < 1e-3 and at.promise <= slack):
                code = Code.CONVERGED
            elif size < 1e-3 or turns >= _TURNS:
                code = Code.NO_ASCENT  # differences take over
            elif (asked := watch(at.bound, objective.n)) is not None:
                code = Code[asked.name]
        return _ascent(posterior, base, at, code, turns), True


class Fitted:
    """Fits quadratics to values at one set of mirrored draws."""

    def __init__(self, objective: Objective):
        self.objective = objective
        half = objective.draws.points[: objective.n // 2]
        dim = half.shape[1]
        self.first, self.second = np.triu_indices(dim)
        products = half[:, self.first] * half[:, self.second]
        self.odd, self.even = np.linalg.pinv(half), np.linalg.pinv(np.column_stack([np.ones(len(half)), products]))
        self.half, self.products = half, products

    def at(self, posterior: Member, base: Base) -> Quadratic:
        """The quadratic around one posterior."""
        problem, z = self.objective.problem, self.objective.draws.points
        executor = problem.executor(len(z))
        values = np.asarray(executor.values(np.asarray(place(posterior, z)), problem.data, base.hyper.free))
        ahead, behind = np.split(values, 2)
        odd, even = 0.5 * (ahead - behind), 0.5 * (ahead + behind)
        gradient, (constant, *curves) = self.odd @ odd, self.even @ even
        hessian = np.zeros((len(gradient), len(gradient)))
        hessian[self.first, self.second] = curves
        left = [odd - self.half @ gradient, even - constant - self.products @ curves]
        free = len(z) - len(gradient) - 1 - len(curves)
        penalty = float(problem.form.penalty(posterior, base.hyper))
        return Quadratic(
            float(values.mean()) + penalty, gradient, hessian + hessian.T, 2.0 * float(sum(r @ r for r in left)) / free
        )


def _enough(draws: Draws, dim: int) -> Draws | None:
    """Draws that determine a quadratic, grown from these; None where they are not mirrored."""
    if draws.kind != "matched" or draws.groups is not None:
        return None
    least, n = 2 * int(_SPARE * (1 + dim * (dim + 1) // 2)), draws.n
    while n < least:
        n *= 2
    return draws.grow(n) if n > draws.n else draws


def _pays(at: Quadratic, objective: Objective, n: int) -> bool:
    """Whether a quadratic is near enough to log p, with so many draws, that differences at n of them take more calls."""
    dim = objective.problem.dim
    error = np.sqrt(at.residual / objective.n)  # of every component of the gradient, and so of the mean
    calls, others = _TURNS_OF_EACH[0] * objective.n, _TURNS_OF_EACH[1] * n * (2 * dim + 1)
    return bool(error <= _ERROR) and calls <= others


def _moved(posterior: Member, at: Quadratic, size: float) -> Member:
    """Towards the Gaussian of the quadratic, a part of the way in natural parameters."""
    precision = (1.0 - size) * np.eye(len(at.gradient)) - size * at.hessian
    values, basis = np.linalg.eigh(precision)
    values = np.clip(values, _WIDEST**-2, _WIDEST**2)
    mean = basis @ ((basis.T @ (size * at.gradient)) / values)
    return posterior.moved(posterior.family.member(mean, (basis * values) @ basis.T, (len(mean),)))


def _bound(objective: Objective, posterior: Member, base: Base) -> float:
    """On the draws of a fit, which are the first of those that a quadratic was fitted to."""
    problem, z = objective.problem, objective.draws.points
    values = problem.executor(len(z)).values(np.asarray(place(posterior, z)), problem.data, base.hyper.free)
    return float(np.mean(values)) + float(problem.form.penalty(posterior, base.hyper))


def _ascent(posterior: Member, base: Base, at: Quadratic, code: Code, turns: int) -> Ascent:
    steepness = float(np.max(np.abs(at.gradient)))
    return Ascent(posterior, base.hyper, at.bound, code, steepness, turns, at.bound - base.bound)
