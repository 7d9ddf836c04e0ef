"""Raise the bound on one frozen set of draws: the machine that every fit shares, and its loop on the host.

The machine has the shape of a minimiser: it is begun, told the bound and its gradient at the point it asks for
(`climb.trial`), and answers with where it stands. It is written for NumPy and JAX alike: `ascend` drives it here, one
evaluation of the bound a turn, which leaves room for progress, time limits and interruption, and for targets that JAX
cannot trace; the lanes drive many of it in one compiled program.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from quenched.arrays import Array, choose, namespace, number, pick
from quenched.execute import Expired, StuckProgram
from quenched.families import Member
from quenched.objective import Coordinates, Objective, Slope, Totals
from quenched.optimise import LBFGS, Minimiser, State
from quenched.results import Code, Status
from quenched.targets import Hyper

Watch = Callable[[float, int], Status | None]  # told the bound and the draws; may ask to stop

LOOK_BACK = 10  # turns whose bounds are remembered
_SHORTEST = 20  # turns that an ascent with a rival is given unless it is hopeless
_FIRST_LOOK = 5  # turns after which such an ascent may be seen to be hopeless
_FEW_TURNS = 6  # more than a line search usually rejects in a row
FAR_FROM_FLAT = 0.1  # nats that half the squared gradient may promise where a bound is called level
_LBFGS = LBFGS()
# By names of their own: an enumeration looks for a member every time that it is asked.
_RUNNING, _CONVERGED, _MAX_EVALUATIONS = Code.RUNNING, Code.CONVERGED, Code.MAX_EVALUATIONS
_NO_ASCENT, _NOT_FINITE = Code.NO_ASCENT, Code.NOT_FINITE
_MOVED = 0.5  # standard deviations from the origin of the coordinates, beyond which they are renewed


class Limits(NamedTuple):
    """When an ascent ends, and what it may move. Numbers, not shapes: one compiled program serves them all."""

    gradient_tolerance: Array | float = 1e-5
    max_evaluations: Array | int = 1000
    whiten_every: Array | int = 15
    moves: Array | None = None  # mask of the coordinates that are not held where they are
    nats: Array | float = 0.0  # still to be gained, below which it ends
    level: Array | float = 0.0  # nats in a few turns, below which the bound is level enough
    spare: Array | float = 0.0  # nats that may be left where evaluations run out
    has_rival: Array | bool = False  # ends when it cannot win against `climb.rival`


class Learned(NamedTuple):
    """What an ascent leaves to the next, on other draws: on more of them a Gaussian curves as it did on fewer."""

    coordinates: Coordinates
    state: Any  # of the minimiser


class Climb(NamedTuple):
    """An ascent under way."""

    coordinates: Coordinates
    held: Array  # the whole vector of coordinates, of which the minimiser moves a part
    state: Any
    hyper: Hyper
    since: Array  # turns since the coordinates were renewed
    count: Array  # turns, but for those that a renewal repeats
    renewals: Array
    recent: Array  # the last bounds
    first: Array  # the bound where it began
    rival: Array  # a bound to beat
    accepted: Array  # the last trial was
    code: Array
    due: Array  # the coordinates must be renewed before the next turn

    @property
    def running(self) -> Array:
        return self.code == _RUNNING

    @property
    def bound(self) -> Array:
        return -self.state.value

    @property
    def learned(self) -> Learned:
        return Learned(self.coordinates, self.state)

    @property
    def steepness(self) -> Array:
        """Largest component of the gradient."""
        return abs(self.state.gradient).max()

    def whole(self, part: Array, moves: Array | None) -> Array:
        """All coordinates, given those that move.

        On the host what is held is left out of the minimiser; in a compiled program, whose shapes are fixed, it is there
        without a gradient.
        """
        if moves is None or namespace(part) is not np:
            return part
        whole = self.held.copy()
        whole[moves] = part
        return whole


@dataclass(frozen=True)
class Climber:
    """The machine: ascends in whitened coordinates, and renews them when it has moved far."""

    minimiser: Minimiser = _LBFGS

    def begin(self, origin: Coordinates, hyper: Hyper, moves: Array | None = None, rival: Array | float = -np.inf):
        """At the origin of some coordinates."""
        xp = namespace(origin.free)
        held = xp.zeros(origin.size)
        zero, no = number(0, held), number(False, held)
        return Climb(
            coordinates=origin,
            held=held,
            state=self.minimiser.init(_part(held, moves)),
            hyper=hyper,
            since=zero,
            count=zero,
            renewals=zero,
            recent=xp.full(LOOK_BACK, -xp.inf),
            first=number(np.nan, held),
            rival=number(rival, held),
            accepted=no,
            code=zero,
            due=no,
        )

    def tell(self, climb: Climb, slope: Slope, limits: Limits, noise: Array | float) -> Climb:
        """Take in the bound at the trial: one turn."""
        xp, before = namespace(climb.held), climb.state
        state = raise_bound(self.minimiser, before, slope.bound, _part(slope.gradient, limits.moves))
        accepted = ~before.started | (state.n_steps > before.n_steps)
        since = climb.since + 1
        ahead = climb._replace(
            state=state,
            hyper=choose(accepted, lambda: slope.hyper, lambda: climb.hyper),
            since=since,
            count=climb.count + 1,
            recent=xp.concatenate([climb.recent[1:], -state.value[None]]),
            first=pick(xp.isnan(climb.first), -state.value, climb.first),
            accepted=accepted,
            due=choose(
                accepted & (since >= limits.whiten_every),
                lambda: abs(state.position).max() > _MOVED,
                lambda: number(False, climb.held),
            ),
        )
        promise = self.minimiser.promise(state)
        return ahead._replace(code=pick(ahead.due, _RUNNING, _judged(ahead, promise, limits, noise)))

    def again(self, learned: Learned, hyper: Hyper, moves: Array | None = None) -> Climb:
        """On other draws, from where an ascent has ended: in its coordinates, with the curvature that it has seen."""
        return self.begin(learned.coordinates, hyper, moves)._replace(state=self.minimiser.again(learned.state))

    def renewed(self, climb: Climb, moves: Array | None) -> Climb:
        """At the origin of new coordinates, where it has been already: the next turn takes it nowhere."""
        xp = namespace(climb.held)
        here = climb.coordinates.moved(climb.whole(climb.state.position, moves))
        state = self.minimiser.init(xp.zeros_like(climb.state.position))
        zeros = xp.zeros_like(climb.held)
        return climb._replace(
            coordinates=here,
            held=zeros,
            state=state._replace(value=climb.state.value),
            since=climb.since * 0 - 1,
            count=climb.count - 1,
            renewals=climb.renewals + 1,
            due=number(False, climb.held),
        )


def _part(vector: Array, moves: Array | None) -> Array:
    if moves is None:
        return vector
    return vector[moves] if namespace(vector) is np else namespace(vector).where(moves, vector, 0.0)


def raise_bound(minimiser: Minimiser, state: State, bound: Array, gradient: Array) -> Any:
    """Tell a minimiser of a bound that is to be raised: the one place where the sign changes."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a trial may be anything; it is judged there
        return minimiser.step(state, -bound, -gradient)


