"""Scaled conjugate gradients (Møller 1993), the minimiser of the paper.

Each step of the algorithm needs two evaluations: a probe a little way along the direction, whose change of gradient
gives the curvature (Møller's step 2), and the move itself (step 6). `phase` says which of the two the trial is.
The trust in the quadratic model is kept in `damping` (Møller's lambda).
"""

import jax
import jax.numpy as jnp
from jax import Array

from quenched.optimise.minimiser import Minimiser, State

_BEGIN, _PROBE, _MOVE = 0, 1, 2


class SCGState(State):
    position: Array
    value: Array
    gradient: Array
    trial: Array
    n_steps: Array
    started: Array
    stalled: Array
    phase: Array
    direction: Array
    curvature: Array  # direction . Hessian . direction, undamped
    damping: Array
    model_curvature: Array  # the damped curvature behind the present trial move
    n_since_restart: Array


class ScaledConjugateGradients(Minimiser):
    """Conjugate gradients without a line search.

    Parameters
    ----------
    probe
        Length of the curvature probe (Møller's sigma).
    initial_damping
        Møller's lambda_1.
    """

    probe: float = 1e-5
    initial_damping: float = 1e-6
    max_damping: float = 1e20

    def init(self, position: Array) -> SCGState:
        zero = jnp.zeros((), position.dtype)
        return SCGState(
            position=position,
            value=jnp.full_like(zero, jnp.inf),
            gradient=jnp.zeros_like(position),
            trial=position,
            n_steps=jnp.asarray(0),
            started=jnp.asarray(False),
            stalled=jnp.asarray(False),
            phase=jnp.asarray(_BEGIN),
            direction=jnp.zeros_like(position),
            curvature=zero,
            damping=jnp.full_like(zero, self.initial_damping),
            model_curvature=zero,
            n_since_restart=jnp.asarray(0),
        )

    def step(self, state: SCGState, value: Array, gradient: Array) -> SCGState:  # pyright: ignore
        branches = (self._begin, self._probe, self._move)
        return jax.lax.switch(state.phase, branches, state, value, gradient)

    def _begin(self, state: SCGState, value: Array, gradient: Array) -> SCGState:
        return self._aim(state, state.trial, value, gradient, -gradient, state.damping, jnp.asarray(0))

    def _aim(self, state, position, value, gradient, direction, damping, n_since_restart) -> SCGState:
        """Stand at a new position and ask for the curvature along a new direction."""
        norm = jnp.linalg.norm(direction)
        return SCGState(
            position=position,
            value=value,
            gradient=gradient,
            trial=position + self.probe / jnp.maximum(norm, 1e-300) * direction,
            n_steps=state.n_steps + state.started,
            started=jnp.asarray(True),
            stalled=~jnp.isfinite(value) | (norm == 0),
            phase=jnp.asarray(_PROBE),
            direction=direction,
            curvature=state.curvature,
            damping=damping,
            model_curvature=state.model_curvature,
            n_since_restart=n_since_restart,
        )

    def _probe(self, state: SCGState, value: Array, gradient: Array) -> SCGState:
        """Second-order information from a difference of gradients (step 2)."""
        norm = jnp.linalg.norm(state.direction)
        curvature = state.direction @ (gradient - state.gradient) * norm / self.probe
        # A probe that fell off the domain tells nothing: start from the damping alone.
        curvature = jnp.where(jnp.isfinite(curvature), curvature, 0.0)
        return self._propose(state, curvature, state.damping)

    def _propose(self, state: SCGState, curvature: Array, damping: Array) -> SCGState:
        """Make the curvature positive and take the step of the quadratic model (steps 3 to 5)."""
        square = jnp.maximum(state.direction @ state.direction, 1e-300)
        damped = curvature + damping * square
        damping = jnp.where(damped <= 0, 2.0 * (damping - damped / square), damping)
        damped = jnp.where(damped <= 0, curvature + damping * square, damped)
        length = -(state.gradient @ state.direction) / damped
        return SCGState(
            position=state.position,
            value=state.value,
            gradient=state.gradient,
            trial=state.position + length * state.direction,
            n_steps=state.n_steps,
            started=state.started,
            stalled=state.stalled | (damping > self.max_damping),
            phase=jnp.asarray(_MOVE),
            direction=state.direction,
            curvature=curvature,
            damping=damping,
            model_curvature=damped,
            n_since_restart=state.n_since_restart,
        )

    def _move(self, state: SCGState, value: Array, gradient: Array) -> SCGState:
        """Compare the move with its model; keep it if the function fell (steps 6 to 9)."""
        square = jnp.maximum(state.direction @ state.direction, 1e-300)
        descent = -(state.gradient @ state.direction)
        comparison = 2.0 * state.model_curvature * (state.value - value) / descent**2
        finite = jnp.isfinite(comparison) & jnp.all(jnp.isfinite(gradient))
        comparison = jnp.where(finite, comparison, -1.0)
        success = comparison >= 0
        shrunk = jnp.where(success & (comparison >= 0.75), 0.25 * state.damping, state.damping)
        damping = jnp.where(
            comparison < 0.25, shrunk + state.model_curvature * (1.0 - comparison) / square, shrunk
        )

        count = state.n_since_restart + 1
        restart = count >= state.position.size
        coupling = (gradient @ gradient - gradient @ state.gradient) / descent
        direction = jnp.where(restart, -gradient, -gradient + coupling * state.direction)
        direction = jnp.where(gradient @ direction < 0, direction, -gradient)
        moved = self._aim(
            state, state.trial, value, gradient, direction, damping, jnp.where(restart, 0, count)
        )
        retried = self._propose(state, state.curvature, damping)
        return jax.tree.map(lambda new, old: jnp.where(success, new, old), moved, retried)
