"""Gaussian posteriors, and what a family is.

A Gaussian is an affine map z -> mean + scale z of standard-normal draws. The maps of one family form a group:
`outer.compose(inner)` stays in the family, and that is what whitened coordinates are for a Gaussian.
"""

from abc import abstractmethod
from enum import Enum
from typing import ClassVar, Self

import numpy as np

from quenched.arrays import Array, namespace
from quenched.families.member import Groups, Member
from quenched.families.sparsity import Pattern
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


class Bound(Enum):
    """Which bound a fit of some family raises; and so who raises it, and by what its errors are known."""

    ON_DRAWS = "the mean over draws of all parameters, by ascents in whitened coordinates"
    OF_TERMS = "a sum of terms, each by draws of the few numbers that it sees, by Newton steps of a sparse precision"
    NESTED = "that of a few outer parameters, for each of whose draws the others have a Gaussian of their own"


class Family(Frozen):
    """A kind of posterior: makes members and says which coordinates it couples.

    Members are made on the host, in NumPy, with nothing to compile. Means, precisions and scales may have leading axes;
    then those of every array of the member are the same.

    What a fit needs to know of a family it is told here: nobody outside this room asks which one it is.

    Attributes
    ----------
    affine
        That of its members.
    every_gaussian
        Whether every Gaussian is one of its members, so that a fit may go to the Gaussian of a quadratic at once.
    bound
        Which bound its members raise.
    judged_by_checks
        Whether what draws have cost is seen on check draws alone: of very many numbers, the gradient on other draws says
        several times as much.
    """

    affine: ClassVar[bool]
    every_gaussian: ClassVar[bool] = False
    bound: ClassVar[Bound] = Bound.ON_DRAWS
    judged_by_checks: ClassVar[bool] = False

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

    def within(self, pattern: Pattern) -> "Family":
        """The same for a target whose second derivatives are zero outside a pattern, as those of sums of terms are."""
        return self

    def directions(self, dim: int) -> int:
        """In how many directions at the most it stretches what else is independent; a start looks for those."""
        return 0

    def along(self, mean: np.ndarray, sds: np.ndarray, directions: np.ndarray, stretches: np.ndarray) -> Member:
        """The member with these standard deviations, stretched along orthonormal `directions` (dim, k) in units of them."""
        raise NotImplementedError(f"{type(self).__name__} stretches in no directions.")

    def warps(self, dim: int, n_draws: int) -> "tuple[Family, ...]":
        """What "auto" tries after it, one by one, where it is not near enough; `n_draws` may be begun with."""
        return ()

    def advice(self, dim: int) -> str:
        """What to type for a posterior that can follow more of the target; nothing where there is none."""
        return 'family="warped"' if self.affine else ""

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
