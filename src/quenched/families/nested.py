"""Nested posteriors: a few outer coordinates with a family of their own, and for each of their values a Gaussian of the others.

θ = T(z_θ), its tails lengthened where they are long (see `tails`), u = m(z_θ) + D(z_θ) c(z_θ) + L(z_θ)⁻ᵀ D(z_θ) z_u: the means m and c (of each coordinate one is zero: what shrinks with its own
spread is followed in units of it), the unit lower triangle L (in units of D as well), which has no more entries than the precision
L D⁻² Lᵀ has, and the logarithms of the diagonal D are smooth functions of θ. So the marginals of u are mixtures, with the
skewness and the tails that θ gives them.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.families.gaussian import Bound, Family, with_equal_axes
from quenched.families.member import Member
from quenched.families.monomials import count_monomials, monomials
from quenched.families.roles import correlation, location, shape, spread
from quenched.families.tails import lengthen, log_slopes, no_tails, shorten
from quenched.families.triangle import pack, packed_size, solve_lower, unpack
from quenched.frozen import static

_AT_A_TIME = 64  # draws whose factors are held together
FAR = 1e12  # limits of what was not fitted to nodes
_NEAR = 2.5  # standard deviations, within which polynomials are followed
_KNOTS, _BEND = (-2.0, -1.0, 0.0, 1.0), 0.5  # where lines bend, and over which length


@dataclass(frozen=True)
class Layout:
    """Where the factor of a precision has entries: a band, and a border of coordinates that come last and go with all.

    `order` are the coordinates as they are eliminated, those of the band first. A border of all is a full triangle.
    """

    order: tuple[int, ...]
    width: int
    border: int

    @property
    def dim(self) -> int:
        return len(self.order)

    @property
    def band(self) -> int:
        """Coordinates that are not of the border."""
        return self.dim - self.border

    @cached_property
    def places(self) -> np.ndarray:
        """Of each coordinate in the order."""
        return np.argsort(np.array(self.order, int))

    @property
    def n_entries(self) -> int:
        """Below the diagonal of the factor."""
        return self.band * (self.width + self.border) + packed_size(self.border)

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column, in the order, of every entry; beyond the end of the band both are that of the column."""
        column, step = np.meshgrid(np.arange(self.band), np.arange(1, self.width + 1), indexing="ij")
        row = np.where(column + step < self.band, column + step, column)
        inside, border = np.meshgrid(np.arange(self.band), self.band + np.arange(self.border), indexing="ij")
        places = pack(np.tril(np.arange(self.border**2).reshape(self.border, self.border), -1))
        i, j = np.divmod(places.astype(int), max(self.border, 1))
        rows = np.concatenate([row.ravel(), border.ravel(), self.band + i])
        return rows.astype(int), np.concatenate([column.ravel(), inside.ravel(), self.band + j]).astype(int)

    def cut(self, entries: Array) -> tuple[Array, Array, Array]:
        """Entries (draws, ...) as those along the band, in the border, and of the unit triangle of the border itself."""
        first, second = self.band * self.width, self.band * (self.width + self.border)
        along = entries[:, :first].reshape(len(entries), self.band, self.width)
        border = entries[:, first:second].reshape(len(entries), self.band, self.border)
        if not self.border:
            return along, border, jnp.zeros((len(entries), 0, 0))
        return along, border, unpack(entries[:, second:], self.border) + jnp.eye(self.border)


