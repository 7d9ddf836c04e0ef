"""Scaled conjugate gradients (Møller 1993), the minimiser of the paper.

Each step of the algorithm needs two evaluations: a probe a little way along the direction, whose change of gradient
gives the curvature (Møller's step 2), and the move itself (step 6). `phase` says which of the two the trial is.
The trust in the quadratic model is kept in `damping` (Møller's lambda).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from quenched.arrays import Array, choose, namespace
from quenched.optimise.minimiser import Minimiser

_BEGIN, _PROBE, _MOVE = 0, 1, 2
_WORST = -4.0  # comparison of a move that failed altogether


class SCGState(NamedTuple):
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


@dataclass(frozen=True)
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
        xp = namespace(position)
        zero = xp.zeros(())
        return SCGState(
            position=position,
            value=xp.full_like(zero, xp.inf),
            gradient=xp.zeros_like(position),
            trial=position,
            n_steps=xp.asarray(0),
            started=xp.asarray(False),
            stalled=xp.asarray(False),
            phase=xp.asarray(_BEGIN),
            direction=xp.zeros_like(position),
            curvature=zero,
            damping=xp.full_like(zero, self.initial_damping),
            model_curvature=zero,
            n_since_restart=xp.asarray(0),
        )

    def step(self, state: Any, value: Array, gradient: Array) -> SCGState:
        return choose(
            state.phase == _MOVE,
            lambda: self._move(state, value, gradient),
            lambda: choose(
                state.phase == _PROBE,
                lambda: self._probe(state, gradient),
                lambda: self._begin(state, value, gradient),
            ),
        )

    def _begin(self, state: SCGState, value: Array, gradient: Array) -> SCGState:
        return self._aim(state, state.trial, value, gradient, -gradient, state.damping, 0 * state.n_steps)

    def _aim(self, state, position, value, gradient, direction, damping, n_since_restart) -> SCGState:
        """Stand at a new position and ask for the curvature along a new direction."""
        xp = namespace(position)
        norm = xp.sqrt(direction @ direction)
        return SCGState(
            position=position,
            value=xp.asarray(value),
            gradient=gradient,
            trial=position + self.probe / xp.maximum(norm, 1e-300) * direction,
            n_steps=state.n_steps + state.started,
            started=xp.asarray(True),
            stalled=~xp.isfinite(value) | (norm == 0),
            phase=xp.asarray(_PROBE),
            direction=direction,
            curvature=state.curvature,
            damping=damping,
            model_curvature=state.model_curvature,
            n_since_restart=n_since_restart,
        )

    def _probe(self, state: SCGState, gradient: Array) -> SCGState:
        """Second-order information from a difference of gradients (step 2)."""
        xp = namespace(gradient)
        norm = xp.sqrt(state.direction @ state.direction)
        curvature = state.direction @ (gradient - state.gradient) * norm / self.probe
        # A probe that fell off the domain tells nothing: start from the damping alone.
        curvature = xp.where(xp.isfinite(curvature), curvature, 0.0)
        return self._propose(state, curvature, state.damping)

    def _propose(self, state: SCGState, curvature: Array, damping: Array) -> SCGState:
        """Make the curvature positive and take the step of the quadratic model (steps 3 to 5)."""
        xp = namespace(state.position)
        square = xp.maximum(state.direction @ state.direction, 1e-300)
        damped = curvature + damping * square
        damping = xp.where(damped <= 0, 2.0 * (damping - damped / square), damping)
        damped = xp.where(damped <= 0, curvature + damping * square, damped)
        length = -(state.gradient @ state.direction) / damped
        return SCGState(
            position=state.position,
            value=state.value,
            gradient=state.gradient,
            trial=state.position + length * state.direction,
            n_steps=state.n_steps,
            started=state.started,
            stalled=state.stalled | (damping > self.max_damping),
            phase=xp.asarray(_MOVE),
            direction=state.direction,
            curvature=curvature,
            damping=damping,
            model_curvature=damped,
            n_since_restart=state.n_since_restart,
        )

    def _move(self, state: SCGState, value: Array, gradient: Array) -> SCGState:
        """Compare the move with its model; keep it if the function fell (steps 6 to 9)."""
        xp = namespace(gradient)
        square = xp.maximum(state.direction @ state.direction, 1e-300)
        descent = -(state.gradient @ state.direction)
        comparison = 2.0 * state.model_curvature * (state.value - value) / descent**2
        finite = xp.isfinite(comparison) & xp.all(xp.isfinite(gradient))
        # Møller's rule would damp in proportion to how bad a move was; after an overflow it would never recover.
        comparison = xp.maximum(xp.where(finite, comparison, _WORST), _WORST)
        success = comparison >= 0
        shrunk = xp.where(success & (comparison >= 0.75), 0.25 * state.damping, state.damping)
        damping = xp.where(comparison < 0.25, shrunk + state.model_curvature * (1.0 - comparison) / square, shrunk)

        count = state.n_since_restart + 1
        restart = count >= state.position.size
        coupling = (gradient @ gradient - gradient @ state.gradient) / descent
        direction = xp.where(restart, -gradient, -gradient + coupling * state.direction)
        direction = xp.where(gradient @ direction < 0, direction, -gradient)
        return choose(
            success,
            lambda: self._aim(state, state.trial, value, gradient, direction, damping, xp.where(restart, 0, count)),
            lambda: self._propose(state, state.curvature, damping),
        )
