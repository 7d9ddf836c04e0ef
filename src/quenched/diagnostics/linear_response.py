"""Linear response: how the fitted means answer to a push on the target (Giordano, Broderick and Jordan 2018).

The covariance of f and g under the target is the change of E[f] when g is added to the log density. At an optimum of the
bound that change is ∇E[f]ᵀ H⁻¹ ∇E[g], H the curvature of the bound. A family that leaves out correlations has means that
know about them: linear response gives the standard deviations that the family itself gets wrong.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from quenched.arrays import Array
from quenched.diagnostics.conjugate_gradients import solve
from quenched.diagnostics.curvature import Curvature
from quenched.execute import compiled
from quenched.objective import Coordinates
from quenched.posterior import moment_draws
from quenched.transforms import Parameters, Space

_TOLERANCE = 1e-4  # of the solution; variances are right to its square
_MAX_PRODUCTS = 200
_ROWS = 16  # of a derivative at a time: they hold all draws


class Response(NamedTuple):
    """Moments of a function of the parameters."""

    mean: Any  # under the fitted posterior, shaped like the function's value
    sd: Any  # by linear response
    covariance: np.ndarray  # of the raveled value


class LinearResponse:
    """Standard deviations by linear response, for all parameters or for functions of them; computed when asked for.

    Hyperparameters are held where the fit left them.
    """

    def __init__(self, curvature: Curvature, space: Space):
        self._curvature, self._space = curvature, space

    @cached_property
    def covariance(self) -> np.ndarray:
        """Of the raveled parameters on the real line."""
        return self._respond(_as_it_is)[1]

    @cached_property
    def sd(self) -> Parameters:
        """In natural units, shaped like `start`."""
        if self._space.constrained:
            return self._of(_as_it_is).sd
        return self._space.unravel(np.sqrt(np.diag(self.covariance)))

    def of(self, function: Callable[[Parameters], Any]) -> Response:
        """Mean and standard deviation of a function of the parameters, which are in natural units.

        Parameters
        ----------
        function
            In JAX; returns a number, an array or a pytree of them.
        """
        return self._of(lambda parameters: function(parameters))  # a new one: what it refers to may have changed

    def _of(self, function: Callable[[Parameters], Any]) -> Response:
        with jax.enable_x64(True):
            value = lambda vector: function(self._space.to_natural(vector))
            shapes = jax.eval_shape(value, jax.ShapeDtypeStruct((self._space.dim,), np.float64))
            mean, covariance = self._respond(function, self._space)
            return Response(_shaped(mean, shapes), _shaped(np.sqrt(np.diag(covariance)), shapes), covariance)

    def _respond(self, function: Callable[[Any], Any], space: Space | None = None) -> tuple[np.ndarray, np.ndarray]:
        """E[f] and its linear-response covariance, f a function in natural units, or without a space on the real line."""
        with jax.enable_x64(True):
            z = moment_draws(self._space.dim).points
            answers = _expectation(function, space, self._curvature.coordinates, z)
            mean, pushes = (np.asarray(answer) for answer in answers)
            pushes = pushes[:, : self._curvature.size]  # hyperparameters are held
            steps = [
                solve(self._curvature.times, push, tolerance=_TOLERANCE, max_products=_MAX_PRODUCTS).vector
                for push in pushes
            ]
            covariance = pushes @ np.array(steps).T
            return mean, 0.5 * (covariance + covariance.T)


def _as_it_is(value: Any) -> Any:
    return value


@partial(compiled, static_argnums=(0, 1))
def _expectation(function: Callable[[Any], Any], space: Space | None, coordinates: Coordinates, z: Array):
    """E[f], raveled, and its derivative in whitened coordinates."""

    def of_one(vector):
        return ravel_pytree(function(vector if space is None else space.to_natural(vector)))[0]

    def expected(vector):
        return jnp.mean(jax.vmap(of_one)(coordinates.read(vector)[0].transform(z)), axis=0)

    mean, pull = jax.vjp(expected, jnp.zeros(coordinates.size))
    return mean, jax.lax.map(lambda one: pull(one)[0], jnp.eye(mean.size), batch_size=_ROWS)


def _shaped(vector: np.ndarray, shapes: Any) -> Any:
    """A raveled value as the pytree of arrays that it was."""
    leaves, structure = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = np.split(vector, ends[:-1]) if leaves else []
    return jax.tree.unflatten(structure, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)])
