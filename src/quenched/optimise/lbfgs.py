"""L-BFGS with a weak Wolfe line search, one evaluation per step (Nocedal and Wright 2006, Secs. 3.5 and 7.2).

The line search brackets the step length as Lewis and Overton (2013) do, with cubic interpolation instead of bisection,
and accepts a step at the rounding level of the function by the slope alone (the approximate Wolfe condition of Hager and
Zhang 2005), so that tight gradient tolerances can be reached. The curvature memory is a ring of fixed size: no
branch in a step depends on the data, which is what `vmap` needs.
"""

import jax
import jax.numpy as jnp
from jax import Array

from quenched.optimise.minimiser import Minimiser, State

_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
_MAX_TRIALS = 25  # of one line search, before the memory is dropped


class LBFGSState(State):
    position: Array
    value: Array
    gradient: Array
    trial: Array
    n_steps: Array
    started: Array
    stalled: Array
    direction: Array
    length: Array  # of the trial step, in units of `direction`
    bracket: tuple[Array, Array]  # step lengths: too short, too long
    low: tuple[Array, Array]  # value and slope at the short end
    n_trials: Array
    moves: Array  # ring of position differences
    changes: Array  # ring of gradient differences
    weights: Array  # 1 / (move . change), zero for an empty place


class LBFGS(Minimiser):
    """Limited-memory BFGS.

    Parameters
    ----------
    memory
        Pairs of (move, change of gradient) kept.
    first_step
        Length of the very first move, in the units of the coordinates: one standard deviation where the
        coordinates are whitened.
    noise
        Relative rounding error of the function.
    """

    memory: int = 10
    first_step: float = 1.0
    noise: float = 1e-14

    def init(self, position: Array) -> LBFGSState:
        zero = jnp.zeros((), position.dtype)
        infinite = jnp.asarray(jnp.inf, position.dtype)
        ring = jnp.zeros((self.memory, position.size), position.dtype)
        return LBFGSState(
            position=position,
            value=infinite,
            gradient=jnp.zeros_like(position),
            trial=position,
            n_steps=jnp.asarray(0),
            started=jnp.asarray(False),
            stalled=jnp.asarray(False),
            direction=jnp.zeros_like(position),
            length=zero,
            bracket=(zero, infinite),
            low=(infinite, zero),
            n_trials=jnp.asarray(0),
            moves=ring,
            changes=ring,
            weights=jnp.zeros(self.memory, position.dtype),
        )

    def step(self, state: LBFGSState, value: Array, gradient: Array) -> LBFGSState:  # pyright: ignore
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
        slope_start = state.gradient @ state.direction
        slope = gradient @ state.direction
        slack = self.noise * jnp.abs(state.value)
        decreased = finite & (value <= state.value + _SUFFICIENT_DECREASE * state.length * slope_start)
        # At the rounding level values cannot be compared, slopes can.
        decreased |= (
            finite & (value <= state.value + slack) & (slope <= (2 * _SUFFICIENT_DECREASE - 1) * slope_start)
        )
        flat_enough = slope >= _CURVATURE * slope_start
        accepted = ~state.started | (decreased & flat_enough)

        searching = self._search(state, value, slope, decreased, finite)
        moved = self._move(state, value, gradient)
        return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), moved, searching)

    def _search(self, state: LBFGSState, value, slope, decreased, finite) -> LBFGSState:
        """The trial was too long (no decrease) or too short (still steep): choose another length."""
        short, long = state.bracket
        value_low, slope_low = state.low
        guess = _cubic_minimum(short, value_low, slope_low, state.length, value, slope)
        new_short = jnp.where(decreased, state.length, short)
        new_long = jnp.where(decreased, long, state.length)
        width = new_long - new_short
        inside = jnp.clip(guess, new_short + 0.1 * width, new_long - 0.1 * width)
        inside = jnp.where(finite & jnp.isfinite(guess), inside, new_short + 0.25 * width)
        beyond = jnp.clip(guess, 2.0 * state.length, 8.0 * state.length)
        beyond = jnp.where(jnp.isfinite(guess) & (guess > state.length), beyond, 4.0 * state.length)
        length = jnp.where(jnp.isinf(new_long), beyond, inside)

        # A search that will not end: forget the curvature and go down the gradient; if that was it already, stop.
        exhausted = state.n_trials >= _MAX_TRIALS
        fresh = jnp.all(state.weights == 0)
        restart = exhausted & ~fresh
        direction = jnp.where(restart, -state.gradient, state.direction)
        slope_new = jnp.where(restart, -(state.gradient @ state.gradient), slope_low)
        length = jnp.where(restart, self._first_length(state.gradient), length)
        zero = jnp.zeros_like(length)
        return LBFGSState(
            position=state.position,
            value=state.value,
            gradient=state.gradient,
            trial=state.position + length * direction,
            n_steps=state.n_steps,
            started=state.started,
            stalled=state.stalled | (exhausted & fresh),
            direction=direction,
            length=length,
            bracket=(
                jnp.where(restart, zero, new_short),
                jnp.where(restart, jnp.inf, new_long),
            ),
            low=(
                jnp.where(restart, state.value, jnp.where(decreased, value, value_low)),
                jnp.where(restart, slope_new, jnp.where(decreased, slope, slope_low)),
            ),
            n_trials=jnp.where(restart, 0, state.n_trials + 1),
            moves=state.moves,
            changes=state.changes,
            weights=jnp.where(restart, 0.0, state.weights),
        )

    def _move(self, state: LBFGSState, value, gradient) -> LBFGSState:
        """The trial is accepted: learn the curvature along the move and choose a new direction."""
        move = state.trial - state.position
        change = gradient - state.gradient
        curvature = move @ change
        known = state.started & (curvature > 1e-12 * jnp.sqrt((move @ move) * (change @ change)))
        keep = lambda ring, new: jnp.where(known, jnp.roll(ring, -1, 0).at[-1].set(new), ring)
        moves, changes = keep(state.moves, move), keep(state.changes, change)
        weights = keep(state.weights, 1.0 / jnp.where(known, curvature, 1.0))

        direction = _two_loops(moves, changes, weights, gradient)
        slope = gradient @ direction
        downhill = slope < 0
        direction = jnp.where(downhill, direction, -gradient)
        slope = jnp.where(downhill, slope, -(gradient @ gradient))
        empty = jnp.all(weights == 0)
        length = jnp.where(empty, self._first_length(gradient), 1.0)
        zero = jnp.zeros_like(value)
        return LBFGSState(
            position=state.trial,
            value=value,
            gradient=gradient,
            trial=state.trial + length * direction,
            n_steps=state.n_steps + state.started,
            started=jnp.asarray(True),
            stalled=~jnp.isfinite(value) | (slope == 0),
            direction=direction,
            length=length,
            bracket=(zero, jnp.full_like(value, jnp.inf)),
            low=(value, slope),
            n_trials=jnp.asarray(0),
            moves=moves,
            changes=changes,
            weights=weights,
        )

    def _first_length(self, gradient: Array) -> Array:
        return jnp.minimum(1.0, self.first_step / jnp.maximum(jnp.linalg.norm(gradient), 1e-300))


