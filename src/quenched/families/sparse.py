"""A full covariance by its precision, which has the sparsity of the model.

At the best Gaussian for a sum of terms the precision is the expected curvature of the sum, so it is zero wherever two
parameters meet in no term. It lives on the host, in NumPy: elimination is a matter of indices, and nothing of it is
traced.
"""

from collections import deque
from dataclasses import field
from typing import ClassVar

import numpy as np

from quenched.arrays import Array
from quenched.families.elimination import Factor, factor
from quenched.families.elimination_order import make_pattern
from quenched.families.gaussian import Bound, Family, with_equal_axes
from quenched.families.member import Member
from quenched.families.positive_definite import positive_definite
from quenched.families.roles import correlation, location
from quenched.families.sparsity import Pattern
from quenched.frozen import static
from quenched.text import shown

MOST_DENSE = 6000  # coordinates up to which a dense covariance is written out
_MOST_WARPED = 300  # parameters beyond which a dense warped posterior takes long
# Of the precisions that were asked of last: the same numbers come in many arrays, as rows of what fits have reached.
_FACTORS: deque[tuple[np.ndarray, Factor]] = deque(maxlen=4)
_AT_A_TIME = 64  # draws that are placed


def kept_factor(pattern: Pattern, values: np.ndarray) -> Factor | None:
    """Factor a precision by its values, unless that was done lately; None if it is not positive definite."""
    for known, found in tuple(_FACTORS):  # another thread may add one
        if known is values or (found.pattern == pattern and np.array_equal(known, values)):
            return found
    found = factor(pattern, values)
    if found is not None:
        keep_factor(values, found)
    return found


def keep_factor(values: np.ndarray, found: Factor) -> None:
    """For the next who asks."""
    _FACTORS.appendleft((values, found))


