"""The modes of many log joint densities: the damped Newton method of `find_mode`, trial for trial, in lanes."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve

from quenched.arrays import Array
from quenched.fitting.many.compiling import compiled
from quenched.fitting.many.lanes import Work
from quenched.fitting.many.rows import where
from quenched.fitting.mode import MAX_EXTRA, MAX_STEPS, MAX_TRIALS, MODE_TOLERANCE, Expansion, log_joint, settled
from quenched.targets import Form, Hyper, Moments

_TURNS = 4  # between two looks at which lanes have finished
_COLUMNS = 32  # of a Hessian at a time


class Newton(NamedTuple):
    """A search under way."""

    at: Expansion
    hyper: Hyper
    damping: Array
    factored: Array  # False once the precision at this point was found not to be positive definite
    concave: Array
    steps: Array
    trials: Array  # of this step
    count: Array  # expansions
    converged: Array
    running: Array


class Modes(NamedTuple):
    """What was found, as in `Mode`."""

    point: Array
    precision: Array
    value: Array
    hyper: Hyper
    converged: Array
    concave: Array
    count: Array


def modes(second_order, form: Form) -> Work:
    """The work of finding modes. Inputs are (expansions at the starts, hyper)."""
    return Work(
        begin=lambda inputs, data: _begin(*inputs),
        advance=lambda lanes, data: _advance(second_order, form, lanes, data),
        report=lambda lanes: _report(form, lanes),
    )


@compiled(static_argnums=0)
def expand(second_order, points: Array, data: Any, hyper: Hyper) -> Expansion:
    """The targets to second order, each at its own point."""
    batch = min(_COLUMNS, points.shape[1])
    one = lambda point, own, free: Expansion(point, *second_order(point, own, free, batch))
    return jax.vmap(one)(points, data, hyper.free)


@jax.jit
def _begin(at: Expansion, hyper: Hyper) -> Newton:
    zero, yes = jnp.zeros(len(at.value)), jnp.ones(len(at.value), bool)
    none = zero.astype(int)
    return Newton(at, hyper, zero, yes, yes, none, none, none + 1, ~yes, yes)


@compiled(static_argnums=(0, 1), donate_argnums=2)
def _advance(second_order, form: Form, lanes: Newton, data: Any) -> Newton:
    """A few trials of all lanes."""

    def unfinished(carry):
        lanes, turns = carry
        return (turns < _TURNS) & lanes.running.any()

    def together(carry):
        lanes, turns = carry
        return where(lanes.running, _turn(second_order, form, lanes, data), lanes), turns + 1

    return jax.lax.while_loop(unfinished, together, (lanes, jnp.asarray(0)))[0]


def _turn(second_order, form: Form, lanes: Newton, data: Any) -> Newton:
    """One trial of a step; when the step has ended, renew the precisions and see whether all has settled."""
    joint = jax.vmap(partial(log_joint, form))
    value, gradient, precision = joint(lanes.at, lanes.hyper)
    direction, factored = _solve(precision, gradient[..., None], lanes.damping, lanes.factored)
    direction = direction[..., 0]
    curves_down = jax.lax.cond(
        (lanes.damping > 0).any(),
        lambda: jnp.isfinite(jnp.linalg.cholesky(precision)).all(axis=(1, 2)),
        lambda: factored,
    )
    concave = lanes.concave & (curves_down | (lanes.trials > 0))
    decrement = jnp.sum(gradient * direction, axis=1)
    nothing_left = decrement < MODE_TOLERANCE
    trial = expand(second_order, lanes.at.point + direction, data, lanes.hyper)
    enough = value + 1e-4 * decrement - 1e-13 * abs(value)
    accepted = ~nothing_left & _finite(trial) & (joint(trial, lanes.hyper)[0] >= enough)
    damping = jnp.where(
        accepted, jnp.where(lanes.damping > 1e-3, lanes.damping / 8.0, 0.0), jnp.maximum(4.0 * lanes.damping, 1e-3)
    )
    ahead = lanes._replace(
        at=where(accepted, trial, lanes.at),
        damping=jnp.where(nothing_left, lanes.damping, damping),
        factored=factored,
        concave=concave,
        trials=lanes.trials + 1,
        count=lanes.count + ~nothing_left,
    )
    ended = accepted | nothing_left | (ahead.trials >= MAX_TRIALS) | _spent(ahead)
    return where(ended, _stepped(form, ahead, accepted), ahead)


def _stepped(form: Form, lanes: Newton, accepted: Array) -> Newton:
    """The end of a step."""
    hyper = _renewed(form, lanes)
    converged = ~accepted & ~_spent(lanes) & jax.vmap(settled)(hyper, lanes.hyper)
    steps = lanes.steps + 1
    return lanes._replace(
        hyper=hyper,
        steps=steps,
        trials=jnp.zeros_like(lanes.trials),
        factored=jnp.ones_like(lanes.factored),
        converged=converged,
        running=~converged & (steps < MAX_STEPS) & ~_spent(lanes),
    )


def _spent(lanes: Newton) -> Array:
    return lanes.count > MAX_STEPS + MAX_EXTRA  # the one at the start is not counted


def _renewed(form: Form, lanes: Newton) -> Hyper:
    """Closed-form precisions under the Laplace approximation."""
    if not form.learns:
        return lanes.hyper
    at = lanes.at
    precision = jax.vmap(partial(log_joint, form))(at, lanes.hyper)[2]
    eye = jnp.broadcast_to(jnp.eye(precision.shape[-1]), precision.shape)
    covariance, _ = _solve(precision, eye, jnp.zeros(len(precision)), jnp.ones(len(precision), bool))
    mean_value = at.value + 0.5 * jnp.sum(at.hessian * covariance, axis=(1, 2))
    second_moment = jnp.sum(at.point**2, axis=1) + jnp.trace(covariance, axis1=1, axis2=2)
    return jax.vmap(form.updated)(lanes.hyper, Moments(mean_value, second_moment))


def _solve(precision: Array, right: Array, damping: Array, factored: Array) -> tuple[Array, Array]:
    """`NewtonSolver.solve` for many: by factors where they exist, by eigenvalues where any is negative."""
    diagonal = abs(jnp.diagonal(precision, axis1=1, axis2=2))
    largest = diagonal.max(axis=1, keepdims=True)
    spread = 1.0 / jnp.sqrt(jnp.where(diagonal > 0, diagonal, jnp.where(largest > 0, largest, 1.0)))
    scaled = precision * spread[:, None] * spread[..., None]
    factor = jnp.linalg.cholesky(scaled + damping[:, None, None] * jnp.eye(scaled.shape[-1]))
    factored = factored & jnp.isfinite(factor).all(axis=(1, 2))
    right = spread[..., None] * right
    plain = jax.vmap(lambda lower, b: cho_solve((lower, True), b))(factor, right)

    def by_eigenvalues():
        values, basis = jnp.linalg.eigh(0.5 * (scaled + scaled.swapaxes(1, 2)))
        weights = 1.0 / (jnp.maximum(abs(values), 1e-12) + damping[:, None])
        turned = basis @ (weights[..., None] * (basis.swapaxes(1, 2) @ right))
        return where(factored, plain, turned)

    return spread[..., None] * jax.lax.cond(factored.all(), lambda: plain, by_eigenvalues), factored


def _finite(at: Expansion) -> Array:
    return jnp.isfinite(at.value) & jnp.isfinite(at.gradient).all(axis=1) & jnp.isfinite(at.hessian).all(axis=(1, 2))


@partial(jax.jit, static_argnums=0)
def _report(form: Form, lanes: Newton) -> Modes:
    value, _, precision = jax.vmap(partial(log_joint, form))(lanes.at, lanes.hyper)
    concave = lanes.concave & (lanes.damping == 0.0)
    return Modes(lanes.at.point, precision, value, lanes.hyper, lanes.converged, concave, lanes.count)
