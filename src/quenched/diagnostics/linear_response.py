"""Linear response: how the fitted means answer to a push on the target (Giordano, Broderick and Jordan 2018).

The covariance of f and g under the target is the change of E[f] when g is added to the log density. At an optimum of the
bound that change is ∇E[f]ᵀ H⁻¹ ∇E[g], H the curvature of the bound. A family that leaves out correlations has means that
know about them: linear response gives the standard deviations that the family itself gets wrong.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from quenched.diagnostics.conjugate_gradients import solve
from quenched.diagnostics.curvature import Curvature
from quenched.posterior import moment_draws
from quenched.transforms import Parameters, Space

_TOLERANCE = 1e-4  # of the solution; variances are right to its square
_MAX_PRODUCTS = 200


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
        return self._respond(lambda vector: vector)[1]

    @cached_property
    def sd(self) -> Parameters:
        """In natural units, shaped like `start`."""
        if self._space.constrained:
            return self.of(lambda parameters: parameters).sd
        return self._space.unravel(np.sqrt(np.diag(self.covariance)))

    def of(self, function: Callable[[Parameters], Any]) -> Response:
        """Mean and standard deviation of a function of the parameters, which are in natural units.

        Parameters
        ----------
        function
            In JAX; returns a number, an array or a pytree of them.
        """
        natural = lambda vector: function(self._space.to_natural(vector))
        with jax.enable_x64(True):
            shapes = jax.eval_shape(natural, jnp.zeros(self._space.dim))
            _, unravel = ravel_pytree(jax.tree.map(lambda shape: np.zeros(shape.shape), shapes))
            mean, covariance = self._respond(lambda vector: ravel_pytree(natural(vector))[0])
            as_value = lambda vector: jax.tree.map(np.asarray, unravel(vector))
            return Response(as_value(mean), as_value(np.sqrt(np.diag(covariance))), covariance)

    def _respond(self, function: Callable[[Any], Any]) -> tuple[np.ndarray, np.ndarray]:
        """E[f] and its linear-response covariance, f a vector-valued function of real-line vectors."""
        with jax.enable_x64(True):
            here, z = self._curvature.coordinates, moment_draws(self._space.dim).points
            pad = np.zeros(here.size - self._curvature.size)

            @jax.jit
            def expected(vector):
                member, _ = here.read(jnp.concatenate([vector, pad]))
                return jnp.mean(jax.vmap(function)(member.transform(z)), axis=0)

            origin = np.zeros(self._curvature.size)
            mean, pushes = np.asarray(expected(origin)), np.asarray(jax.jacrev(expected)(origin))
            steps = [
                solve(self._curvature.times, push, tolerance=_TOLERANCE, max_products=_MAX_PRODUCTS).vector
                for push in pushes
            ]
            covariance = pushes @ np.array(steps).T
            return mean, 0.5 * (covariance + covariance.T)
