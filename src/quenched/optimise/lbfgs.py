"""L-BFGS with a weak Wolfe line search, one evaluation per step (Nocedal and Wright 2006, Secs. 3.5 and 7.2).

The line search brackets the step length as Lewis and Overton (2013) do, with cubic interpolation instead of bisection,
and accepts a step at the rounding level of the function by the slope alone (the approximate Wolfe condition of Hager and
Zhang 2005), so that tight gradient tolerances can be reached.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax

from quenched.arrays import Array, choose, namespace, number, pick
from quenched.optimise.minimiser import Minimiser

_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
_MAX_TRIALS = 25  # of one line search, before the memory is dropped
_TINY = 1e-300


class LBFGSState(NamedTuple):
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
    # Oldest first: in tuples on the host, where nothing need be copied; in a compiled program, in arrays.
    moves: Any  # position differences
    changes: Any  # gradient differences
    weights: Any  # 1 / (move . change), zero for an empty place


@dataclass(frozen=True)
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
        xp = namespace(position)
        nothing, zero, infinite = xp.zeros_like(position), number(0.0, position), number(xp.inf, position)
        return LBFGSState(
            position=position,
            value=infinite,
            gradient=nothing,
            trial=position,
            n_steps=number(0, position),
            started=number(False, position),
            stalled=number(False, position),
            direction=nothing,
            length=zero,
            bracket=(zero, infinite),
            low=(infinite, zero),
            n_trials=number(0, position),
            moves=_repeated(nothing, self.memory),
            changes=_repeated(nothing, self.memory),
            weights=_repeated(zero, self.memory),
        )

    def again(self, state: Any) -> LBFGSState:
        return self.init(state.position)._replace(moves=state.moves, changes=state.changes, weights=state.weights)

    def step(self, state: Any, value: Array, gradient: Array) -> LBFGSState:
        xp = namespace(state.position)
        finite = xp.isfinite(value) & xp.isfinite(gradient).all()
        slope_start, slope = state.gradient.dot(state.direction), gradient.dot(state.direction)
        decreased = value <= state.value + _SUFFICIENT_DECREASE * state.length * slope_start
        # At the rounding level values cannot be compared, slopes can.
        level = value <= state.value + self.noise * abs(state.value)
        decreased = finite & (decreased | (level & (slope <= (2 * _SUFFICIENT_DECREASE - 1) * slope_start)))
        accepted = ~state.started | (decreased & (slope >= _CURVATURE * slope_start))
        return choose(
            accepted,
            lambda: self._move(state, value, gradient),
            lambda: self._search(state, value, slope, decreased, finite),
        )

    def promise(self, state: Any) -> Array:
        """As far as the step by the curvature that is known would go down, but no less than by a curvature of one."""
        xp = namespace(state.position)
        return xp.maximum(super().promise(state), -0.5 * state.gradient.dot(state.direction))

    def _move(self, state: LBFGSState, value: Array, gradient: Array) -> LBFGSState:
        """The trial is accepted: learn the curvature along the move and choose a new direction."""
        xp = namespace(state.position)
        move, change = state.trial - state.position, gradient - state.gradient
        curvature = move.dot(change)
        known = state.started & (curvature > 1e-12 * xp.sqrt(move.dot(move) * change.dot(change)))
        moves, changes, weights = choose(
            known,
            lambda: (
                _with_newest(state.moves, move),
                _with_newest(state.changes, change),
                _with_newest(state.weights, 1.0 / pick(known, curvature, 1.0)),
            ),
            lambda: (state.moves, state.changes, state.weights),
        )
        direction = _two_loops(moves, changes, weights, gradient)
        slope = gradient.dot(direction)
        direction, slope = choose(slope < 0, lambda: (direction, slope), lambda: (-gradient, -gradient.dot(gradient)))
        return self._aim(state, value, gradient, direction, slope, (moves, changes, weights))

    def _aim(self, state, value, gradient, direction, slope, memory) -> LBFGSState:
        """Begin a line search from the accepted trial."""
        xp, (moves, changes, weights) = namespace(state.position), memory
        zero, value = number(0.0, gradient), number(value, gradient)
        length = choose(weights[-1] == 0, lambda: self._first_length(gradient), lambda: zero + 1.0)
        return LBFGSState(
            position=state.trial,
            value=value,
            gradient=gradient,
            trial=state.trial + length * direction,
            n_steps=state.n_steps + state.started,
            started=number(True, gradient),
            stalled=~xp.isfinite(value) | (slope == 0),
            direction=direction,
            length=length,
            bracket=(zero, zero + xp.inf),
            low=(value, slope),
            n_trials=number(0, gradient),
            moves=moves,
            changes=changes,
            weights=weights,
        )

    def _search(self, state: LBFGSState, value, slope, decreased, finite) -> LBFGSState:
        """The trial was too long (no decrease) or too short (still steep): choose another length."""
        xp = namespace(state.position)
        length, bracket = _next_length(state, value, slope, decreased, finite)
        value_low, slope_low = state.low
        low = pick(decreased, value, value_low), pick(decreased, slope, slope_low)

        # A search that will not end: forget the curvature and go down the gradient; if that was it already, stop.
        exhausted = state.n_trials >= _MAX_TRIALS
        fresh = state.weights[-1] == 0
        restart = exhausted & ~fresh
        direction = choose(restart, lambda: -state.gradient, lambda: state.direction)
        length = choose(restart, lambda: self._first_length(state.gradient), lambda: length)
        zero = number(0.0, state.gradient)
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
            bracket=(pick(restart, zero, bracket[0]), pick(restart, zero + xp.inf, bracket[1])),
            low=(
                pick(restart, state.value, low[0]),
                choose(restart, lambda: -state.gradient.dot(state.gradient), lambda: low[1]),
            ),
            n_trials=pick(restart, 0 * state.n_trials, state.n_trials + 1),
            moves=state.moves,
            changes=state.changes,
            weights=choose(restart, lambda: _repeated(zero, self.memory), lambda: state.weights),
        )

    def _first_length(self, gradient: Array) -> Array:
        xp = namespace(gradient)
        return xp.minimum(1.0, self.first_step / xp.maximum(xp.sqrt(gradient.dot(gradient)), _TINY))


def _next_length(state: LBFGSState, value, slope, decreased, finite):
    """A step length inside the bracket, or beyond the trial while no length has been too long."""
    xp = namespace(state.position)
    short, long = state.bracket
    guess = _cubic_minimum(short, *state.low, state.length, value, slope)
    good = finite & xp.isfinite(guess)
    short, long = pick(decreased, state.length, short), pick(decreased, long, state.length)
    width = pick(xp.isinf(long), state.length, long - short)
    inside = choose(
        good, lambda: _between(guess, short + 0.1 * width, short + 0.9 * width), lambda: short + 0.25 * width
    )
    beyond = choose(
        good & (guess > state.length),
        lambda: _between(guess, 2.0 * state.length, 8.0 * state.length),
        lambda: 4.0 * state.length,
    )
    return pick(xp.isinf(long), beyond, inside), (short, long)


def _between(value: Array, least: Array, most: Array) -> Array:
    xp = namespace(value)
    return xp.minimum(xp.maximum(value, least), most)  # NumPy's own `clip` takes five times as long


def _repeated(array: Array, n: int) -> Any:
    """So many of the same."""
    xp = namespace(array)
    return (array,) * n if xp.__name__ == "numpy" else xp.broadcast_to(array, (n, *array.shape))


def _with_newest(memory: Any, newest: Array) -> Any:
    """Without the oldest."""
    if isinstance(memory, tuple):
        return (*memory[1:], newest)
    return namespace(newest).concatenate([memory[1:], newest[None]])


def _two_loops(moves, changes, weights, gradient):
    """Minus the inverse Hessian estimate times the gradient; empty places of the memory weigh nothing."""
    loop = _looped if isinstance(moves, tuple) else _looped_in_program
    # The newest pair sets the scale of the directions that the memory does not know.
    newest = weights[-1] * changes[-1].dot(changes[-1])
    scale = pick(newest > 0, 1.0 / pick(newest > 0, newest, 1.0), 1.0)
    return loop(moves, changes, weights, -gradient, scale)


def _looped(moves, changes, weights, direction, scale):
    pairs, amounts = [pair for pair in zip(moves, changes, weights, strict=True) if pair[2] > 0], []
    for pair in reversed(pairs):
        direction, amount = _down(direction, *pair)
        amounts.append(amount)
    direction = direction * scale
    for pair, amount in zip(pairs, reversed(amounts), strict=True):
        direction = _up(direction, *pair, amount)
    return direction


def _looped_in_program(moves, changes, weights, direction, scale):
    # The compiler would compute them anew wherever they are used.
    moves, changes, weights = jax.lax.optimization_barrier((moves, changes, weights))
    n = len(weights)

    def back(turn, carry):
        direction, amounts = carry
        pair = n - 1 - turn
        direction, amount = _down(direction, moves[pair], changes[pair], weights[pair])
        return direction, amounts.at[pair].set(amount)

    def forth(pair, direction):
        return _up(direction, moves[pair], changes[pair], weights[pair], amounts[pair])

    direction, amounts = jax.lax.fori_loop(0, n, back, (direction, 0.0 * weights))
    return jax.lax.fori_loop(0, n, forth, direction * scale)


def _down(direction, move, change, weight):
    amount = weight * move.dot(direction)
    return direction - amount * change, amount


def _up(direction, move, change, weight, amount):
    return direction + (amount - weight * change.dot(direction)) * move


def _cubic_minimum(left, value_left, slope_left, right, value_right, slope_right):
    """Minimiser of the cubic through two points and slopes; NaN where it has none."""
    xp = namespace(right)
    width = right - left
    first = slope_left + slope_right - 3.0 * (value_right - value_left) / pick(width == 0, _TINY, width)
    square = first**2 - slope_left * slope_right
    root = xp.sqrt(pick(square >= 0, square, xp.nan))
    below = slope_right - slope_left + 2.0 * root
    return right - width * (slope_right + root - first) / pick(below == 0, _TINY, below)
