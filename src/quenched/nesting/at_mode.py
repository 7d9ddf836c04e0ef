"""Laplace's Gaussians inside: the mode of the inner parameters and the curvature there, as nested Laplace has them.

The same search finds them when the log density is looked at where the mean is, instead of averaged around it. The bound is
replaced by Laplace's estimate of the log evidence, log p(θ, u) + dim/2 log 2π − ½ log |H|, which also changes with the
curvature: its slope is not that with the Gaussian held.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from quenched.arrays import Array
from quenched.nesting.algebra import Dense, Inverse
from quenched.nesting.bordered import Bordered
from quenched.nesting.by_draws import ByDraws
from quenched.nesting.by_terms import ByTerms
from quenched.nesting.newton import Inner, InnerExpected, entropy


@dataclass(frozen=True)
class AtMode(Inner):
    """An inner problem, looked at where the mean is."""

    algebra: Dense | Bordered
    of: ByDraws | ByTerms
    envelope: ClassVar[bool] = False

    def worth(self, value: Array, inverse: Inverse) -> Array:
        return value

    def closing(self, inverse: Inverse) -> Array:
        return entropy(inverse, self.algebra.dim) - 0.5 * self.algebra.dim

    def expected(self, thetas: Array, mean: Array, inverse: Inverse, arrays: Any) -> InnerExpected:
        if isinstance(self.of, ByDraws):
            return self._of_log_density(thetas, mean, arrays)
        value, gradient, precision = jnp.zeros(len(thetas)), jnp.zeros_like(mean), jnp.zeros_like(inverse.covariance)
        for rows, own in zip(self.of.rows, arrays.terms, strict=True):
            found = _second_order(lambda there, theta, held: rows.at(there, theta, held, arrays.given))  # noqa: B023
            values, slopes, curved = jax.vmap(
                jax.vmap(found, in_axes=(1, 0, None), out_axes=(0, 1, 2)), in_axes=(0, None, 0)
            )(own.maps.means(mean), thetas, own.own)
            value = value + jnp.sum(values, axis=0)
            gradient = own.maps.add_gradient(gradient, slopes)
            precision = own.maps.add_curvature(precision, -curved)
        return InnerExpected(value, gradient, precision)

    def _of_log_density(self, thetas: Array, mean: Array, arrays: Any) -> InnerExpected:
        assert isinstance(self.of, ByDraws)
        of_one = lambda inner, theta: self.of.log_density(theta, inner, arrays.data)  # pyright: ignore
        found = jax.vmap(_second_order(of_one), in_axes=(1, 0), out_axes=(0, 1, 2))(mean, thetas)
        return InnerExpected(found[0], found[1], -found[2].reshape(self.algebra.size, -1))

    def value(self, thetas: Array, mean: Array, inverse: Inverse, arrays: Any) -> Array:
        return self.expected(thetas, mean, inverse, arrays).value


def _second_order(function: Any) -> Any:
    """Value, gradient and Hessian in the first argument."""
    return lambda *inputs: (function(*inputs), jax.grad(function)(*inputs), jax.hessian(function)(*inputs))
