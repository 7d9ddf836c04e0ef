"""Independent parameters: one standard deviation each."""

from typing import ClassVar

import numpy as np

from quenched.arrays import Array, namespace
from quenched.families.gaussian import Family, Gaussian, with_equal_axes
from quenched.families.positive_definite import natural_units
from quenched.families.roles import location, spread


class DiagonalGaussian(Gaussian):
    """q = N(mean, diag(sd²))."""

    in_numpy: ClassVar[bool] = True

    mean: Array = location()
    log_sd: Array = spread()

    @property
    def groups(self):
        return _each_alone(self.dim)

    @property
    def scale(self) -> Array:
        xp = namespace(self.log_sd)
        return xp.diag(xp.exp(self.log_sd))

    @property
    def family(self):
        return Diagonal()

    def transform(self, draws):
        return self.mean + namespace(self.log_sd).exp(self.log_sd) * draws

    def standardise(self, points):
        return (points - self.mean) * namespace(self.log_sd).exp(-self.log_sd)

    def compose(self, inner):
        sd = namespace(self.log_sd).exp(self.log_sd)
        return DiagonalGaussian(self.mean + sd * inner.mean, self.log_sd + inner.log_sd)

    def shifted(self, shift):
        return DiagonalGaussian(self.mean + shift, self.log_sd)

    def log_determinant(self):
        return self.log_sd.sum(axis=-1)

    def variance(self):
        return namespace(self.log_sd).exp(2.0 * self.log_sd)


class Diagonal(Family):
    """No pair of parameters correlates."""

    affine: ClassVar[bool] = True

    @property
    def name(self):
        return "diagonal"

    def groups(self, sizes):
        return _each_alone(sum(sizes))

    def member(self, mean, precision, sizes):
        mean, precision = with_equal_axes(mean, precision, 2)
        return DiagonalGaussian(mean, np.log(natural_units(precision)))

    def isotropic(self, mean, scale, sizes):
        mean, scale = with_equal_axes(mean, scale, 1)
        return DiagonalGaussian(mean, np.log(scale))


def _each_alone(dim: int) -> tuple[tuple[int, ...], ...]:
    return tuple((index,) for index in range(dim))
