"""Independent parameters: one standard deviation each."""

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.families.gaussian import Family, Gaussian
from quenched.families.precision import natural_units


class DiagonalGaussian(Gaussian):
    """q = N(mean, diag(sd²))."""

    mean: Array
    log_sd: Array

    @property
    def scale(self) -> Array:
        return jnp.diag(jnp.exp(self.log_sd))

    def transform(self, draws):
        return self.mean + jnp.exp(self.log_sd) * draws

    def standardise(self, points):
        return (points - self.mean) * jnp.exp(-self.log_sd)

    def compose(self, inner):
        return DiagonalGaussian(self.mean + jnp.exp(self.log_sd) * inner.mean, self.log_sd + inner.log_sd)

    def shifted(self, shift):
        return DiagonalGaussian(self.mean + shift, self.log_sd)

    def log_determinant(self):
        return jnp.sum(self.log_sd)

    def variance(self):
        return jnp.exp(2.0 * self.log_sd)


class Diagonal(Family):
    """No pair of parameters correlates."""

    @property
    def name(self):
        return "diagonal"

    def groups(self, sizes):
        return tuple((index,) for index in range(sum(sizes)))

    def member(self, mean, precision, sizes):
        return DiagonalGaussian(np.asarray(mean), np.log(natural_units(np.asarray(precision))))  # pyright: ignore

    def isotropic(self, mean, scale, sizes):
        return DiagonalGaussian(np.asarray(mean), np.log(scale))  # pyright: ignore
