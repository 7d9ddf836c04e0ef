"""Dense covariance: a lower-triangular scale with its diagonal kept as logarithms."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from quenched.arrays import Array
from quenched.families.gaussian import Family, Gaussian
from quenched.families.precision import factor_of_inverse, factors_of_inverse
from quenched.families.triangle import pack, unpack


class FullGaussian(Gaussian):
    """q = N(mean, L Lᵀ), L lower triangular.

    `log_diagonal` is log diag(L); `lower` holds the entries below it, packed.
    """

    mean: Array
    log_diagonal: Array
    lower: Array

    @property
    def scale(self) -> Array:
        return unpack(self.lower, self.dim) + jnp.diag(jnp.exp(self.log_diagonal))

    def transform(self, draws):
        return self.mean + draws @ self.scale.T

    def standardise(self, points):
        return solve_triangular(self.scale, (points - self.mean).T, lower=True).T

    def compose(self, inner):
        scale = self.scale
        lower = pack(scale @ inner.scale)
        return FullGaussian(self.mean + scale @ inner.mean, self.log_diagonal + inner.log_diagonal, lower)

    def shifted(self, shift):
        return FullGaussian(self.mean + shift, self.log_diagonal, self.lower)

    def log_determinant(self):
        return jnp.sum(self.log_diagonal)

    def variance(self):
        return jnp.sum(self.scale**2, axis=-1)


def from_scale(mean: np.ndarray, scale: np.ndarray) -> FullGaussian:
    """A member from a lower-triangular matrix with a positive diagonal."""
    return FullGaussian(np.asarray(mean), np.log(np.diagonal(scale)), pack(np.asarray(scale)))  # pyright: ignore


class Full(Family):
    """Every pair of parameters may correlate."""

    @property
    def name(self):
        return "full"

    def groups(self, sizes):
        return None

    def member(self, mean, precision, sizes):
        return from_scale(np.asarray(mean), factor_of_inverse(np.asarray(precision)))

    def members(self, means, precisions, sizes):
        scales = factors_of_inverse(precisions)
        log_diagonals = np.log(np.diagonal(scales, axis1=1, axis2=2))
        return FullGaussian(np.array(means), log_diagonals, np.array(jax.vmap(pack)(scales)))  # pyright: ignore

    def isotropic(self, mean, scale, sizes):
        return from_scale(np.asarray(mean), np.diag(np.asarray(scale)))
