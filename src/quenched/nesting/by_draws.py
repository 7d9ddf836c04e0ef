"""The inner problem of a log density of which nothing is known: means over matched draws of the inner parameters.

With u = m + L z the mean Hessian is, by Stein's identity, that of ∇ zᵀ L⁻¹: exact for quadratics on matched draws. The bound
sees the lower triangle of Lᵀ E[∇ zᵀ] alone, since L is lower triangular; so that triangle stands for the other as well, and
where nothing moves the frozen bound is at its top exactly.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenched.arrays import Array
from quenched.nesting.algebra import Dense, Inverse
from quenched.nesting.newton import Inner, InnerExpected
from quenched.nesting.split import Split
from quenched.objective import RealLine
from quenched.targets import Target, call


class DrawArrays(NamedTuple):
    """Frozen draws of the inner parameters, and the data that the log density is handed."""

    z: Array
    data: Any


@dataclass(frozen=True)
class ByDraws(Inner):
    """A log density with some parameters outside."""

    algebra: Dense
    target: Target
    split: Split

    def log_density(self, theta: Array, inner: Array, data: Any) -> Array:
        """On the real line, log-Jacobian included."""
        vector, space = self.split.join(theta, inner), self.split.space
        value = RealLine(self.target, space, None).as_number(
            call(self.target.function, space.to_natural(vector), data, None)
        )
        return value.astype(vector.dtype) + space.log_jacobian(vector)

    def expected(self, thetas: Array, mean: Array, inverse: Inverse, arrays: DrawArrays) -> InnerExpected:
        dim = self.algebra.dim
        factor = cholesky(inverse.covariance.reshape(dim, dim, -1))
        of_point = jax.value_and_grad(lambda inner, theta: self.log_density(theta, inner, arrays.data))
        of_lanes = jax.vmap(of_point, in_axes=(1, 0), out_axes=(0, 1))

        def at_draw(totals, z):
            values, gradients = of_lanes(_placed(mean, factor, z), thetas)
            along = jnp.sum(factor * gradients[:, None], axis=0)  # Lᵀ g
            return jax.tree.map(jnp.add, totals, (values, gradients, along[:, None] * z[None, :, None])), None

        nothing = (jnp.zeros(len(thetas)), jnp.zeros_like(mean), jnp.zeros_like(factor))
        totals, _ = jax.lax.scan(at_draw, nothing, arrays.z)
        value, gradient, along = jax.tree.map(lambda total: total / len(arrays.z), totals)
        lower = jnp.tril(jnp.moveaxis(along, -1, 0))
        whitened = -jnp.moveaxis(lower + jnp.swapaxes(jnp.tril(lower, -1), 1, 2), 0, -1)
        half = backward(factor, whitened)
        precision = backward(factor, jnp.swapaxes(half, 0, 1))
        return InnerExpected(value, gradient, precision.reshape(dim * dim, -1))

    def value(self, thetas: Array, mean: Array, inverse: Inverse, arrays: DrawArrays) -> Array:
        dim = self.algebra.dim
        factor = cholesky(inverse.covariance.reshape(dim, dim, -1))
        of_lanes = jax.vmap(lambda inner, theta: self.log_density(theta, inner, arrays.data), in_axes=(1, 0))
        total = lambda total, z: (total + of_lanes(_placed(mean, factor, z), thetas), None)
        return jax.lax.scan(total, jnp.zeros(len(thetas)), arrays.z)[0] / len(arrays.z)


def _placed(mean: Array, factor: Array, z: Array) -> Array:
    """m + L z in every lane, (dim, lanes)."""
    return mean + jnp.einsum("ijl,j->il", factor, z)


def cholesky(matrix: Array) -> Array:
    """Lower-triangular factors of (dim, dim, lanes), column by column."""
    below = jnp.arange(len(matrix))

    def step(k, carried):
        matrix, factor = carried
        column = jnp.where(below[:, None] >= k, matrix[:, k] / jnp.sqrt(matrix[k, k]), 0.0)
        return matrix - column[:, None] * column[None], factor.at[:, k].set(column)

    return jax.lax.fori_loop(0, len(matrix), step, (matrix, jnp.zeros_like(matrix)))[1]


def backward(factor: Array, right: Array) -> Array:
    """L⁻ᵀ times (dim, columns, lanes), from the last row up."""
    dim = len(factor)

    def step(back, solution):
        k = dim - 1 - back
        rest = right[k] - jnp.sum(factor[:, k][:, None] * solution, axis=0)
        return solution.at[k].set(rest / factor[k, k])

    return jax.lax.fori_loop(0, dim, step, jnp.zeros_like(right))
