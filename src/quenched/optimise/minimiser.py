"""What every minimiser of a smooth function looks like.

A minimiser here never calls the function. It says where it wants to know it (`state.trial`), is told the value and the
gradient there, and answers with the next state: one evaluation, one `step`. So the same step serves a loop on the host
(in NumPy, where nothing needs compiling), a traced loop, and a batch of problems under `jax.vmap`.
"""

from abc import ABC, abstractmethod
from typing import Any, Protocol

from quenched.arrays import Array


class State(Protocol):
    """Where a minimiser stands: a named tuple, cheap to make on the host and a pytree for JAX.

    Attributes
    ----------
    position, value, gradient
        The best point accepted so far and the function there.
    trial
        The point at which the function must be evaluated next.
    n_steps
        Accepted moves.
    started
        False until the function is known at the starting position.
    stalled
        No lower value can be found along any direction the minimiser knows: either the optimum to the precision of
        the function, or a wrong gradient.
    """

    position: Array
    value: Array
    gradient: Array
    trial: Array
    n_steps: Array
    started: Array
    stalled: Array


class Minimiser(ABC):
    """Turns one evaluation after another into a descent. A frozen dataclass of its settings."""

    @abstractmethod
    def init(self, position: Array) -> Any:
        """Begin at `position`; the first trial is the position itself."""

    @abstractmethod
    def step(self, state: Any, value: Array, gradient: Array) -> Any:
        """Take in the function at `state.trial` and choose the next trial."""

    def again(self, state: Any) -> Any:
        """Begin where a descent has ended, of a function much like the one to come; curvature it has seen may be kept."""
        return self.init(state.position)

    def promise(self, state: Any) -> Array:
        """How far the function is likely to be above its minimum, if its curvature is about one."""
        return 0.5 * state.gradient.dot(state.gradient)
