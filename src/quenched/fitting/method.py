"""How the bound is raised: `Joint`, the default, and `Alternating`, Algorithm 1 of the paper."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from quenched.execute import Expired
from quenched.families import Member, Role, roles
from quenched.fitting.ascent import FAR_FROM_FLAT, Ascent, Learned, Limits, Watch, ascend, gradient_note, raise_bound
from quenched.frozen import Frozen
from quenched.numbers import finite_number, positive_number
from quenched.objective import Coordinates, Objective, Totals
from quenched.optimise import LBFGS, Minimiser, ScaledConjugateGradients
from quenched.results import Code
from quenched.targets import Hyper
from quenched.text import shown

_PRECISE = 1e-5  # of the gradient, where an ascent goes to the very top
_WORTH = 0.01  # of the slack: what an ascent goes on for, where it is still to be gained
# The same of a warped posterior, whose many numbers follow the draws: last gains are lost on others.
_WORTH_OF_WARP = 0.1
_LEVEL = 0.2  # of the slack: a rise of the bound in a few turns that is not waited for
Record = Callable[[Member, Hyper, float], Any]  # told of the end of a round


class Base(NamedTuple):
    """Where an ascent begins: the origin of whitened coordinates, with what is known there."""

    origin: Coordinates
    hyper: Hyper
    bound: float
    known: Totals | None = None  # on the draws of the objective
    learned: Learned | None = None  # by an ascent on other draws that ended here


class Method(Frozen):
    """Raises the bound on one set of draws."""

    begins_itself: ClassVar[bool] = False  # the start need not be judged for it
    in_lanes: ClassVar[bool] = False  # many problems can be raised side by side, by the machine of `ascend`

    @property
    def name(self) -> str:
        """What the settings of a fit call it."""
        return type(self).__name__

    @property
    def initial_scale(self) -> float | None:
        """The standard deviation of all parameters at the start; None begins where the bound is found to be highest."""
        return None

    @abstractmethod
    def run(self, objective: Objective, base: Base, slack: float, watch: Watch, record: Record) -> Ascent:
        """Ascend; call `record` at the end of every round but the last.

        `objective.on(draws, rows)` is the same bound on other draws or other rows of data, for methods that change them.
        `slack` are the nats by which the draws may be off: a small part of them is not worth an evaluation.
        """


class Joint(Method):
    """Mean, scale and hyperparameters together, in whitened coordinates, the precisions profiled out.

    Parameters
    ----------
    minimiser
        L-BFGS unless told otherwise.
    gradient_tolerance
        Largest component of the gradient in whitened coordinates, about the distance from the optimum in posterior
        standard deviations, at which an ascent ends; relaxed to what the precision of the log density allows. By default
        it ends where less is to be gained than the draws support, and at 1e-5 when a fit is resumed.
    max_evaluations
        Of the bound, on one set of draws.
    whiten_every
        Evaluations after which the coordinates are renewed, if the fit has moved away from their origin.

    Examples
    --------
    >>> sharp = qd.fit(lambda w: -jnp.cosh(w), 0.0, method=qd.Joint(gradient_tolerance=1e-8))
    >>> sharp.converged
    True
    """

    in_lanes: ClassVar[bool] = True

    minimiser: Minimiser = LBFGS()
    gradient_tolerance: float | None = None
    max_evaluations: int = 1000
    whiten_every: int = 15

    def __post_init__(self):
        _positive(
            self, *["gradient_tolerance"] * (self.gradient_tolerance is not None), "max_evaluations", "whiten_every"
        )

    def limits(self, posterior: Member, slack: float) -> Limits:
        """When an ascent ends."""
        limits = Limits(_PRECISE, self.max_evaluations, self.whiten_every)
        if self.gradient_tolerance is not None:
            return limits._replace(gradient_tolerance=self.gradient_tolerance)
        if posterior.affine:
            return limits._replace(nats=_WORTH * slack)
        # Of a warped posterior the last thousandths of a nat take most of the evaluations.
        limits = limits._replace(nats=_WORTH_OF_WARP * slack, level=_LEVEL * slack, spare=slack)
        # It begins at the top of the Gaussian, where coordinates are whitened; to renew them is to forget the curvature.
        return limits._replace(whiten_every=self.max_evaluations)

    def run(self, objective, base, slack, watch, record):
        limits = self.limits(base.origin.reference, slack)
        known = {"known": base.known, "learned": base.learned}
        return ascend(objective, base.origin, base.hyper, limits, minimiser=self.minimiser, watch=watch, **known)


class Alternating(Method):
    """Algorithm 1 of the paper: J steps on the mean, J on the scale, then the hyperparameters, until nothing is gained.

    Parameters
    ----------
    minimiser
        Scaled conjugate gradients, as in the paper.
    steps
        J, steps of the minimiser on the mean and then on the scale.
    tolerance
        The rise of the bound, in nats, below which a round was the last.
    max_rounds
        MaxIter of the paper.
    initial_scale
        c in L = c I; None starts where `Joint` would.

    Examples
    --------
    >>> inputs = np.linspace(0.0, 1.0, 30)
    >>> target = qd.regression(lambda w, x: w[0] + w[1] * x, inputs, 1.0 + 2.0 * inputs + 0.1 * np.cos(40.0 * inputs))
    >>> as_in_the_paper = qd.fit(target, np.zeros(2), method=qd.Alternating(), draws=qd.iid(100, 2))
    >>> as_in_the_paper.mean.round(1)
    array([1., 2.])
    """

    minimiser: Minimiser = ScaledConjugateGradients()
    steps: int = 10
    tolerance: float = 1e-4
    max_rounds: int = 1000
    initial_scale: float | None = 0.1  # pyright: ignore

    def __post_init__(self):
        _positive(
            self, "steps", "tolerance", "max_rounds", *(["initial_scale"] if self.initial_scale is not None else [])
        )

    def run(self, objective, base, slack, watch, record):
        reached = Ascent(base.origin.reference, base.hyper, base.bound, Code.RUNNING, np.inf, 0)
        record(reached.posterior, reached.hyper, reached.bound)
        code, count, rounds = Code.RUNNING, 0, 0
        try:
            while code is Code.RUNNING:
                climbed = self._round(objective, reached, watch)
                # One evaluation serves the closed forms and the bound after them.
                slope, _ = objective.slope_at(climbed.posterior, climbed.hyper, profile=True)
                count, rounds = count + climbed.n_objective_evaluations + 1, rounds + 1
                bound, steepness = float(slope.bound), float(np.max(np.abs(slope.gradient)))
                code = self._judged(climbed, bound - reached.bound, steepness, rounds)
                note = climbed.note if code is Code.NO_ASCENT else ""
                reached = Ascent(climbed.posterior, slope.hyper, bound, code, steepness, count, note=note)
                if code is Code.RUNNING:
                    record(reached.posterior, reached.hyper, reached.bound)
        except KeyboardInterrupt as stop:
            ended = Code.MAX_SECONDS if isinstance(stop, Expired) else Code.INTERRUPTED
            return reached._replace(code=ended, n_objective_evaluations=count)
        return reached

    def _round(self, objective: Objective, reached: Ascent, watch: Watch) -> Ascent:
        """J steps on the mean, the scale and the user's own hyperparameters in turn."""
        posterior, hyper, count, note, code = reached.posterior, reached.hyper, 0, "", Code.CONVERGED
        own = np.full(np.size(hyper.free), _OWN)
        kinds = np.concatenate([np.where(roles(posterior) == Role.LOCATION, _MEAN, _SCALE), own])
        for kind in (_MEAN, _SCALE, _OWN):
            if not (kinds == kind).any():
                continue
            part = self._steps(objective, posterior, hyper, kinds == kind, watch)
            posterior, hyper, count = part.posterior, part.hyper, count + part.n_objective_evaluations
            note, code = part.note or note, part.code if part.code is not Code.CONVERGED else code
        return Ascent(posterior, hyper, reached.bound, code, np.inf, count, note=note)

    def _steps(self, objective: Objective, posterior: Member, hyper: Hyper, moves: np.ndarray, watch: Watch) -> Ascent:
        """A few steps in plain coordinates (m, L), over those that move: the inner loops of Algorithm 1."""
        whole = np.concatenate([*(np.ravel(leaf) for leaf in jax.tree.leaves(posterior)), np.asarray(hyper.free)])
        plain = Coordinates(jax.tree.map(np.zeros_like, posterior), np.zeros(np.shape(hyper.free)))
        state, count, asked, broken = self.minimiser.init(whole[moves]), 0, None, np.zeros(0, int)

        def at(part: np.ndarray) -> np.ndarray:
            vector = whole.copy()
            vector[moves] = part
            return vector

        # A step of scaled conjugate gradients takes two evaluations.
        while asked is None and state.n_steps < self.steps and count < 2 * self.steps + 1 and not state.stalled:
            slope, totals = objective.slope(plain, at(state.trial), hyper, profile=False)
            bound, gradient = np.asarray(slope.bound), np.asarray(slope.gradient)
            if np.isfinite(bound) and not np.isfinite(gradient).all():
                broken = np.flatnonzero(~np.isfinite(totals.of_posterior.mean))
            state, count = raise_bound(self.minimiser, state, bound, gradient[moves]), count + 1
            asked = None if state.stalled else watch(-float(state.value), objective.n)
        posterior, free = plain.read(at(state.position))
        code = Code.CONVERGED if asked is None else Code[asked.name]
        note = gradient_note(objective, broken)
        return Ascent(posterior, hyper._replace(free=free), -float(state.value), code, np.inf, count, note=note)

    def _judged(self, climbed: Ascent, gain: float, steepness: float, rounds: int) -> Code:
        if climbed.code is not Code.CONVERGED:
            return climbed.code
        if np.isnan(gain):
            return Code.NOT_FINITE
        if gain >= self.tolerance:
            return Code.MAX_EVALUATIONS if rounds >= self.max_rounds else Code.RUNNING
        # A round that gained nothing ended at the top; or at a wall of broken gradients, or on its way to infinity.
        steep = not 0.5 * steepness * steepness <= max(FAR_FROM_FLAT, 10.0 * self.tolerance)
        return Code.NO_ASCENT if climbed.note or steep else Code.CONVERGED


_MEAN, _SCALE, _OWN = range(3)


def _positive(method: Method, *names: str) -> None:
    for name in names:
        given = f"{type(method).__name__}({name}={shown(getattr(method, name))})"
        try:
            finite_number(name, positive_number(name, getattr(method, name)))
        except ValueError as error:
            raise ValueError(f"{given}: a positive number is needed.") from error
    if not isinstance(method.minimiser, Minimiser):  # pyright: ignore
        given = shown(method.minimiser)  # pyright: ignore
        raise ValueError(f"{type(method).__name__}(minimiser={given}): give one of quenched.optimise.")