class SparseGaussian(Member):
    """q = N(mean, Λ⁻¹), Λ by its values on a pattern (see `elimination`)."""

    mean: Array = location()
    values: Array = correlation()
    pattern: Pattern = static()

    affine: ClassVar[bool] = True
    on_host: ClassVar[bool] = True

    @property
    def factor(self) -> Factor:
        """The precision, factored; kept for the next question."""
        found = kept_factor(self.pattern, np.asarray(self.values))
        if found is None:
            raise ValueError("posterior: its precision is not positive definite.")
        return found

    @property
    def groups(self):
        return None

    @property
    def family(self):
        return Sparse(pattern=self.pattern)

    @property
    def skew(self) -> np.ndarray:
        """Of a Gaussian there is none."""
        return np.zeros(0)

    @property
    def precision(self):
        """Λ as a sparse matrix."""
        return self.pattern.to_matrix(np.asarray(self.values))

    @property
    def covariance(self) -> Array:
        if self.dim > MOST_DENSE:
            raise ValueError(
                f"covariance: it would have {self.dim}² entries; ask for posterior.variance() or posterior.marginal(names)."
            )
        dense = self.factor.solve(np.eye(self.dim))
        return 0.5 * (dense + dense.T)

    def covariance_times(self, vectors):
        return self.factor.solve(np.asarray(vectors))

    @property
    def scale(self) -> Array:
        return np.linalg.cholesky(self.covariance)

    def transform(self, draws):
        draws, factored, mean = np.asarray(draws), self.factor, np.asarray(self.mean)
        flat = draws.reshape(-1, self.dim)
        points = np.empty(flat.shape)
        for first in range(0, len(flat), _AT_A_TIME):  # what stays near the processor
            part = slice(first, first + _AT_A_TIME)
            points[part] = mean + factored.spread(flat[part].T).T
        return points.reshape(draws.shape)

    def standardise(self, points):
        away = np.asarray(points) - np.asarray(self.mean)
        return self.factor.unspread(away.reshape(-1, self.dim).T).T.reshape(away.shape)

    def log_slope(self, draws):
        return np.full(np.shape(draws)[:-1], self.log_determinant())

    def log_density(self, points):
        draws = self.standardise(points)
        constant = self.log_determinant() + 0.5 * self.dim * np.log(2.0 * np.pi)
        return -0.5 * np.sum(draws**2, axis=-1) - constant

    def shifted(self, shift):
        return SparseGaussian(self.mean + shift, self.values, self.pattern)

    def log_determinant(self):
        return -0.5 * self.factor.log_determinant

    def variance(self):
        return self.factor.variances

    def second_moment(self):
        return self.mean @ self.mean + np.sum(self.variance())

    def straightened(self, draws: np.ndarray, gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Standardised coordinates at every draw, and gradients along those that are not: a Gaussian is straight."""
        return (self.transform(draws) - np.asarray(self.mean)) / np.sqrt(self.variance()), gradients


class Sparse(Family):
    """Every pair of parameters may correlate, by a precision that is zero where the model is. For sums of terms.

    Parameters
    ----------
    warped
        Whether each parameter may be skewed as well: a monotone map of its own on top of the Gaussian. A fit begins with the
        Gaussian and goes back to it where that does not pay. What is seen through `dot` stays Gaussian.

    Examples
    --------
    >>> log_gamma = qd.each(lambda seen, row: row * seen["u"] - jnp.exp(seen["u"]), np.array([1.0, 2.0]),
    ...                     sees={"u": qd.each_entry})  # logarithms of Gamma numbers, which are skewed
    >>> start = {"u": np.zeros(2)}
    >>> warped, plain = (qd.fit(qd.sum_of(log_gamma), start, family=qd.Sparse(warped=warped)) for warped in (True, False))
    >>> warped.check_bound > plain.check_bound
    True
    """

    bound: ClassVar[Bound] = Bound.OF_TERMS

    warped: bool = False
    pattern: Pattern | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self):
        if not isinstance(self.warped, bool):
            raise ValueError(f"Sparse(warped={shown(self.warped)}): give True or False.")
        if not (self.pattern is None or isinstance(self.pattern, Pattern)):
            raise ValueError(f"Sparse(pattern={shown(self.pattern)}): leave it out; a sum of terms has its own.")

    @property
    def affine(self) -> bool:  # pyright: ignore
        """Whether its members are Gaussians."""
        return not self.warped

    @property
    def name(self):
        return "sparse warped" if self.warped else "sparse"

    @property
    def base(self):
        return Sparse(pattern=self.pattern)

    def lift(self, member):
        from quenched.families.stretched import StretchedGaussian

        if self.warped and isinstance(member, SparseGaussian):
            return StretchedGaussian(member, np.zeros(np.shape(member.mean)))  # pyright: ignore
        return member.gaussian if not self.warped and isinstance(member, StretchedGaussian) else member

    def within(self, pattern):
        return Sparse(self.warped, pattern=pattern)

    def warps(self, dim, n_draws):
        """Each parameter skewed by itself, and all together where they are few."""
        from quenched.families.warped import Warped

        by_itself = Sparse(warped=True)
        return (by_itself,) if dim > _MOST_WARPED else (by_itself, Warped.affordable(dim, n_draws))

    def advice(self, dim):
        if self.warped or dim <= _MOST_WARPED:
            return super().advice(dim)
        return "family=qd.Sparse(warped=True)"

    def groups(self, sizes):
        return None

    def first_draws(self, sizes):
        return 64 if self.warped else 32

    def member(self, mean, precision, sizes):
        mean, precision = with_equal_axes(mean, precision, 2)
        pattern = self._own_pattern(precision.reshape(-1, *precision.shape[-2:])[0])
        stack = []
        for one in precision.reshape(-1, *precision.shape[-2:]):
            if factor(pattern, pattern.from_dense(one)) is None:
                values, vectors, spread = positive_definite(one)
                one = (vectors * values) @ vectors.T / np.outer(spread, spread)
            stack.append(pattern.from_dense(one))
        values = np.stack(stack).reshape(*precision.shape[:-2], pattern.size)
        return self.lift(SparseGaussian(mean, values, pattern))

    def isotropic(self, mean, scale, sizes):
        mean, scale = with_equal_axes(mean, scale, 1)
        pattern = self._own_pattern(np.eye(mean.shape[-1]) if self.pattern is None else None)
        values = np.zeros((*mean.shape[:-1], pattern.size))
        values[..., pattern.diagonal] = scale**-2.0
        return self.lift(SparseGaussian(mean, values, pattern))

    def _own_pattern(self, precision: np.ndarray | None) -> Pattern:
        if self.pattern is not None:
            return self.pattern
        assert precision is not None
        return make_pattern(len(precision), *np.nonzero(np.tril(precision, -1)))
