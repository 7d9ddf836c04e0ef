"""What every Gaussian posterior can do, whatever the structure of its covariance.

A member of a family is an affine map z -> mean + scale z of standard-normal draws. The maps of one family form a group:
`outer.compose(inner)` stays in the family. That is what whitened coordinates are: the fit holds an `outer` member that
is roughly right and optimises an `inner` one that begins at the identity.
"""

from abc import abstractmethod
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.families.precision import positive_definite

LOG_TWO_PI = float(np.log(2.0 * np.pi))


class Gaussian(eqx.Module):
    """A Gaussian with numbers: q = N(mean, scale scaleᵀ), on the real line."""

    mean: eqx.AbstractVar[Array]

    @property
    def dim(self) -> int:
        return self.mean.shape[-1]

    @abstractmethod
    def transform(self, draws: Array) -> Array:
        """mean + scale z for every row z."""

    @abstractmethod
    def standardise(self, points: Array) -> Array:
        """The draws z behind the points w: the inverse of `transform`."""

    @abstractmethod
    def compose(self, inner: Self) -> Self:
        """The member whose `transform` is this one's after that of `inner`."""

    @abstractmethod
    def shifted(self, shift: Array) -> Self:
        """The member with its mean moved by a vector."""

    @abstractmethod
    def log_determinant(self) -> Array:
        """log |det scale|."""

    @abstractmethod
    def variance(self) -> Array:
        """Diagonal of the covariance."""

    @property
    @abstractmethod
    def scale(self) -> Array:
        """The dense matrix L."""

    @property
    def covariance(self) -> Array:
        """L Lᵀ, dense."""
        return self.scale @ self.scale.T

    def entropy(self) -> Array:
        return 0.5 * self.dim * (LOG_TWO_PI + 1.0) + self.log_determinant()

    def log_density(self, points: Array) -> Array:
        """log q at every row."""
        draws = self.standardise(points)
        return -0.5 * jnp.sum(draws**2, axis=-1) - 0.5 * self.dim * LOG_TWO_PI - self.log_determinant()

    def second_moment(self) -> Array:
        """E wᵀw = mean·mean + tr(covariance): what an isotropic prior needs to know."""
        return self.mean @ self.mean + jnp.sum(self.variance())

    def kl_to_isotropic(self, precision: Array) -> Array:
        """KL(q ‖ N(0, I / precision)): Eq. (10) of the paper."""
        quadratic = precision * self.second_moment() - self.dim
        return 0.5 * (quadratic - self.dim * jnp.log(precision)) - self.log_determinant()

    def kl_to_gaussian(self, mean: Array, precision: Array) -> Array:
        """KL(q ‖ N(mean, precision⁻¹)) for a dense prior precision."""
        away = self.mean - mean
        quadratic = jnp.sum((precision @ self.scale) * self.scale) + away @ precision @ away - self.dim
        _, log_determinant = jnp.linalg.slogdet(precision)
        return 0.5 * (quadratic - log_determinant) - self.log_determinant()

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """Independent samples from the posterior, (n, dim), on the real line."""
        draws = np.random.default_rng(seed).standard_normal((n, self.dim))
        return np.asarray(self.transform(jnp.asarray(draws, self.mean.dtype)))


class Family(eqx.Module):
    """A kind of Gaussian: makes members and says which coordinates it couples."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As in `family=...`."""

    @abstractmethod
    def groups(self, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...] | None:
        """Sets of coordinates with a dense covariance among themselves; None for one set of all.

        `sizes` are the numbers of coordinates of the parameter leaves.
        """

    @abstractmethod
    def member(self, mean: Array, precision: Array, sizes: tuple[int, ...]) -> Gaussian:
        """The member nearest in KL(q ‖ p) to a Gaussian p of this mean and dense precision.

        A precision that is indefinite or singular is made positive definite first.
        """

    @abstractmethod
    def isotropic(self, mean: Array, scale: Array, sizes: tuple[int, ...]) -> Gaussian:
        """The member with this mean and standard deviations (a vector), uncorrelated."""

    def members(self, means: np.ndarray, precisions: np.ndarray, sizes: tuple[int, ...]) -> Gaussian:
        """`member` of many means and precisions: one Gaussian whose arrays are stacked."""
        member = self.member
        each = [member(mean, precision, sizes) for mean, precision in zip(means, precisions, strict=True)]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *each)

    def coupled_coordinates(self, sizes: tuple[int, ...]) -> int:
        """Size of the largest group."""
        groups = self.groups(sizes)
        return sum(sizes) if groups is None else max(len(group) for group in groups)


__all__ = ["LOG_TWO_PI", "Family", "Gaussian", "positive_definite"]
