"""Symmetric matrices of many inner problems side by side: inverted, solved with, and met by what rows see.

All arrays have the problems ("lanes") along their *last* axis. So every operation is one over contiguous numbers, whatever the
sparsity; only large dense matrices are left to LAPACK, which takes the lanes in turn.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.families import Layout, full_layout, pack

_SMALL = 24  # up to which steps over all lanes are quicker than LAPACK's over each


class Inverse(NamedTuple):
    """Of precisions; NaN in lanes where one is not positive definite."""

    log_determinant: Array  # of the precision, (lanes,)
    covariance: Array  # where the algebra keeps entries, (size, lanes)
    factor: Any = None  # what solving needs besides


@dataclass(frozen=True)
class Dense:
    """Every pair of coordinates may correlate: the entries are those of a (dim, dim) matrix, row by row."""

    dim: int

    @property
    def size(self) -> int:
        return self.dim**2

    def places(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Where entries are kept."""
        return rows * self.dim + columns

    @property
    def rows(self) -> np.ndarray:
        """Of every entry that is kept."""
        return np.repeat(np.arange(self.dim), self.dim)

    @property
    def columns(self) -> np.ndarray:
        return np.tile(np.arange(self.dim), self.dim)

    @property
    def diagonal(self) -> np.ndarray:
        return self.places(np.arange(self.dim), np.arange(self.dim))

    def invert(self, precision: Array) -> Inverse:
        matrix = precision.reshape(self.dim, self.dim, -1)
        log_determinant, inverse = inverted(matrix)
        return Inverse(log_determinant, inverse.reshape(self.size, -1))

    def solve(self, inverse: Inverse, vector: Array) -> Array:
        return jnp.sum(inverse.covariance.reshape(self.dim, self.dim, -1) * vector, axis=1)

    @property
    def layout(self) -> Layout:
        """Of the factor of a precision."""
        return full_layout(self.dim)

    def factors(self, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As a nested posterior keeps them: logarithms of sds (lanes, dim) and what else is in the factor, (lanes, entries)."""
        roots, entries = unit_factors(self.to_dense(precision))
        return -np.log(roots), entries

    def to_dense(self, entries: np.ndarray) -> np.ndarray:
        """(lanes, dim, dim), on the host."""
        return np.moveaxis(np.asarray(entries).reshape(self.dim, self.dim, -1), -1, 0)


def unit_factors(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Square roots of the pivots and the unit lower triangles, packed, of (lanes, n, n); NaN where not positive definite."""
    n = matrices.shape[1]
    if not n:
        return np.zeros((len(matrices), 0)), np.zeros((len(matrices), 0))
    good = np.asarray(np.isfinite(matrices).all(axis=(1, 2)))
    safe = np.where(good[:, None, None], matrices, np.eye(n))
    good &= np.linalg.eigvalsh(safe)[:, 0] > 0.0
    factor = np.linalg.cholesky(np.where(good[:, None, None], safe, np.eye(n)))
    roots = np.diagonal(factor, axis1=1, axis2=2)
    return np.where(good[:, None], roots, np.nan), pack(factor / roots[:, None])


def inverted(matrix: Array) -> tuple[Array, Array]:
    """Log-determinant and inverse of (dim, dim, lanes), by whichever way is quicker."""
    return sweep(matrix) if len(matrix) <= _SMALL else in_turn(matrix)


def in_turn(matrix: Array) -> tuple[Array, Array]:
    """Log-determinant and inverse of (dim, dim, lanes) by LAPACK, one lane after the other."""
    factor = jnp.linalg.cholesky(jnp.moveaxis(matrix, -1, 0))
    unit = jnp.broadcast_to(jnp.eye(len(matrix)), factor.shape)
    half = jax.lax.linalg.triangular_solve(factor, unit, left_side=True, lower=True)
    inverse = jnp.einsum("lki,lkj->ijl", half, half)
    return 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1), inverse


def sweep(matrix: Array) -> tuple[Array, Array]:
    """Log-determinant and inverse of (dim, dim, lanes) by Gauss-Jordan steps, one pivot after the other."""
    dim = len(matrix)

    def step(k, carried):
        matrix, total = carried
        row, pivot = matrix[k], matrix[k, k]
        pivot = jnp.where(pivot > 0.0, pivot, jnp.nan)
        scaled = row / pivot
        matrix = matrix - matrix[:, k, None] * scaled
        matrix = matrix.at[k].set(scaled).at[:, k].set(scaled).at[k, k].set(-1.0 / pivot)
        return matrix, total + jnp.log(pivot)

    swept, total = jax.lax.fori_loop(0, dim, step, (matrix, jnp.zeros(matrix.shape[-1:])))
    return total, -swept