def _judged(climb: Climb, promise: Array, limits: Limits, noise: Array | float) -> Array:
    """Whether it has ended, and how: the first rule that holds."""
    xp, bound, steepness = namespace(climb.held), climb.bound, climb.steepness
    with np.errstate(invalid="ignore"):  # a bound that is minus infinity, twice
        rose = bound - climb.recent[-1 - _FEW_TURNS]
    level = (rose < limits.level) & (0.5 * steepness**2 <= FAR_FROM_FLAT)
    top = at_the_top(bound, steepness, climb.state.stalled, limits.gradient_tolerance, noise)
    spent = climb.count >= limits.max_evaluations
    left = choose(spent, lambda: xp.maximum(limits.spare, limits.nats), lambda: limits.nats)
    top = top | level | (promise <= left)
    lost = choose(
        limits.has_rival,
        lambda: gives_up(climb.count, climb.recent, climb.rival, climb.coordinates.reference.dim),
        lambda: number(False, climb.held),
    )
    code = pick(climb.state.stalled, _NO_ASCENT, pick(spent | lost, _MAX_EVALUATIONS, _RUNNING))
    return pick(xp.isfinite(bound), pick(top, _CONVERGED, code), _NOT_FINITE)


def at_the_top(bound: Array, steepness: Array, stalled: Array, tolerance: Array | float, noise: Array | float) -> Array:
    """Whether there is nothing left to gain."""
    xp = namespace(bound)
    # A gradient cannot be made smaller than the square root of the function's rounding error.
    rounding = noise * xp.maximum(abs(bound), 1.0)
    flat = steepness <= xp.maximum(tolerance, xp.sqrt(rounding))
    # In whitened coordinates half the squared gradient is about the nats still to be gained.
    negligible = 0.5 * steepness**2 <= xp.minimum(xp.maximum(100.0 * rounding, 1e-6), FAR_FROM_FLAT)
    return flat | (stalled & negligible)


