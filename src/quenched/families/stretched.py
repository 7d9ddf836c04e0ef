"""Skewed marginals on top of a sparse Gaussian: each coordinate goes through a monotone map of its own.

w_i = m_i + s_i stretch(u_i; c_i) with u = (g − m) / s, g ~ N(m, Λ⁻¹) and s its standard deviations: a Gaussian copula. What a
term sees of w is still few numbers of g, each stretched. The mean is m and, since the log slope is odd in u, the entropy is
that of the Gaussian, whatever c is. c = 0 is the Gaussian.
"""

from typing import ClassVar

import numpy as np

from quenched.arrays import Array
from quenched.compiling import program
from quenched.families.elimination import Factor
from quenched.families.member import LOG_TWO_PI, Member
from quenched.families.roles import shape
from quenched.families.sparse import MOST_DENSE, Sparse, SparseGaussian
from quenched.families.sparsity import Pattern
from quenched.families.stretch import hermite_moments, power_of, stretch, stretch_moments, unstretch
from quenched.precision import in_double

_DEGREES = 12  # of Hermite polynomials by which two coordinates go together; what they leave out is each one's own
_COLUMNS = 256  # of a covariance at a time

_stretch, _unstretch = program(stretch), program(unstretch)
_moments, _hermite = program(stretch_moments), program(hermite_moments, static_argnums=1)


class StretchedGaussian(Member):
    """A sparse Gaussian, each coordinate of which is stretched at a rate `skew`."""

    gaussian: SparseGaussian
    skew: Array = shape()

    affine: ClassVar[bool] = False
    on_host: ClassVar[bool] = True

    @property
    def mean(self) -> Array:  # pyright: ignore
        """That of the Gaussian."""
        return self.gaussian.mean

    @property
    def values(self) -> Array:
        """Of the Gaussian's precision."""
        return self.gaussian.values

    @property
    def pattern(self) -> Pattern:
        """Of the Gaussian's precision."""
        return self.gaussian.pattern

    @property
    def factor(self) -> Factor:
        """Of the Gaussian's precision."""
        return self.gaussian.factor

    @property
    def groups(self):
        return None

    @property
    def family(self):
        return Sparse(warped=True, pattern=self.pattern)

    @property
    def _spread(self) -> np.ndarray:
        return np.sqrt(self.gaussian.variance())

    def transform(self, draws):
        stretched, _ = self._stretched(draws)
        return np.asarray(self.mean) + self._spread * stretched

    def standardise(self, points):
        spread, mean = self._spread, np.asarray(self.mean)
        with in_double():
            u = np.asarray(_unstretch((np.asarray(points) - mean) / spread, np.asarray(self.skew)))
        return self.gaussian.standardise(mean + spread * u)

    def log_slope(self, draws):
        _, slopes = self._stretched(draws)
        return self.log_determinant() + np.sum(slopes, axis=-1)

    def log_density(self, points):
        draws = self.standardise(points)
        return -0.5 * np.sum(draws**2, axis=-1) - 0.5 * self.dim * LOG_TWO_PI - self.log_slope(draws)

    def _stretched(self, draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The standardised coordinates behind every draw, stretched, and the log slopes there."""
        u = (self.gaussian.transform(draws) - np.asarray(self.mean)) / self._spread
        with in_double():
            found, slopes = _stretch(u, np.asarray(self.skew))
        return np.asarray(found), np.asarray(slopes)

    def straightened(self, draws: np.ndarray, gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Standardised coordinates of the Gaussian at every draw, and gradients of log p, as a density of those, along it."""
        u, _ = self.gaussian.straightened(draws, gradients)
        _, slopes = self._stretched(draws)
        power = np.asarray(power_of(np.asarray(self.skew)))
        return u, gradients * np.exp(slopes) + power / np.sqrt(4.0 + u**2) / self._spread

    def margins(self, heights):
        """Each coordinate alone, where a standard normal has these heights."""
        with in_double():
            stretched, _ = _stretch(np.asarray(heights)[:, None] * np.ones(self.dim), np.asarray(self.skew))
        return np.asarray(self.mean) + self._spread * np.asarray(stretched)

    def shifted(self, shift):
        return StretchedGaussian(self.gaussian.shifted(shift), self.skew)  # pyright: ignore

    def log_determinant(self):
        return self.gaussian.log_determinant()

    def variance(self):
        with in_double():
            return self.gaussian.variance() * np.asarray(_moments(np.asarray(self.skew))[2])

    @property
    def covariance(self) -> Array:
        if self.dim > MOST_DENSE:
            return self.gaussian.covariance  # which says why not
        dense = self.covariance_times(np.eye(self.dim))
        return 0.5 * (dense + dense.T)

    @property
    def scale(self) -> Array:
        return np.linalg.cholesky(self.covariance)

    def covariance_times(self, vectors):
        """By Hermite polynomials: Cov(w_i, w_j) is s_i s_j Σ_k a_ik a_jk ρ_ijᵏ."""
        vectors, spread = np.asarray(vectors), self._spread
        with in_double():
            parts = spread[:, None] * np.asarray(_hermite(np.asarray(self.skew), _DEGREES))
        found = (self.variance() - np.sum(parts**2, axis=1))[:, None] * vectors
        for places in np.array_split(np.flatnonzero(np.any(vectors != 0.0, axis=1)), -(-self.dim // _COLUMNS)):
            if not len(places):
                continue
            units = np.zeros((self.dim, len(places)))
            units[places, np.arange(len(places))] = 1.0
            correlation = self.factor.solve(units) / (spread[:, None] * spread[places])
            power = np.ones_like(correlation)
            for part in parts.T:
                power = power * correlation
                found = found + part[:, None] * (power @ (part[places, None] * vectors[places]))
        return found
