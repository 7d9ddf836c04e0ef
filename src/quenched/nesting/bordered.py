"""Symmetric matrices of many inner problems side by side: a band around the diagonal, and a few coordinates that go with all.

States in time are such a band, and so are effects of groups; a mean level, fixed effects, and the effects of a second grouping
are the border. Inverting costs as much as the band is wide, times its length, and not the cube of the dimension. The lanes are
along the last axis, as in `algebra`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import program
from quenched.families import Layout
from quenched.nesting.algebra import Inverse, inverted, unit_factors


class BorderedFactor(NamedTuple):
    """L and D of precision = L D Lᵀ for the coordinates of the band; the corner that is left is inverted apart."""

    pivots: Array  # (band, lanes)
    along: Array  # entries of L below each pivot within the band, (band, width, lanes)
    border: Array  # and those in the border, (band, border, lanes)
    corner: Array  # what is left of the border's own matrix, (border, border, lanes)


@dataclass(frozen=True)
class Bordered:
    """Entries are kept on the pattern alone: those of the band row by row, the border's columns, its rows, and its corner."""

    layout: Layout

    @property
    def dim(self) -> int:
        return self.layout.dim

    @property
    def _begins(self) -> tuple[int, int, int, int]:
        band, border = self.layout.band, self.layout.border
        wide = band * (2 * self.layout.width + 1)
        return 0, wide, wide + band * border, wide + 2 * band * border

    @property
    def size(self) -> int:
        return self._begins[-1] + self.layout.border**2

    def places(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Where entries are kept; those off the pattern, which are zero, are said to be at the diagonal."""
        layout = self.layout
        width, band, border = layout.width, layout.band, layout.border
        p, q = np.broadcast_arrays(layout.places[rows], layout.places[columns])
        _, right, below, corner = self._begins
        q_in = np.where((p < band) & (q < band) & (np.abs(p - q) > width), p, q)
        inside = p * (2 * width + 1) + q_in - p + width
        to_right, to_below = right + p * border + q - band, below + (p - band) * band + q
        in_corner = corner + (p - band) * border + q - band
        return np.where(p < band, np.where(q < band, inside, to_right), np.where(q < band, to_below, in_corner))

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column, in the layout's order, of every entry that is kept."""
        layout = self.layout
        band, border, width = layout.band, layout.border, layout.width
        i, j = np.meshgrid(np.arange(band), np.arange(-width, width + 1), indexing="ij")
        there = (i + j >= 0) & (i + j < band)
        rows, columns = [i.ravel()], [np.where(there, i + j, i).ravel()]
        others = band + np.arange(border)
        for a, b in ((np.arange(band), others), (others, np.arange(band)), (others, others)):
            grid = np.meshgrid(a, b, indexing="ij")
            rows.append(grid[0].ravel())
            columns.append(grid[1].ravel())
        return np.concatenate(rows), np.concatenate(columns)

    @property
    def rows(self) -> np.ndarray:
        """The coordinate of every entry that is kept."""
        return np.array(self.layout.order)[self._ends[0]]

    @property
    def columns(self) -> np.ndarray:
        return np.array(self.layout.order)[self._ends[1]]

    @property
    def diagonal(self) -> np.ndarray:
        return self.places(np.arange(self.dim), np.arange(self.dim))

    def _cut(self, entries: Array) -> tuple[Array, Array, Array]:
        """The band (band, 2 width + 1, lanes), its border (band, border, lanes) and the corner."""
        layout, (_, right, below, corner) = self.layout, self._begins
        band = entries[:right].reshape(layout.band, 2 * layout.width + 1, entries.shape[-1])
        border = entries[right:below].reshape(layout.band, layout.border, entries.shape[-1])
        return band, border, entries[corner:].reshape(layout.border, layout.border, entries.shape[-1])

    def invert(self, precision: Array) -> Inverse:
        factor = factorise(*self._cut(precision), self.layout.width)
        own, corner = inverted(factor.corner) if self.layout.border else (0.0, factor.corner)
        log_determinant = jnp.sum(jnp.log(factor.pivots), axis=0) + own
        band, border = selected(factor, corner)
        wide, lanes = _both_sides(band), band.shape[-1]
        parts = (wide, border, jnp.swapaxes(border, 0, 1), corner)
        return Inverse(log_determinant, jnp.concatenate([part.reshape(-1, lanes) for part in parts]), factor)

    def solve(self, inverse: Inverse, vector: Array) -> Array:
        corner = self._cut(inverse.covariance)[2]
        solution = solved(inverse.factor, corner, vector[np.array(self.layout.order)])
        return solution[self.layout.places]

    def factors(self, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As a nested posterior keeps them: logarithms of sds (lanes, dim) and what else is in L, (lanes, entries)."""
        found = _factorise_jit(*self._cut(precision), self.layout.width)
        parts = [np.moveaxis(np.asarray(part), -1, 0) for part in found]
        pivots, along, border, corner = parts
        root, unit = unit_factors(corner)
        logs = np.concatenate([-0.5 * np.log(pivots), -np.log(root)], axis=1)
        lanes = len(pivots)
        return logs, np.concatenate([along.reshape(lanes, -1), border.reshape(lanes, -1), unit], axis=1)

    def to_dense(self, entries: np.ndarray) -> np.ndarray:
        """(lanes, dim, dim), on the host."""
        entries, rows, columns = np.asarray(entries), self.rows, self.columns
        real = self.places(rows, columns) == np.arange(self.size)  # not what lies beyond the ends of the band
        dense = np.zeros((entries.shape[1], self.dim, self.dim))
        dense[:, rows[real], columns[real]] = entries[real].T
        return dense


def factorise(band: Array, border: Array, corner: Array, width: int) -> BorderedFactor:
    """Pivot after pivot, with the rows that the next ones touch in a window."""
    lanes, n = corner.shape[-1], len(band)
    if not n:
        none = lambda *shape: jnp.zeros((0, *shape, lanes))
        return BorderedFactor(none(), none(width), none(len(corner)), corner)
    more = jnp.zeros((width + 1, *band.shape[1:]))
    rows = jnp.concatenate([band, more])[:, : width + 1]  # of each: what is left of the diagonal, and the diagonal
    borders = jnp.concatenate([border, jnp.zeros((width + 1, *border.shape[1:]))])
    window = jnp.zeros((width + 1, width + 1, lanes))
    for a in range(width + 1):
        own = rows[a, width - a :]
        window = window.at[a, : a + 1].set(own).at[: a + 1, a].set(own)

    def step(carried, coming):
        window, beside, corner = carried
        row, its_border = coming
        pivot = jnp.where(window[0, 0] > 0.0, window[0, 0], jnp.nan)
        along, scaled = window[1:, 0] / pivot, beside[0] / pivot
        rest = window[1:, 1:] - along[:, None] * window[0, 1:][None]
        window = jnp.concatenate([rest, row[None, :width]], axis=0)
        window = jnp.concatenate([window, row[:, None]], axis=1)
        left = jnp.concatenate([beside[1:] - along[:, None] * beside[0], its_border[None]])
        return (window, left, corner - scaled[:, None] * beside[0]), (pivot, along, scaled)

    first = (window, borders[: width + 1], corner)
    (_, _, corner), (pivots, along, scaled) = jax.lax.scan(step, first, (rows[width + 1 :], borders[width + 1 :]))
    return BorderedFactor(pivots, along, scaled, corner)


_factorise_jit = program(factorise, static_argnums=3)


def selected(factor: BorderedFactor, corner: Array) -> tuple[Array, Array]:
    """Entries of the inverse on the pattern, from the last pivot to the first (Takahashi's equations).

    Those of the band on and right of the diagonal, (band, width + 1, lanes), and the border's (band, border, lanes).
    """
    width, lanes = factor.along.shape[1], corner.shape[-1]
    if not len(factor.pivots):
        return jnp.zeros((0, width + 1, lanes)), jnp.zeros((0, len(corner), lanes))

    def step(carried, own):
        inside, beside = carried
        pivot, along, scaled = own
        row = -jnp.sum(along[:, None] * inside, axis=0) - jnp.sum(scaled * beside, axis=1)
        its_border = -jnp.sum(along[:, None] * beside, axis=0) - jnp.sum(scaled[:, None] * corner, axis=0)
        middle = 1.0 / pivot - jnp.sum(along * row, axis=0) - jnp.sum(scaled * its_border, axis=0)
        found = jnp.concatenate([middle[None], row])
        if width:
            inside = jnp.concatenate([row[None], inside[:-1]])
            inside = jnp.concatenate([found[:width, None], inside[:, :-1]], axis=1)
            beside = jnp.concatenate([its_border[None], beside[:-1]])
        return (inside, beside), (found, its_border)

    nothing = (jnp.zeros((width, width, lanes)), jnp.zeros((width, len(corner), lanes)))
    own = (factor.pivots, factor.along, factor.border)
    return jax.lax.scan(step, nothing, own, reverse=True)[1]


def solved(factor: BorderedFactor, corner: Array, vector: Array) -> Array:
    """precision⁻¹ times a vector (dim, lanes) in the layout's order; `corner` is the inverse's."""
    n, width = factor.along.shape[:2]
    if not n:
        return jnp.sum(corner * vector, axis=1)

    def forward(owed, own):
        value, along = own
        value = value + (owed[0] if width else 0.0)
        left = jnp.concatenate([owed[1:], jnp.zeros_like(owed[:1])]) if width else owed
        return left - along * value, value

    values = jax.lax.scan(forward, jnp.zeros_like(factor.along[0]), (vector[:n], factor.along))[1]
    last = jnp.sum(corner * (vector[n:] - jnp.sum(factor.border * values[:, None], axis=0)), axis=1)
    rest = values / factor.pivots - jnp.sum(factor.border * last, axis=1)

    def backward(later, own):
        value, along = own
        value = value - jnp.sum(along * later, axis=0)
        return jnp.concatenate([value[None], later])[:width], value

    return jnp.concatenate(
        [jax.lax.scan(backward, jnp.zeros_like(factor.along[0]), (rest, factor.along), reverse=True)[1], last]
    )


def _both_sides(right: Array) -> Array:
    """Rows of a symmetric band from their halves on and right of the diagonal."""
    n, width = len(right), right.shape[1] - 1
    left = [jnp.concatenate([jnp.zeros((k, right.shape[-1])), right[: n - k, k]])[:n] for k in range(width, 0, -1)]
    return jnp.concatenate([jnp.stack(left, axis=1), right], axis=1) if left else right


def bordered(order: Any, width: int, border: int) -> Bordered:
    """From the order in which coordinates are eliminated."""
    return Bordered(Layout(tuple(int(place) for place in order), width, border))
