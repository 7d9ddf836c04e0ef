"""A strictly lower triangle as one vector, and back, by reshaping alone; or a stack of them.

Row i of the triangle and row i from the end fill one row of a rectangle together. Unlike indexing with a list of
places, this costs next to nothing forwards and backwards.
"""

from contextlib import suppress
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jax.lax.linalg import triangular_solve

from quenched.arrays import Array, namespace

_SMALL = 64  # rows of a triangle that NumPy solves as fast as LAPACK's own way


def packed_size(dim: int) -> int:
    """Entries below the diagonal of a (dim, dim) matrix."""
    return dim * (dim - 1) // 2


def unpack(vector: Array, dim: int) -> Array:
    """The (..., dim, dim) matrix with the vector below its diagonal and zeros elsewhere."""
    xp = np if isinstance(vector, np.ndarray) else jnp
    leading, inner = vector.shape[:-1], dim - 1
    if inner == 0:
        return xp.zeros((*leading, 1, 1), vector.dtype)
    square = xp.concatenate([vector[..., inner:], vector[..., ::-1]], axis=-1).reshape(*leading, inner, inner)
    if xp is jnp:
        return jnp.pad(jnp.tril(square), (*((0, 0) for _ in leading), (1, 0), (0, 1)))
    matrix = np.zeros((*leading, dim, dim), vector.dtype)
    np.copyto(matrix[..., 1:, :-1], square, where=_triangle(inner))
    return matrix


def unpack_with(diagonal: Array, vector: Array) -> Array:
    """The lower-triangular matrix with this diagonal, and the vector below it."""
    xp = np if isinstance(vector, np.ndarray) else jnp
    matrix = unpack(vector, diagonal.shape[-1])
    if xp is jnp or not isinstance(diagonal, np.ndarray):
        return matrix + diagonal[..., None] * xp.eye(diagonal.shape[-1])
    places = np.arange(diagonal.shape[-1])
    matrix[..., places, places] = diagonal
    return matrix


def pack(matrix: Array) -> Array:
    """The entries of (..., dim, dim) below the diagonal, in the order that `unpack` reads."""
    xp = np if isinstance(matrix, np.ndarray) else jnp
    leading, inner = matrix.shape[:-2], matrix.shape[-1] - 1
    if inner <= 0:
        return xp.zeros((*leading, 0), matrix.dtype)
    below = matrix[..., 1:, :-1]
    triangle = np.where(_triangle(inner), below, below.dtype.type(0)) if xp is np else jnp.tril(below)
    above = triangle[..., :-1, :]
    folded = (above + above[..., ::-1, ::-1]).reshape(*leading, (inner - 1) * inner)
    # The last row, reversed, comes first; the folded rows follow until the triangle is full.
    return xp.concatenate([triangle[..., -1, ::-1], folded], axis=-1)[..., : packed_size(inner + 1)]


@lru_cache(maxsize=4)
def _triangle(dim: int) -> np.ndarray:
    """Where a matrix has its lower triangle."""
    mask = np.tri(dim, dtype=bool)
    mask.setflags(write=False)
    return mask


def solve_lower(lower: Array, right: Array, *, transposed: bool = False) -> Array:
    """x with lower x = right, or lowerᵀ x = right; `right` is a vector or a matrix.

    On the host a small system is left to NumPy, which is there: importing SciPy takes longer than many fits do. A matrix
    whose diagonal has underflown has no answer: NaN, as in a compiled program.
    """
    if namespace(lower) is not np or namespace(right) is not np:
        columns = right[:, None] if right.ndim == 1 else right
        return triangular_solve(lower, columns, left_side=True, lower=True, transpose_a=transposed).reshape(right.shape)
    if not lower.diagonal().all():
        return np.full(right.shape, np.nan)
    if len(lower) <= _SMALL:
        with suppress(np.linalg.LinAlgError):  # it exchanges rows, and may meet a zero where the diagonal has none
            return np.linalg.solve(lower.T if transposed else lower, right)
    from scipy.linalg import solve_triangular

    return solve_triangular(lower, right, lower=True, trans=int(transposed), check_finite=False)