class NestedGaussian(Member):
    """A posterior of outer coordinates, and the Gaussian of the inner ones given them.

    `mean` and `spreads` (the factor of the covariance, packed, with its diagonal) are those of the mixture, which has no
    closed form; the coefficients have the features of the outer coordinates along their first axis.
    """

    outer: Member
    tails: Array = shape()  # of the outer coordinates, which `outer` has shortened
    centre: Array = shape()  # of the outer coordinates, as features see them
    unit: Array = shape()
    mean: Array = location()
    log_diagonal: Array = spread()
    lower: Array = correlation()
    centres: Array = shape()  # (features, inner)
    lifts: Array = shape()  # the same, in units of the spread
    log_scales: Array = shape()  # (features, inner), in the order of elimination
    tilts: Array = shape()  # (features, entries of the factor), in units of the spreads
    lowest: Array = shape()  # of all of these, one after the other: what was seen at the nodes, and is not left
    highest: Array = shape()
    inner_log_determinant: Array = spread()
    places: tuple[int, ...] = static()  # of the outer coordinates
    degree: int = static()
    order: tuple[int, ...] = static()  # in which inner coordinates are eliminated
    width: int = static()
    border: int = static()
    affine: ClassVar[bool] = False

    @property
    def groups(self):
        return None

    @property
    def family(self):
        return Nested(self.outer.family, self.places, self.degree, self.layout)

    @property
    def layout(self) -> Layout:
        """Of the factor of the inner precision."""
        return Layout(self.order, self.width, self.border)

    @property
    def _inner(self) -> np.ndarray:
        return np.setdiff1d(np.arange(self.dim), self.places)

    def _features(self, outer: Array) -> Array:
        return features_of((outer - self.centre) / self.unit, self.degree)

    def _join(self, outer: Array, inner: Array) -> Array:
        order = np.argsort(np.concatenate([np.array(self.places, int), self._inner]))
        return jnp.concatenate([outer, inner], axis=-1)[..., order]

    def _outer(self, draws: Array) -> Array:
        return lengthen(self.outer.transform(draws), self.tails)

    def transform(self, draws):
        rows = jnp.atleast_2d(draws)
        outer_draws, own = rows[:, np.array(self.places)], rows[:, self._inner]
        outer = self._outer(outer_draws)
        features = self._features(outer)
        inner = self._means(features) + _in_parts(self._away, features, own)
        return self._join(outer, inner).reshape(draws.shape)

    def _followed(self, features: Array) -> tuple[Array, Array, Array, Array]:
        """Centres, lifts, log-scales and tilts. Polynomials of many numbers run away between and beyond the nodes."""
        parts, first = [], 0
        for coefficients in (self.centres, self.lifts, self.log_scales, self.tilts):
            own = slice(first, first + coefficients.shape[-1])
            parts.append(jnp.clip(features @ coefficients, self.lowest[own], self.highest[own]))
            first = own.stop
        centres, lifts, log_scales, tilts = parts
        rows, columns = self.layout.ends
        return centres, lifts, log_scales, tilts * jnp.exp(log_scales[..., columns] - log_scales[..., rows])

    def _means(self, features: Array) -> Array:
        centres, lifts, log_scales, _ = self._followed(features)
        return centres + jnp.exp(log_scales)[:, self.layout.places] * lifts

    def _away(self, features: Array, own: Array) -> Array:
        """L⁻ᵀ D z for some draws."""
        layout = self.layout
        _, _, log_scales, tilts = self._followed(features)
        along, border, corner = layout.cut(tilts)
        scaled = jnp.exp(log_scales) * own[:, np.array(self.order)]
        band = layout.band
        last = jax.vmap(lambda factor, right: solve_lower(factor, right, transposed=True))(corner, scaled[:, band:])
        rest = scaled[:, :band] - jnp.einsum("bnk,bk->bn", border, last)
        if self.width and band:

            def step(later, own):
                value, beside = own
                value = value - jnp.sum(beside * later, axis=1)
                return jnp.concatenate([value[:, None], later[:, :-1]], axis=1), value

            nothing = jnp.zeros((len(own), self.width))
            rest = jax.lax.scan(step, nothing, (rest.T, jnp.swapaxes(along, 0, 1)), reverse=True)[1].T
        return jnp.concatenate([rest, last], axis=1)[:, layout.places]

    def standardise(self, points):
        rows = jnp.atleast_2d(points)
        outer = rows[:, np.array(self.places)]
        outer_draws, features = self.outer.standardise(shorten(outer, self.tails)), self._features(outer)
        own = _in_parts(self._own, features, rows[:, self._inner] - self._means(features))
        return self._join(outer_draws, own).reshape(points.shape)

    def _own(self, features: Array, away: Array) -> Array:
        """D⁻¹ Lᵀ (u − m) for some points."""
        layout = self.layout
        _, _, log_scales, tilts = self._followed(features)
        along, border, corner = layout.cut(tilts)
        ordered, band = away[:, np.array(self.order)], layout.band
        last = jnp.einsum("bji,bj->bi", corner, ordered[:, band:])
        rest = ordered[:, :band] + jnp.einsum("bnk,bk->bn", border, ordered[:, band:])
        padded = jnp.pad(ordered[:, :band], ((0, 0), (0, self.width)))
        for k in range(self.width):
            rest = rest + along[:, :, k] * padded[:, 1 + k : 1 + k + band]
        own = jnp.concatenate([rest, last], axis=1) * jnp.exp(-log_scales)
        return own[:, layout.places]

    def log_slope(self, draws):
        outer_draws = draws[..., np.array(self.places)]
        features = self._features(self._outer(outer_draws))
        own = jnp.sum(self._followed(features)[2], axis=-1)
        lengthened = jnp.sum(log_slopes(self.outer.transform(outer_draws), self.tails), axis=-1)
        return self.outer.log_slope(outer_draws) + lengthened + own

    def log_determinant(self):
        return self.outer.log_determinant() + self.inner_log_determinant

    def moved(self, inner):
        return replace(jax.tree.map(jnp.add, self, inner), outer=self.outer.moved(inner.outer))

    def shifted(self, shift):
        along = shift[np.array(self.places)]
        moved, inner = {"outer": self.outer.shifted(along), "centre": self.centre + along}, shift[self._inner]
        moved["tails"] = jnp.asarray(self.tails).at[0].add(along)
        limits = jnp.zeros_like(self.lowest).at[: len(inner)].set(inner)
        moved |= {"lowest": self.lowest + limits, "highest": self.highest + limits}
        centres = jnp.asarray(self.centres).at[0].add(inner)
        return replace(self, mean=self.mean + shift, centres=centres, **moved)

    @property
    def scale(self) -> Array:
        return unpack(self.lower, self.dim) + jnp.diag(jnp.exp(self.log_diagonal))

    def variance(self):
        return jnp.sum(self.scale**2, axis=-1)


