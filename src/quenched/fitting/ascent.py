"""Raise the bound on one frozen set of draws: the loop that every method shares.

The loop runs on the host. Each turn is one evaluation of the bound, four small compiled programs; that leaves room for
progress, time limits and interruption, and for targets that JAX cannot trace.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from quenched.families import Gaussian
from quenched.objective import Coordinates, Objective, advance
from quenched.optimise import Minimiser
from quenched.result import Status
from quenched.targets import Hyper

Watch = Callable[[float, int], Status | None]  # told the bound and the evaluations; may ask to stop


class Ascent(NamedTuple):
    """Where an ascent ended."""

    posterior: Gaussian
    hyper: Hyper
    bound: float
    status: Status
    steepness: float  # largest component of the gradient, in whitened coordinates
    n_objective_evaluations: int


read = jax.jit(Coordinates.read)


def ascend(
    objective: Objective,
    posterior: Gaussian,
    hyper: Hyper,
    minimiser: Minimiser,
    *,
    gradient_tolerance: float,
    max_evaluations: int,
    watch: Watch,
    profile: bool = True,
    whiten_every: int = 15,
) -> Ascent:
    """Ascend in the whitened coordinates of the posterior it starts from, whitening again when it has moved far."""
    problem = objective.problem
    coordinates = Coordinates(posterior, hyper.free)
    active = jnp.ones(coordinates.size)
    state = minimiser.init(jnp.zeros(coordinates.size))
    trial, free = posterior, hyper.free
    count, since, status = 0, 0, None
    while status is None:
        totals = objective.totals(trial, free)
        count, since = count + 1, since + 1
        step = advance(
            minimiser, problem.form, profile, state, coordinates, totals, float(objective.n), hyper, active
        )
        moved_on = int(step.state.n_steps) > int(state.n_steps) or not bool(state.started)
        state, trial, free = step.state, step.trial, step.trial_free
        if moved_on:
            hyper = step.hyper._replace(free=read(coordinates, state.position)[1])
            if since >= whiten_every and float(step.moved) > 0.5:
                coordinates = Coordinates(*read(coordinates, state.position))
                # The totals at the point just accepted serve again as the first evaluation there.
                state = minimiser.init(jnp.zeros_like(state.position))
                step = advance(
                    minimiser, problem.form, profile, state, coordinates, totals, float(objective.n), hyper, active
                )
                state, trial, free, since = step.state, step.trial, step.trial_free, 0
        bound, steepness = -float(state.value), float(step.steepness)
        tolerance = _attainable(gradient_tolerance, problem.noise, bound)
        status = _outcome(steepness, tolerance, bool(state.stalled), bound, problem.noise)
        if status is None:
            status = watch(bound, objective.n)
        if status is None and count >= max_evaluations:
            status = Status.MAX_EVALUATIONS
    posterior, free = read(coordinates, state.position)
    return Ascent(posterior, hyper._replace(free=free), bound, status, steepness, count)


def climb(
    objective: Objective,
    posterior: Gaussian,
    hyper: Hyper,
    minimiser: Minimiser,
    active: Array,
    *,
    max_steps: int,
    watch: Watch,
) -> Ascent:
    """A few steps in plain coordinates (m, L), over the `active` ones: the inner loops of Algorithm 1."""
    problem = objective.problem
    plain = Coordinates(jax.tree.map(jnp.zeros_like, posterior), jnp.zeros_like(hyper.free))
    start = jnp.concatenate([ravel_pytree(posterior)[0], hyper.free])
    state = minimiser.init(start)
    trial, free, status, count, steepness = posterior, hyper.free, None, 0, np.inf
    while status is None and int(state.n_steps) < max_steps and count < 2 * max_steps + 1:
        totals = objective.totals(trial, free)
        count += 1
        step = advance(minimiser, problem.form, False, state, plain, totals, float(objective.n), hyper, active)
        state, trial, free, steepness = step.state, step.trial, step.trial_free, float(step.steepness)
        if bool(state.stalled):
            break
        status = watch(-float(state.value), objective.n)
    posterior, free = read(plain, state.position)
    return Ascent(
        posterior, hyper._replace(free=free), -float(state.value), status or Status.CONVERGED, steepness, count
    )


def _attainable(tolerance: float, noise: float, bound: float) -> float:
    """A gradient cannot be made smaller than the square root of the function's rounding error."""
    return max(tolerance, float(np.sqrt(noise * max(abs(bound), 1.0)))) if np.isfinite(bound) else tolerance


def _outcome(steepness: float, tolerance: float, stalled: bool, bound: float, noise: float) -> Status | None:
    if not np.isfinite(bound):
        return Status.NOT_FINITE
    if steepness <= tolerance:
        return Status.CONVERGED
    if stalled:
        # In whitened coordinates half the squared gradient is about the nats still to be gained.
        negligible = 0.5 * steepness**2 <= max(1e-6, 100.0 * noise * abs(bound))
        return Status.CONVERGED if negligible else Status.NO_ASCENT
    return None
