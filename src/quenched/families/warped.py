"""Skewed posteriors: a full Gaussian whose axes stretch and bend.

w = m + L y with, for every coordinate i in turn,

    y_i = exp(Σ_{j<i} c_ij s(z_j)) stretch(z_i; c_ii) + Σ_{j≤k<i} b_ijk (z_j z_k − δ_jk).

It is monotone in z_i given the coordinates before it. c is the lower triangle `rates` with its diagonal: skewness, and
spreads that change with other coordinates (funnels). b is `bends`: curved ridges (bananas). To first order in c and b this
is every way in which third derivatives can make a log density depart from a quadratic.

All these terms are *even* in z while their effect on a Gaussian target is odd, so it vanishes exactly on mirrored draws:
with matched draws a Gaussian posterior is found exactly, c and b being zero, as in the full family. The log slopes are odd,
so their mean is zero and the entropy is that of the Gaussian N(m, L Lᵀ).
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import program
from quenched.families.bends import met_by_bends, n_bends, n_terms, terms, unpack_bends
from quenched.families.full import Full, FullGaussian
from quenched.families.gaussian import Family
from quenched.families.member import Member
from quenched.families.roles import shape
from quenched.families.stretch import slope_moments, steepness, stretch, stretch_moments, unstretch
from quenched.families.triangle import packed_size, solve_lower, unpack
from quenched.text import shown

_FEW_COORDINATES = 32  # that bend unless told otherwise: the numbers grow with their cube, the draws with their square
_MOST_COORDINATES = 128  # that can bend
_BENT_UNASKED = 5  # coordinates, at the most: of ten, a bent posterior follows the draws that it is given


class WarpedGaussian(Member):
    """A full Gaussian, stretched and bent.

    `skew` is the diagonal of the rates, `spread` what is below it, packed; `bends` is packed, and empty in a family
    that does not bend.
    """

    gaussian: FullGaussian
    skew: Array = shape()
    spread: Array = shape()
    bends: Array = shape()
    affine: ClassVar[bool] = False

    @property
    def mean(self) -> Array:  # pyright: ignore
        """The terms have mean zero each, so that the mean is that of the Gaussian."""
        return self.gaussian.mean

    @property
    def groups(self):
        return self.gaussian.groups

    @property
    def family(self):
        return Warped(bend=self.bends.shape[-1] > 0 or self.dim == 1)

    def transform(self, draws):
        rates = unpack(self.spread, self.dim)
        stretched, _ = stretch(draws, self.skew)
        warped = jnp.exp(steepness(draws) @ rates.T) * stretched
        if self.bends.size:
            warped = warped + terms(draws) @ unpack_bends(self.bends, self.dim).T
        return self.gaussian.transform(warped)

    def standardise(self, points):
        return self._draws_behind(jnp.atleast_2d(points)).reshape(points.shape)

    @program
    def _draws_behind(self, rows: Array) -> Array:
        """One coordinate after the other, each given those before it."""
        warped = solve_lower(self.gaussian.scale, (rows - self.mean).T).T
        rates, bends = unpack(self.spread, self.dim), unpack_bends(self.bends, self.dim)

        def next_coordinate(draws, index):
            bent = terms(draws) @ bends[index] if self.bends.size else 0.0
            straight = (warped[:, index] - bent) * jnp.exp(-steepness(draws) @ rates[index])
            return draws.at[:, index].set(unstretch(straight, self.skew[index])), None

        draws, _ = jax.lax.scan(next_coordinate, jnp.zeros_like(warped), jnp.arange(self.dim))
        return draws

    def log_slope(self, draws):
        _, own = stretch(draws, self.skew)
        given = steepness(draws) @ unpack(self.spread, self.dim).T
        return self.log_determinant() + jnp.sum(own + given, axis=-1)

    def log_determinant(self):
        return self.gaussian.log_determinant()

    def moved(self, inner):
        return WarpedGaussian(  # pyright: ignore
            self.gaussian.compose(inner.gaussian),
            self.skew + inner.skew,
            self.spread + inner.spread,
            self.bends + inner.bends,
        )

    def shifted(self, shift):
        return WarpedGaussian(self.gaussian.shifted(shift), self.skew, self.spread, self.bends)  # pyright: ignore

    @property
    def scale(self) -> Array:
        return self.gaussian.scale @ jnp.linalg.cholesky(self._inner_covariance())

    @property
    def covariance(self) -> Array:
        scale = self.gaussian.scale
        return scale @ self._inner_covariance() @ scale.T

    def variance(self):
        scale = self.gaussian.scale
        return jnp.sum((scale @ self._inner_covariance()) * scale, axis=-1)

    def _inner_covariance(self) -> Array:
        """Of y. The coordinates of z are independent, so that everything is a product of integrals over one."""
        dim = self.dim
        below = np.tril(np.ones((dim, dim), bool), -1)
        slope, slope_times_z, slope_squared = slope_moments(unpack(self.spread, dim))
        times_z, times_z_squared, squared = stretch_moments(self.skew)
        spread = jnp.prod(jnp.where(below, slope_squared, 1.0), axis=1)
        own = jnp.diag(spread * squared)
        if not self.bends.size:
            return own
        bends = unpack_bends(self.bends, dim)
        mean_slope = jnp.prod(jnp.where(below, slope, 1.0), axis=1)
        # The stretched part of coordinate i meets the terms z_i² and z_i z_j, j < i, in the bends of later ones.
        met = jnp.where(below, slope_times_z / slope, 0.0) * times_z[:, None] + jnp.diag(times_z_squared)
        cross = met_by_bends(bends, mean_slope[:, None] * met)
        return own + bends @ bends.T + cross + cross.T


class Warped(Family):
    """Every pair of parameters may correlate, each may be skewed, and each may spread and bend with those before it.

    For posteriors that are not Gaussian: a fit begins with the full Gaussian and costs about twice as much, and more
    where many axes bend (13 parameters: fifteen times). It is exact where that one is.

    Parameters
    ----------
    bend
        Whether the axes bend: dim³/6 numbers and 2 dim² draws, against dim²/2 and 4 dim without. None bends up to 32
        coordinates.

    Examples
    --------
    >>> log_gamma = lambda u: 2.0 * u - jnp.exp(u)  # the logarithm of a Gamma(2) number, which is skewed
    >>> warped, full = (qd.fit(log_gamma, 0.0, family=family) for family in (qd.Warped(), "full"))
    >>> warped.check_bound > full.check_bound
    True
    """

    bend: bool | None = None
    affine: ClassVar[bool] = False
    judged_by_checks: ClassVar[bool] = True

    def __post_init__(self):
        if not (self.bend is None or isinstance(self.bend, bool)):
            raise ValueError(f"Warped(bend={shown(self.bend)}): give True, False, or None.")

    @classmethod
    def affordable(cls, dim: int, n_draws: int) -> "Warped":
        """One that bends only if it can begin with so many draws, and has few coordinates to bend."""
        few = dim <= _BENT_UNASKED and cls().first_draws((dim,)) <= n_draws
        return cls(bend=None if few else False)

    @property
    def name(self):
        return "warped"

    @property
    def base(self):
        return Full()

    def groups(self, sizes):
        dim = sum(sizes)
        if self.bend and dim > _MOST_COORDINATES:
            raise ValueError(
                f"family=Warped(): the parameters have {dim} coordinates; beyond {_MOST_COORDINATES} use "
                "Warped(bend=False), or family='full'."
            )
        return None

    def first_draws(self, sizes):
        """Several for each number that moves the last coordinate."""
        dim = sum(sizes)
        return max(64, 4 * (n_terms(dim) if self._bends(dim) else dim))

    def _bends(self, dim: int) -> bool:
        return dim <= _FEW_COORDINATES if self.bend is None else self.bend

    def lift(self, member):
        if not isinstance(member, FullGaussian):
            return member
        *leading, dim = np.shape(member.mean)
        n = n_bends(dim) if self._bends(dim) else 0
        unwarped = [np.zeros((*leading, size)) for size in (dim, packed_size(dim), n)]
        return WarpedGaussian(member, *unwarped)  # pyright: ignore

    def member(self, mean, precision, sizes):
        return self.lift(self.base.member(mean, precision, sizes))

    def isotropic(self, mean, scale, sizes):
        return self.lift(self.base.isotropic(mean, scale, sizes))
