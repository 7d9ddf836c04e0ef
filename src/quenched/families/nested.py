"""Nested posteriors: a few outer coordinates with a family of their own, and for each of their values a Gaussian of the others.

θ = T(z_θ), u = m(z_θ) + U(z_θ) D(z_θ) z_u: the mean m, the unit lower triangle U and the logarithms of the diagonal D are
polynomials of the outer draws. So the marginals of u are mixtures, with the skewness and the tails that θ gives them.
"""

from dataclasses import replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.families.gaussian import Family, with_equal_axes
from quenched.families.member import Member
from quenched.families.monomials import count_monomials, monomials
from quenched.families.roles import correlation, location, shape, spread
from quenched.families.triangle import pack, packed_size, solve_lower, unpack
from quenched.frozen import static

_AT_A_TIME = 64  # draws whose factors are held together
_RIDGE = 1e-9


class NestedGaussian(Member):
    """A posterior of outer coordinates, and the Gaussian of the inner ones given them.

    `mean` and `spreads` (the factor of the covariance, packed, with its diagonal) are those of the mixture, which has no
    closed form; the coefficients have the monomials of the outer draws along their first axis. Draws that are further out
    than `reach` standard deviations have the Gaussian of those at that distance.
    """

    outer: Member
    mean: Array = location()
    log_diagonal: Array = spread()
    lower: Array = correlation()
    centres: Array = shape()  # (monomials, inner)
    log_scales: Array = shape()  # (monomials, inner)
    tilts: Array = shape()  # (monomials, inner * (inner - 1) / 2)
    inner_log_determinant: Array = spread()
    places: tuple[int, ...] = static()  # of the outer coordinates
    degree: int = static()
    reach: float = static()
    affine: ClassVar[bool] = False

    @property
    def groups(self):
        return None

    @property
    def family(self):
        return Nested(self.outer.family, self.places, self.degree, self.reach)

    @property
    def _inner(self) -> np.ndarray:
        return np.setdiff1d(np.arange(self.dim), self.places)

    def _features(self, outer_draws: Array) -> Array:
        distance = jnp.sqrt(jnp.sum(outer_draws**2, axis=-1, keepdims=True))
        near = outer_draws * jnp.minimum(1.0, self.reach / jnp.maximum(distance, 1e-300))
        return monomials(near, self.degree)

    def _factors(self, features: Array) -> Array:
        """U D at one row of features."""
        diagonal = jnp.exp(features @ self.log_scales)
        dim = len(diagonal)
        return (unpack(features @ self.tilts, dim) + jnp.eye(dim)) * diagonal

    def _join(self, outer: Array, inner: Array) -> Array:
        order = np.argsort(np.concatenate([np.array(self.places, int), self._inner]))
        return jnp.concatenate([outer, inner], axis=-1)[..., order]

    def transform(self, draws):
        rows = jnp.atleast_2d(draws)
        outer_draws, own = rows[:, np.array(self.places)], rows[:, self._inner]
        features = self._features(outer_draws)
        place = lambda both: self._factors(both[0]) @ both[1]
        away = jax.lax.map(place, (features, own), batch_size=min(_AT_A_TIME, len(rows)))
        inner = features @ self.centres + away
        return self._join(self.outer.transform(outer_draws), inner).reshape(draws.shape)

    def standardise(self, points):
        rows = jnp.atleast_2d(points)
        outer_draws = self.outer.standardise(rows[:, np.array(self.places)])
        features = self._features(outer_draws)
        away = rows[:, self._inner] - features @ self.centres
        place = lambda both: solve_lower(self._factors(both[0]), both[1])
        own = jax.lax.map(place, (features, away), batch_size=min(_AT_A_TIME, len(rows)))
        return self._join(outer_draws, own).reshape(points.shape)

    def log_slope(self, draws):
        outer_draws = draws[..., np.array(self.places)]
        own = jnp.sum(self._features(outer_draws) @ self.log_scales, axis=-1)
        return self.outer.log_slope(outer_draws) + own

    def log_determinant(self):
        return self.outer.log_determinant() + self.inner_log_determinant

    def moved(self, inner):
        return replace(jax.tree.map(jnp.add, self, inner), outer=self.outer.moved(inner.outer))

    def shifted(self, shift):
        outer = self.outer.shifted(shift[np.array(self.places)])
        centres = jnp.asarray(self.centres).at[0].add(shift[self._inner])
        return replace(self, outer=outer, mean=self.mean + shift, centres=centres)

    @property
    def scale(self) -> Array:
        return unpack(self.lower, self.dim) + jnp.diag(jnp.exp(self.log_diagonal))

    def variance(self):
        return jnp.sum(self.scale**2, axis=-1)


