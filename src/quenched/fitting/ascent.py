"""Raise the bound on one frozen set of draws: the loop that every method shares.

The loop runs on the host. Each turn is one evaluation of the bound: a few small compiled programs, and a step of the
minimiser in NumPy. That leaves room for progress, time limits and interruption, and for targets that JAX cannot trace.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from quenched.arrays import Array
from quenched.families import Member
from quenched.objective import Coordinates, Objective, Totals, read
from quenched.optimise import Minimiser, State, namespace
from quenched.outcome import Status
from quenched.targets import Hyper

Watch = Callable[[float, int], Status | None]  # told the bound and the draws; may ask to stop


class Ascent(NamedTuple):
    """Where an ascent ended."""

    posterior: Member
    hyper: Hyper
    bound: float
    status: Status
    steepness: float  # largest component of the gradient
    n_objective_evaluations: int
    note: str = ""  # what a person should know besides the status


class Interrupted(KeyboardInterrupt):
    """A keyboard interrupt in the middle of an ascent, with what it had reached."""

    def __init__(self, reached: Ascent):
        super().__init__()
        self.reached = reached


class _Climber:
    """A minimiser at work on an objective, in one system of coordinates."""

    def __init__(self, objective: Objective, minimiser: Minimiser, hyper: Hyper, active, profile: bool):
        self.objective, self.minimiser, self.profile = objective, minimiser, profile
        self.hyper = hyper
        self.active = slice(None) if active is None else np.flatnonzero(active)
        self.count = 0
        self.totals: Totals | None = None
        self.broken = np.zeros(0, int)  # coordinates whose gradient was not finite where the bound was

    def stand(self, coordinates: Coordinates, position: np.ndarray) -> None:
        """Begin, or begin anew, at a position of some coordinates."""
        self.coordinates, self.held = coordinates, position
        self.state: State = self.minimiser.init(position[self.active])

    def _whole(self, part: np.ndarray) -> np.ndarray:
        """All coordinates: the active ones from the minimiser, the others where they are held."""
        whole = self.held.copy()
        whole[self.active] = part
        return whole

    @property
    def position(self) -> np.ndarray:
        return self._whole(self.state.position)

    def turn(self, totals: Totals | None = None) -> bool:
        """One evaluation and one step, True if the trial was accepted. Totals known already are not taken again."""
        before, objective, here = self.state, self.objective, self.coordinates
        trial = self._whole(before.trial)
        if totals is None:
            slope, totals = objective.slope(here, trial, self.hyper, profile=self.profile)
            self.count += 1
        else:
            slope = objective.close(here, trial, totals, self.hyper, profile=self.profile)
        if np.isfinite(slope.bound) and not np.isfinite(slope.gradient).all():
            self.broken = np.flatnonzero(~np.isfinite(totals.of_posterior.mean))
        bound, gradient = np.asarray(slope.bound), np.asarray(slope.gradient)[self.active]
        self.state = raise_bound(self.minimiser, before, bound, gradient)
        accepted = not before.started or self.state.n_steps > before.n_steps
        if accepted:
            self.hyper, self.totals = slope.hyper, totals
        return bool(accepted)

    @property
    def bound(self) -> float:
        return -float(self.state.value)

    @property
    def steepness(self) -> float:
        return float(np.max(np.abs(self.state.gradient)))

    @property
    def note(self) -> str:
        """What stood in the way, if it was a gradient."""
        if not self.broken.size:
            return ""
        names = self.objective.problem.space.coordinate_names()
        return (
            f"The gradient is not finite in {', '.join(names[index] for index in self.broken[:4])} at a draw where the "
            "log density itself is finite: look for a square root, a logarithm or a division at zero, also in the "
            "branch of a `where` that is not taken."
        )

    def reached(self) -> tuple[Member, Hyper]:
        posterior, free = read(self.coordinates, self.position)
        return posterior, self.hyper._replace(free=free)


def raise_bound(minimiser: Minimiser, state: State, bound: Array, gradient: Array) -> State:
    """Tell a minimiser of a bound that is to be raised: the one place where the sign changes."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a trial may be anything; it is judged there
        return minimiser.step(state, -bound, -gradient)