def _in_parts(function, *arrays: Array) -> Array:
    """A function of some draws for all of them, a few at a time, since each has a factor of its own."""
    n = len(arrays[0])
    if n <= _AT_A_TIME:
        return function(*arrays)
    parts = -(-n // _AT_A_TIME)
    padded = [jnp.pad(array, ((0, parts * _AT_A_TIME - n), (0, 0))) for array in arrays]
    cut = [array.reshape(parts, _AT_A_TIME, -1) for array in padded]
    return jax.lax.map(lambda part: function(*part), tuple(cut)).reshape(parts * _AT_A_TIME, -1)[:n]


def features_of(x: Array, degree: int) -> Array:
    """What smooth functions of outer coordinates in standard units are put together from, (..., count): 1 first.

    Polynomials of what is held within bounds, and for each coordinate a line that bends at some places: beyond the nodes, where the
    spread of effects goes on shrinking with their own standard deviation, lines are right and polynomials are not.
    """
    xp = np if isinstance(x, np.ndarray) else jnp
    near = _NEAR * xp.tanh(x / _NEAR)
    bends = [_BEND * xp.logaddexp(0.0, (x - knot) / _BEND) for knot in _KNOTS]
    return xp.concatenate([monomials(near, degree), x, *bends], axis=-1)


def count_features(dim: int, degree: int) -> int:
    """How many there are."""
    return count_monomials(dim, degree) + (1 + len(_KNOTS)) * dim


class Nested(Family):
    """Gaussians of the inner coordinates, given the outer ones. Made by `quenched.nested`."""

    of_outer: Family
    places: tuple[int, ...]
    degree: int = 2
    layout: Layout | None = None  # a full triangle unless told
    affine: ClassVar[bool] = False
    bound: ClassVar[Bound] = Bound.NESTED

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
        n, dim = count_features(len(places), self.degree), len(inner)
        first = (np.arange(n) == 0)[:, None]
        layout = full_layout(dim) if self.layout is None else self.layout
        return NestedGaussian(  # pyright: ignore
            outer=self.of_outer.isotropic(mean[..., places], sds[..., places], (len(places),)),
            tails=np.broadcast_to(no_tails(len(places)), (*leading, 4, len(places))),
            centre=mean[..., places],
            unit=sds[..., places],
            mean=mean,
            log_diagonal=np.log(sds),
            lower=np.zeros((*leading, packed_size(mean.shape[-1]))),
            centres=first * mean[..., None, inner],
            lifts=np.zeros((*leading, n, dim)),
            log_scales=first * np.log(sds[..., None, inner[list(layout.order)]]),
            tilts=np.zeros((*leading, n, layout.n_entries)),
            lowest=np.full((*leading, 3 * dim + layout.n_entries), -FAR),
            highest=np.full((*leading, 3 * dim + layout.n_entries), FAR),
            inner_log_determinant=np.sum(np.log(sds[..., inner]), axis=-1),
            places=self.places,
            degree=self.degree,
            order=layout.order,
            width=layout.width,
            border=layout.border,
        )


def full_layout(dim: int) -> Layout:
    """Every coordinate goes with every other."""
    return Layout(tuple(range(dim)), 0, dim)
