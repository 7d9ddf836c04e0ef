"""Gaussian posteriors, and what a family is.

A Gaussian is an affine map z -> mean + scale z of standard-normal draws. The maps of one family form a group:
`outer.compose(inner)` stays in the family, and that is what whitened coordinates are for a Gaussian.
"""

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np

from quenched.arrays import Array, namespace
from quenched.families.member import Groups, Member
from quenched.frozen import Frozen


class Gaussian(Member):
    """A Gaussian with numbers: q = N(mean, scale scaleᵀ), on the real line."""

    affine: ClassVar[bool] = True

    @abstractmethod
    def compose(self, inner: Self) -> Self:
        """The member whose `transform` is this one's after that of `inner`."""

    def moved(self, inner: Self) -> Self:
        return self.compose(inner)

    def log_slope(self, draws: Array) -> Array:
        return namespace(draws).broadcast_to(self.log_determinant(), draws.shape[:-1])


class Family(Frozen):
    """A kind of posterior: makes members and says which coordinates it couples. `affine` is that of its members.

    Members are made on the host, in NumPy, with nothing to compile. Means, precisions and scales may have leading axes;
    then those of every array of the member are the same.
    """

    affine: ClassVar[bool]

    @property
    @abstractmethod
    def name(self) -> str:
        """As in `family=...`."""

    @property
    def base(self) -> "Family":
        """The family of Gaussians in which a fit of this one begins."""
        return self

    @abstractmethod
    def groups(self, sizes: tuple[int, ...]) -> Groups:
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

    def coupled_coordinates(self, sizes: tuple[int, ...]) -> int:
        """Size of the largest group."""
        groups = self.groups(sizes)
        return sum(sizes) if groups is None else max(len(group) for group in groups)


def with_equal_axes(mean: Array, other: Array, axes: int) -> tuple[np.ndarray, np.ndarray]:
    """A mean and what goes with it, of so many axes, in NumPy and with the same leading axes."""
    mean, other = np.asarray(mean), np.asarray(other)
    if mean.ndim == 1 and other.ndim == axes:
        return mean, other
    leading = np.broadcast_shapes(mean.shape[:-1], other.shape[:-axes])
    # The mean is a copy, as is all that is computed from the other: stacks are written into.
    mean = np.array(np.broadcast_to(mean, (*leading, *mean.shape[-1:])))
    return mean, np.broadcast_to(other, (*leading, *other.shape[-axes:]))
