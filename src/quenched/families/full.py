"""Dense covariance: a lower-triangular scale with its diagonal kept as logarithms."""

from typing import ClassVar

import numpy as np

from quenched.arrays import Array, namespace
from quenched.families.gaussian import Family, Gaussian, with_equal_axes
from quenched.families.positive_definite import factor_of_inverse
from quenched.families.roles import correlation, location, spread
from quenched.families.triangle import pack, packed_size, solve_lower, unpack_with

_FEW_COORDINATES = 3


class FullGaussian(Gaussian):
    """q = N(mean, L Lᵀ), L lower triangular.

    `log_diagonal` is log diag(L); `lower` holds the entries below it, packed.
    """

    in_numpy: ClassVar[bool] = True

    mean: Array = location()
    log_diagonal: Array = spread()
    lower: Array = correlation()

    @property
    def groups(self):
        return None

    @property
    def scale(self) -> Array:
        return unpack_with(namespace(self.lower).exp(self.log_diagonal), self.lower)

    @property
    def family(self):
        return Full()

    def transform(self, draws):
        return self.mean + draws @ self.scale.T

    def standardise(self, points):
        return solve_lower(self.scale, (points - self.mean).T).T

    def compose(self, inner):
        scale = self.scale
        mean = self.mean + (scale @ inner.mean[..., None])[..., 0]
        return FullGaussian(mean, self.log_diagonal + inner.log_diagonal, pack(scale @ inner.scale))

    def shifted(self, shift):
        return FullGaussian(self.mean + shift, self.log_diagonal, self.lower)

    def log_determinant(self):
        return self.log_diagonal.sum(axis=-1)

    def variance(self):
        return (self.scale**2).sum(axis=-1)


def from_scale(mean: np.ndarray, scale: np.ndarray) -> FullGaussian:
    """A member from a lower-triangular matrix with a positive diagonal; or a stack of them."""
    mean, scale = with_equal_axes(mean, scale, 2)
    return FullGaussian(mean, np.log(np.diagonal(scale, axis1=-2, axis2=-1)), pack(scale))


def uncorrelated(mean: np.ndarray, sds: np.ndarray) -> FullGaussian:
    """A member with these standard deviations; or a stack of them."""
    mean, sds = with_equal_axes(mean, sds, 1)
    return FullGaussian(mean, np.log(sds), np.zeros((*sds.shape[:-1], packed_size(sds.shape[-1]))))


class Full(Family):
    """Every pair of parameters may correlate."""

    affine: ClassVar[bool] = True
    every_gaussian: ClassVar[bool] = True

    @property
    def name(self):
        return "full"

    def groups(self, sizes):
        return None

    def first_draws(self, sizes):
        """As few as go most of the way up; of very few coordinates, enough to see on others what they cost."""
        dim = sum(sizes)
        return 64 if dim <= _FEW_COORDINATES else max(32, 4 * dim)

    def warps(self, dim, n_draws):
        from quenched.families.warped import Warped

        return (Warped.affordable(dim, n_draws),)

    def member(self, mean, precision, sizes):
        return from_scale(mean, factor_of_inverse(precision))

    def isotropic(self, mean, scale, sizes):
        return uncorrelated(mean, scale)