def ascend(
    objective: Objective,
    posterior: Member,
    hyper: Hyper,
    minimiser: Minimiser,
    *,
    gradient_tolerance: float,
    max_evaluations: int,
    watch: Watch,
    whiten_every: int,
    active: np.ndarray | None = None,
    known: Totals | None = None,
    mean_factor: np.ndarray | None = None,
) -> Ascent:
    """Ascend in the whitened coordinates of the posterior it starts from, whitening again when it has moved far.

    `active` is zero for coordinates that are held where they are; `known` are totals at the start, if taken already;
    `mean_factor` is a factor of the target's covariance, for a family that cannot hold all its correlations.
    """
    noise = objective.problem.noise
    climber = _Climber(objective, minimiser, hyper, active, profile=True)
    origin = Coordinates(posterior, hyper.free, mean_factor)
    climber.stand(origin, np.zeros(origin.size))
    since, status = 0, None
    while status is None:
        try:
            accepted = climber.turn(known)
        except KeyboardInterrupt as stop:
            if not climber.state.started:
                raise
            reached = (*climber.reached(), climber.bound, Status.INTERRUPTED, climber.steepness, climber.count)
            raise Interrupted(Ascent(*reached)) from stop
        known = None
        since += 1
        if accepted and since >= whiten_every and np.max(np.abs(climber.position)) > 0.5:
            climber.stand(climber.coordinates.moved(climber.position), np.zeros(origin.size))
            climber.turn(climber.totals)
            since = 0
        status = _outcome(climber, gradient_tolerance, noise) or watch(climber.bound, objective.n)
        if status is None and climber.count >= max_evaluations:
            status = Status.MAX_EVALUATIONS
    note = climber.note if status is Status.NO_ASCENT else ""
    return Ascent(*climber.reached(), climber.bound, status, climber.steepness, climber.count, note)


def climb(
    objective: Objective,
    posterior: Member,
    hyper: Hyper,
    minimiser: Minimiser,
    active: np.ndarray,
    *,
    max_steps: int,
    watch: Watch,
) -> Ascent:
    """A few steps in plain coordinates (m, L), over the `active` ones: the inner loops of Algorithm 1."""
    climber = _Climber(objective, minimiser, hyper, active, profile=False)
    flat = np.concatenate([np.asarray(ravel_pytree(posterior)[0]), np.asarray(hyper.free)])
    identity = jax.tree.map(np.zeros_like, posterior)
    climber.stand(Coordinates(identity, np.zeros_like(hyper.free)), flat)
    status = None
    # A step of scaled conjugate gradients takes two evaluations.
    while status is None and climber.state.n_steps < max_steps and climber.count < 2 * max_steps + 1:
        climber.turn()
        if climber.state.stalled:
            break
        status = watch(climber.bound, objective.n)
    end = (climber.bound, status or Status.CONVERGED, climber.steepness, climber.count, climber.note)
    return Ascent(*climber.reached(), *end)


def _outcome(climber: _Climber, tolerance: float, noise: float) -> Status | None:
    bound, steepness = climber.bound, climber.steepness
    if not np.isfinite(bound):
        return Status.NOT_FINITE
    if at_the_top(np.asarray(bound), np.asarray(steepness), climber.state.stalled, tolerance, noise):
        return Status.CONVERGED
    return Status.NO_ASCENT if climber.state.stalled else None


def at_the_top(bound: Array, steepness: Array, stalled: Array, tolerance: float, noise: Array | float) -> Array:
    """Whether there is nothing left to gain. Takes arrays of NumPy or JAX."""
    xp = namespace(bound)
    # A gradient cannot be made smaller than the square root of the function's rounding error.
    rounding = noise * xp.maximum(abs(bound), 1.0)
    flat = steepness <= xp.maximum(tolerance, xp.sqrt(rounding))
    # In whitened coordinates half the squared gradient is about the nats still to be gained.
    negligible = 0.5 * steepness**2 <= xp.maximum(1e-6, 100.0 * rounding)
    return flat | (stalled & negligible)
