"""Gaussian posteriors, and what a family is.

A Gaussian is an affine map z -> mean + scale z of standard-normal draws. The maps of one family form a group:
`outer.compose(inner)` stays in the family, and that is what whitened coordinates are for a Gaussian.
"""

from abc import abstractmethod
from typing import ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.families.member import LOG_TWO_PI, Member
from quenched.families.precision import positive_definite


class Gaussian(Member):
    """A Gaussian with numbers: q = N(mean, scale scaleᵀ), on the real line."""

    affine: ClassVar[bool] = True

    @abstractmethod
    def compose(self, inner: Self) -> Self:
        """The member whose `transform` is this one's after that of `inner`."""

    def moved(self, inner: Self) -> Self:
        return self.compose(inner)

    def log_slope(self, draws: Array) -> Array:
        return jnp.broadcast_to(self.log_determinant(), draws.shape[:-1])


class Family(eqx.Module):
    """A kind of posterior: makes members and says which coordinates it couples."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As in `family=...`."""

    @property
    def base(self) -> "Family":
        """The family of Gaussians in which a fit of this one begins."""
        return self

    @abstractmethod
    def groups(self, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...] | None:
        """Sets of coordinates with a dense covariance among themselves; None for one set of all.

        `sizes` are the numbers of coordinates of the parameter leaves.
        """

    @abstractmethod
    def member(self, mean: Array, precision: Array, sizes: tuple[int, ...]) -> Member:
        """The member nearest in KL(q ‖ p) to a Gaussian p of this mean and dense precision.

        A precision that is indefinite or singular is made positive definite first.
        """

    @abstractmethod
    def isotropic(self, mean: Array, scale: Array, sizes: tuple[int, ...]) -> Member:
        """The member with this mean and standard deviations (a vector), uncorrelated."""

    def first_draws(self, sizes: tuple[int, ...]) -> int:
        """With how many draws a fit begins."""
        return max(64, 4 * self.coupled_coordinates(sizes))

    def lift(self, member: Member) -> Member:
        """A member of the base family as one of this family, the same density; its own members as they are."""
        return member

    def members(self, means: np.ndarray, precisions: np.ndarray, sizes: tuple[int, ...]) -> Member:
        """`member` of many means and precisions: one posterior whose arrays are stacked."""
        member = self.member
        each = [member(mean, precision, sizes) for mean, precision in zip(means, precisions, strict=True)]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *each)

    def coupled_coordinates(self, sizes: tuple[int, ...]) -> int:
        """Size of the largest group."""
        groups = self.groups(sizes)
        return sum(sizes) if groups is None else max(len(group) for group in groups)


__all__ = ["LOG_TWO_PI", "Family", "Gaussian", "positive_definite"]