class Nested(Family):
    """Gaussians of the inner coordinates, given the outer ones. Made by `quenched.nested`."""

    of_outer: Family
    places: tuple[int, ...]
    degree: int = 2
    reach: float = 4.0
    affine: ClassVar[bool] = False

    @property
    def name(self):
        return "nested"

    def groups(self, sizes):
        return None

    def member(self, mean, precision, sizes):
        """The Gaussian without correlations of the same variances given the others: the fit itself is made elsewhere."""
        return self.isotropic(mean, 1.0 / np.sqrt(np.diagonal(precision, axis1=-2, axis2=-1)), sizes)

    def isotropic(self, mean, scale, sizes):
        mean, sds = with_equal_axes(mean, scale, 1)
        leading, places = mean.shape[:-1], list(self.places)
        inner = np.setdiff1d(np.arange(mean.shape[-1]), places)
        n, dim = count_monomials(len(places), self.degree), len(inner)
        first = (np.arange(n) == 0)[:, None]
        return NestedGaussian(  # pyright: ignore
            outer=self.of_outer.isotropic(mean[..., places], sds[..., places], (len(places),)),
            mean=mean,
            log_diagonal=np.log(sds),
            lower=np.zeros((*leading, packed_size(mean.shape[-1]))),
            centres=first * mean[..., None, inner],
            log_scales=first * np.log(sds[..., None, inner]),
            tilts=np.zeros((*leading, n, packed_size(dim))),
            inner_log_determinant=np.sum(np.log(sds[..., inner]), axis=-1),
            places=self.places,
            degree=self.degree,
            reach=self.reach,
        )


class Conditionals(NamedTuple):
    """Gaussians of the inner coordinates at some outer draws: what a nested member is made from."""

    draws: np.ndarray  # (nodes, outer), by which the polynomials are found
    means: np.ndarray
    factors: np.ndarray  # lower triangular, (nodes, inner, inner)
    n_equal: int  # the first so many stand for the outer posterior, with equal weights


def nested_member(
    outer: Member, places: tuple[int, ...], given: Conditionals, degree: int, reach: float
) -> NestedGaussian:
    """The member whose inner Gaussians are smooth functions near the given ones; its moments are those of the mixture."""
    inner = given.means.shape[1]
    diagonals = np.diagonal(given.factors, axis1=1, axis2=2)
    features = np.asarray(monomials(given.draws, degree))
    fitted = lambda values: _least_squares(features, values)
    log_scales = fitted(np.log(diagonals))
    mean, covariance = _moments(outer, places, given)
    scale = np.linalg.cholesky(covariance)
    equal = slice(0, given.n_equal)
    log_determinant = float(np.mean(np.sum(features[equal] @ log_scales, axis=1)))
    return NestedGaussian(  # pyright: ignore
        outer=outer,
        mean=mean,
        log_diagonal=np.log(np.diag(scale)),
        lower=pack(scale),
        centres=fitted(given.means),
        log_scales=log_scales,
        tilts=fitted(pack(given.factors / diagonals[:, None]))
        if packed_size(inner)
        else np.zeros((features.shape[1], 0)),
        inner_log_determinant=np.asarray(log_determinant),
        places=places,
        degree=degree,
        reach=reach,
    )


def best_degree(dim: int, nodes: int, most: int = 6) -> int:
    """The highest degree whose monomials are no more than a third of the nodes."""
    return max((d for d in range(1, most + 1) if 3 * count_monomials(dim, d) <= nodes), default=1)


def _least_squares(features: np.ndarray, values: np.ndarray) -> np.ndarray:
    gram = features.T @ features
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
    return np.linalg.solve(gram, features.T @ values)


def _moments(outer: Member, places: tuple[int, ...], given: Conditionals) -> tuple[np.ndarray, np.ndarray]:
    """Of the mixture: the outer ones from their family, the others and what they share with the outer from the nodes."""
    equal = slice(0, given.n_equal)
    inner = np.setdiff1d(np.arange(len(places) + given.means.shape[1]), places)
    thetas = np.asarray(outer.transform(given.draws[equal]))
    means, factors = given.means[equal], given.factors[equal]
    away, across = means - means.mean(axis=0), thetas - thetas.mean(axis=0)
    order = np.argsort(np.concatenate([np.array(places, int), inner]))
    within = np.einsum("kij,klj->il", factors, factors) / len(means) + away.T @ away / len(means)
    shared = across.T @ away / len(means)
    covariance = np.block([[np.asarray(outer.covariance), shared], [shared.T, within]])[order][:, order]
    mean = np.concatenate([np.asarray(outer.mean), means.mean(axis=0)])[order]
    return mean, covariance
