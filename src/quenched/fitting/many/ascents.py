"""Raise many bounds at once: the loop of `ascend`, turn for turn, in lanes."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenched.arrays import Array
from quenched.families import Member
from quenched.fitting.ascent import at_the_top, raise_bound
from quenched.fitting.many.bound import Chunks, slope
from quenched.fitting.many.compiling import compiled
from quenched.fitting.many.lanes import Work
from quenched.fitting.many.rows import where
from quenched.fitting.start import LOOK_BACK, gives_up
from quenched.objective import Coordinates, read
from quenched.optimise import Minimiser
from quenched.outcome import Status
from quenched.targets import Form, Hyper

OUTCOMES = (None, Status.CONVERGED, Status.NO_ASCENT, Status.NOT_FINITE, Status.MAX_EVALUATIONS)
_TURNS = 4  # between two looks at which lanes have finished


class Plan(NamedTuple):
    """What is compiled into the program."""

    evaluate: Any
    form: Form
    minimiser: Minimiser


class Limits(NamedTuple):
    """What is not: one program serves the short fits and the long ones."""

    gradient_tolerance: Array
    max_evaluations: Array
    whiten_every: Array
    moves: Array  # mask of the coordinates that are not held where they are
    short: Array  # a short fit, which ends when it cannot win against its rival


class Climb(NamedTuple):
    """An ascent under way."""

    coordinates: Coordinates
    state: Any
    hyper: Hyper
    since: Array  # turns since the coordinates were renewed
    count: Array
    recent: Array  # the last bounds
    rival: Array
    outcome: Array  # place in OUTCOMES
    running: Array


class Summit(NamedTuple):
    """Where ascents ended."""

    posterior: Member
    hyper: Hyper
    bound: Array
    outcome: Array
    count: Array


def ascents(plan: Plan, limits: Limits, chunks: Chunks, noise: float) -> Work:
    """The work of raising bounds. Inputs are (coordinates, hyper, bound of the rival)."""
    return Work(
        begin=lambda inputs, data: _begin(plan, *inputs),
        advance=lambda lanes, data: _advance(plan, lanes, data, limits, chunks, noise),
        report=_report,
    )


@partial(jax.jit, static_argnums=0)
def _begin(plan: Plan, coordinates: Coordinates, hyper: Hyper, rival: Array) -> Climb:
    def one(coordinates, hyper, rival):
        zero = jnp.asarray(0)
        return Climb(
            coordinates=coordinates,
            state=plan.minimiser.init(jnp.zeros(coordinates.size)),
            hyper=hyper,
            since=zero,
            count=zero,
            recent=jnp.full(LOOK_BACK, -jnp.inf),
            rival=rival,
            outcome=zero,
            running=jnp.asarray(True),
        )

    # Types that are not weak: a program would be compiled twice, for the first turns and for those after.
    firm = lambda leaf: jnp.asarray(leaf, leaf.dtype)
    return jax.tree.map(firm, jax.vmap(one)(coordinates, hyper, rival))


@compiled(static_argnums=0, donate_argnums=1)
def _advance(plan: Plan, lanes: Climb, data: Any, limits: Limits, chunks: Chunks, noise: Array) -> Climb:
    """A few turns of all lanes."""

    def unfinished(carry):
        lanes, turns = carry
        return (turns < _TURNS) & lanes.running.any()

    def moved(far, coordinates, positions):
        return where(far, jax.vmap(lambda here, position: here.moved(position))(coordinates, positions), coordinates)

    def together(carry):
        lanes, turns = carry
        ahead, accepted = jax.vmap(lambda lane, own: _turn(plan, lane, own, limits.moves, chunks))(lanes, data)
        far = accepted & (ahead.since >= limits.whiten_every) & (abs(ahead.state.position).max(axis=1) > 0.5)
        # Those that are whitened again are judged by their gradient in the new coordinates.
        ahead = jax.vmap(lambda lane, far: _judged(lane, limits, noise, far))(ahead, far)
        far = far & lanes.running
        # Only few turns need new coordinates: they are made in a branch of their own.
        coordinates = jax.lax.cond(
            far.any(), moved, lambda far, coordinates, _: coordinates, far, lanes.coordinates, ahead.state.position
        )
        ahead = where(far, jax.vmap(lambda lane: _anew(plan, lane))(ahead), ahead)
        return where(lanes.running, ahead, lanes)._replace(coordinates=coordinates), turns + 1

    return jax.lax.while_loop(unfinished, together, (lanes, jnp.asarray(0)))[0]


def _turn(plan: Plan, lane: Climb, data: Any, moves: Array, chunks: Chunks) -> tuple[Climb, Array]:
    """One evaluation and one step."""
    before = lane.state
    here, _ = slope(plan.evaluate, plan.form, lane.coordinates, before.trial, lane.hyper, data, chunks)
    state = raise_bound(plan.minimiser, before, here.bound, jnp.where(moves, here.gradient, 0.0))
    accepted = ~before.started | (state.n_steps > before.n_steps)
    keep = lambda new, old: jax.tree.map(lambda a, b: jnp.where(accepted, a, b), new, old)
    return lane._replace(
        state=state,
        hyper=keep(here.hyper, lane.hyper),
        since=lane.since + 1,
        count=lane.count + 1,
    ), accepted


def _anew(plan: Plan, lane: Climb) -> Climb:
    """At the origin of new coordinates. The bound is evaluated there once more: cheaper than to carry its parts along."""
    state = plan.minimiser.init(jnp.zeros_like(lane.state.position))
    # The turn that follows takes it nowhere, and does not count.
    return lane._replace(state=state._replace(value=lane.state.value), since=jnp.full_like(lane.since, -1))


def _judged(lane: Climb, limits: Limits, noise: Array, not_yet: Array) -> Climb:
    """Whether it has ended, and how: the rules of `ascend`, in their order."""
    state, bound = lane.state, -lane.state.value
    top = at_the_top(bound, abs(state.gradient).max(), state.stalled, limits.gradient_tolerance, noise)
    recent = jnp.concatenate([lane.recent[1:], bound[None]])
    lost = gives_up(lane.count, bound, recent[0], lane.rival, lane.coordinates.reference.dim)
    enough = (lane.count >= limits.max_evaluations) | (limits.short & lost)
    rules = [not_yet, ~jnp.isfinite(bound), top, state.stalled, enough]
    outcome = jnp.select(rules, [0, 3, 1, 2, 4], 0)
    return lane._replace(recent=recent, outcome=outcome, running=outcome == 0)


@jax.jit
def _report(lanes: Climb) -> Summit:
    def one(lane):
        posterior, free = read(lane.coordinates, lane.state.position)
        return Summit(posterior, lane.hyper._replace(free=free), -lane.state.value, lane.outcome, lane.count)

    return jax.vmap(one)(lanes)
