"""From inner coordinates to the numbers that rows depend on, A_n u, for many inner problems side by side."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array

_FEW = 3  # coordinates of a row up to which all pairs of them are taken together


class Maps(NamedTuple):
    """Combinations of a few coordinates, for every row: A_n u = values_n u[columns_n].

    `places` are those of the pairs of columns among the entries of a precision.
    """

    columns: Array  # (rows, few)
    values: Array  # (rows, combinations, few)
    places: Array  # (rows, few, few)

    def means(self, mean: Array) -> Array:
        """(rows, combinations, lanes)."""
        return jnp.einsum("nrk,nkl->nrl", self.values, mean[self.columns])

    def covariances(self, entries: Array) -> Array:
        """A_n Σ A_nᵀ, (rows, combinations, combinations, lanes)."""
        if self.columns.shape[1] <= _FEW:
            return jnp.einsum("nrk,nkjl,nsj->nrsl", self.values, entries[self.places], self.values)

        def add(total, pair):
            left, right, places = pair
            return total + left[:, :, None, None] * right[:, None, :, None] * entries[places][:, None, None], None

        rows, size = self.values.shape[:2]
        return jax.lax.scan(add, jnp.zeros((rows, size, size, entries.shape[-1])), self._pairs())[0]

    def _pairs(self) -> tuple[Array, Array, Array]:
        """Of columns, one after the other: their values (pairs, rows, combinations) twice, and places (pairs, rows)."""
        few = self.columns.shape[1]
        values, places = jnp.moveaxis(jnp.asarray(self.values), 2, 0), jnp.moveaxis(jnp.asarray(self.places), 0, 2)
        k, j = np.divmod(np.arange(few**2), few)
        return values[k], values[j], places.reshape(few**2, -1)

    def add_gradient(self, total: Array, slopes: Array) -> Array:
        """With Σ_n A_nᵀ slope_n added, (dim, lanes)."""
        return total.at[self.columns].add(jnp.einsum("nrk,nrl->nkl", self.values, slopes))

    def add_curvature(self, total: Array, curvature: Array) -> Array:
        """With Σ_n A_nᵀ H_n A_n added, (entries, lanes)."""
        if self.columns.shape[1] <= _FEW:
            own = jnp.einsum("nrk,nrsl,nsj->nkjl", self.values, curvature, self.values)
            return total.at[self.places].add(own)

        def add(total, pair):
            left, right, places = pair
            return total.at[places].add(jnp.einsum("nr,nrsl,ns->nl", left, curvature, right)), None

        return jax.lax.scan(add, total, self._pairs())[0]

    def dense(self, dim: int) -> np.ndarray:
        """(rows, combinations, dim), on the host."""
        rows, size, few = self.values.shape
        found = np.zeros((rows, size, dim))
        for place in range(few):
            np.add.at(
                found,
                (np.arange(rows)[:, None], np.arange(size), self.columns[:, place, None]),
                self.values[:, :, place],
            )
        return found


class SharedMaps(NamedTuple):
    """The same where all rows see the same coordinates, as through a dense design."""

    columns: Array  # (few,)
    values: Array  # (rows, combinations, few)
    places: Array  # (few, few)

    def means(self, mean: Array) -> Array:
        """(rows, combinations, lanes)."""
        return jnp.einsum("nrk,kl->nrl", self.values, mean[self.columns])

    def covariances(self, entries: Array) -> Array:
        """A_n Σ A_nᵀ, (rows, combinations, combinations, lanes)."""
        half = jnp.einsum("nrk,kjl->nrjl", self.values, entries[self.places])
        return jnp.einsum("nrjl,nsj->nrsl", half, self.values)

    def add_gradient(self, total: Array, slopes: Array) -> Array:
        """With Σ_n A_nᵀ slope_n added, (dim, lanes)."""
        return total.at[self.columns].add(jnp.einsum("nrk,nrl->kl", self.values, slopes))

    def add_curvature(self, total: Array, curvature: Array) -> Array:
        """With Σ_n A_nᵀ H_n A_n added, (entries, lanes)."""
        half = jnp.einsum("nrk,nrsl->nksl", self.values, curvature)
        return total.at[self.places].add(jnp.einsum("nksl,nsj->kjl", half, self.values))

    def dense(self, dim: int) -> np.ndarray:
        """(rows, combinations, dim), on the host."""
        found = np.zeros((*self.values.shape[:2], dim))
        found[:, :, self.columns] = self.values
        return found


def make_maps(columns: np.ndarray, values: np.ndarray, algebra: Any) -> Maps | SharedMaps:
    """Whichever is cheaper; `algebra` knows where entries are kept."""
    first = columns[0]
    if columns.shape[1] > _FEW and len(np.unique(first)) == len(first) and np.all(columns == first):
        return SharedMaps(first, values, algebra.places(first[:, None], first[None, :]))
    return Maps(columns, values, algebra.places(columns[:, :, None], columns[:, None, :]))