def gives_up(n: Array, recent: Array, rival: Array, dim: int) -> Array:
    """Whether an ascent with a rival ends after `n` turns, given its last bounds."""
    xp, bound, earlier = namespace(recent), recent[-1], recent[-4]
    far = 5.0 * dim + 50.0  # nats below the rival, too many to make up for after `LOOK_BACK` turns
    rival = pick(xp.isfinite(rival), rival, pick(xp.isfinite(bound), bound, 0.0))
    behind = xp.maximum(rival - bound, 0.0)
    pace = xp.cbrt(behind / xp.maximum(rival - earlier, 1e-300))  # by which it falls behind less with every turn
    expected = behind * pace ** xp.maximum(LOOK_BACK - n, 0)
    hopeless = (n >= _FIRST_LOOK) & (behind > far) & (expected > pick(n < LOOK_BACK, 5.0, 1.0) * far)
    fading = (bound - recent[0] <= 0.5) | (bound <= rival - 0.5 * dim - 5.0)
    return (n < _SHORTEST) & hopeless | (n >= _SHORTEST) & fading


class Ascent(NamedTuple):
    """Where an ascent ended."""

    posterior: Member
    hyper: Hyper
    bound: float
    code: Code
    steepness: float  # largest component of the gradient
    n_objective_evaluations: int
    rise: float = np.nan  # nats since it began
    note: str = ""  # what a person should know besides the status
    stuck: bool = False  # interrupted in a program that did not return
    learned: Learned | None = None


def ascend(
    objective: Objective,
    origin: Coordinates,
    hyper: Hyper,
    limits: Limits,
    *,
    minimiser: Minimiser = LBFGS(),
    watch: Watch = lambda bound, n_draws: None,
    rival: float = -np.inf,
    known: Totals | None = None,
    learned: Learned | None = None,
) -> Ascent:
    """Drive the machine on the host, from the origin of some coordinates.

    `known` are totals at the origin, if they have been taken already; `learned` is left by an ascent on other draws that ended
    there. A keyboard interrupt ends it like a limit, once the bound is known anywhere.
    """
    climber, noise, broken, stuck = Climber(minimiser), objective.problem.noise, np.zeros(0, int), False
    origin = origin._replace(free=np.asarray(origin.free))
    climb = climber.begin(origin, hyper, limits.moves, rival) if learned is None else climber.again(learned, hyper)
    standing = known
    while climb.running:
        trial = climb.whole(climb.state.trial, limits.moves)
        try:
            slope, totals = objective.slope(climb.coordinates, trial, climb.hyper, profile=True, known=known)
            slope = Slope(np.asarray(slope.bound)[()], np.asarray(slope.gradient), slope.hyper)
        except KeyboardInterrupt as stop:
            if not climb.state.started:
                raise
            code = Code.MAX_SECONDS if isinstance(stop, Expired) else Code.INTERRUPTED
            climb, stuck = climb._replace(code=code), isinstance(stop, StuckProgram)
            break
        if np.isfinite(slope.bound) and not np.isfinite(slope.gradient).all():
            broken = np.flatnonzero(~np.isfinite(totals.of_posterior.mean))
        climb = climber.tell(climb, slope, limits, noise)
        standing, known = totals if climb.accepted else standing, None
        if climb.due:
            climb, known = climber.renewed(climb, limits.moves), standing
        asked = watch(float(climb.bound), objective.n) if climb.running else None
        if asked is not None:
            climb = climb._replace(code=Code[asked.name])
    return _ended(objective, climb, limits.moves, broken)._replace(stuck=stuck)


def _ended(objective: Objective, climb: Climb, moves: Array | None, broken: np.ndarray) -> Ascent:
    posterior, free = climb.coordinates.read(climb.whole(climb.state.position, moves))
    code = Code(int(climb.code))
    note = gradient_note(objective, broken) if code is Code.NO_ASCENT else ""
    hyper = climb.hyper._replace(free=free)
    with np.errstate(invalid="ignore"):
        rise = float(climb.bound - climb.first)
    bound, count = float(climb.bound), int(climb.count)
    return Ascent(posterior, hyper, bound, code, float(climb.steepness), count, rise, note, learned=climb.learned)


def gradient_note(objective: Objective, broken: np.ndarray) -> str:
    """What stood in the way of an ascent, if it was the gradient of some coordinates."""
    if not broken.size:
        return ""
    names = objective.problem.space.coordinate_names()
    return (
        f"The gradient is not finite in {', '.join(names[index] for index in broken[:4])} at a draw where the "
        "log density itself is finite: look for a square root, a logarithm or a division at zero, also in the "
        "branch of a `where` that is not taken."
    )
