"""What goes side by side in lanes: ascents on frozen draws, and searches for modes, as `machines` drives them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenched.arrays import Array
from quenched.families import Member
from quenched.fitting.ascent import Climb, Climber, Learned
from quenched.fitting.newton import Expansion, Newton, NewtonMachine
from quenched.objective import slope_in_chunks
from quenched.targets import Form, Hyper

_COLUMNS = 32  # of a Hessian at a time


@dataclass(frozen=True)
class Ascents:
    """Climbs on some draws. The context is (limits, chunks, noise)."""

    evaluate: Callable
    form: Form
    climber: Climber
    profile: bool = True  # at the best precisions

    def begin(self, inputs, context):
        coordinates, hyper, rival, (learned, knows) = inputs
        moves = context[0].moves
        first = self.climber.begin(coordinates, hyper, moves, rival)
        if learned is None:
            return first
        again = self.climber.again(learned, hyper, moves)
        return jax.tree.map(partial(jnp.where, knows), again, first)

    def amend(self, state: Climb, context):
        return self.climber.renewed(state, context[0].moves)

    def turn(self, state: Climb, data, context):
        limits, chunks, noise = context
        vector = state.state.trial
        slope, _ = slope_in_chunks(
            self.evaluate, self.form, self.profile, state.coordinates, vector, state.hyper, data, chunks
        )
        return self.climber.tell(state, slope, limits, noise)

    def report(self, state: Climb, context) -> "Climbed":
        posterior, free = state.coordinates.read(state.state.position)
        gradient = state.state.gradient
        return Climbed(
            posterior=posterior,
            hyper=state.hyper._replace(free=free),
            bound=state.bound,
            code=state.code,
            rise=state.bound - state.first,
            count=state.count,
            turns=state.count + state.renewals,
            finite=jnp.isfinite(state.bound) & jnp.isfinite(gradient).all(),
            promise=0.5 * gradient @ gradient,
            learned=state.learned,
        )


class Climbed(NamedTuple):
    """Where climbs stand."""

    posterior: Member
    hyper: Hyper
    bound: Array
    code: Array
    rise: Array
    count: Array
    turns: Array
    finite: Array  # the bound and its gradient
    promise: Array
    learned: Learned


@dataclass(frozen=True)
class Searches:
    """Searches for modes. The context is the limits of the search."""

    second_order: Callable
    machine: NewtonMachine

    def begin(self, inputs, context):
        return self.machine.begin(*inputs)

    def amend(self, state: Newton, context):
        return self.machine.with_eigenvalues(state)

    def turn(self, state: Newton, data, context):
        trial = expansion(self.second_order, state.trial, data, state.hyper)
        return self.machine.tell_all(state, trial, context)

    def report(self, state: Newton, context):
        return self.machine.report(state)


def expansion(second_order: Callable, point: Array, data: Any, hyper: Hyper) -> Expansion:
    """The target to second order at a point."""
    return Expansion(point, *second_order(point, data, hyper.free, min(_COLUMNS, len(point))))