def _two_loops(moves: Array, changes: Array, weights: Array, gradient: Array) -> Array:
    """Minus the inverse Hessian estimate times the gradient; empty places of the ring weigh nothing."""

    def backwards(direction, pair):
        move, change, weight = pair
        amount = weight * (move @ direction)
        return direction - amount * change, amount

    def forwards(direction, pair):
        move, change, weight, amount = pair
        return direction + move * (amount - weight * (change @ direction)), None

    direction, amounts = jax.lax.scan(backwards, -gradient, (moves, changes, weights), reverse=True)
    # The newest pair sets the scale of the directions that the memory does not know.
    newest = weights[-1] * (changes[-1] @ changes[-1])
    direction = direction * jnp.where(newest > 0, 1.0 / jnp.where(newest > 0, newest, 1.0), 1.0)
    direction, _ = jax.lax.scan(forwards, direction, (moves, changes, weights, amounts))
    return direction


def _cubic_minimum(left, value_left, slope_left, right, value_right, slope_right):
    """Minimiser of the cubic through two points and slopes; NaN where it has none."""
    width = right - left
    first = slope_left + slope_right - 3.0 * (value_right - value_left) / width
    root = jnp.sqrt(first**2 - slope_left * slope_right)
    return right - width * (slope_right + root - first) / (slope_right - slope_left + 2.0 * root)
