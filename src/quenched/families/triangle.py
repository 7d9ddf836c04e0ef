"""A strictly lower triangle as one vector, and back, by reshaping alone.

Row i of the triangle and row i from the end fill one row of a rectangle together. Unlike indexing with a list of
places, this costs next to nothing forwards and backwards.
"""

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array


def packed_size(dim: int) -> int:
    """Entries below the diagonal of a (dim, dim) matrix."""
    return dim * (dim - 1) // 2


def unpack(vector: Array, dim: int) -> Array:
    """The (dim, dim) matrix with the vector below its diagonal and zeros elsewhere."""
    inner = dim - 1
    if inner == 0:
        return jnp.zeros((1, 1), vector.dtype)
    square = jnp.concatenate([vector[inner:], vector[::-1]]).reshape(inner, inner)
    return jnp.pad(jnp.tril(square), ((1, 0), (0, 1)))


def pack(matrix: Array) -> Array:
    """The entries below the diagonal, in the order that `unpack` reads."""
    xp = np if isinstance(matrix, np.ndarray) else jnp
    triangle = xp.tril(matrix[1:, :-1])
    inner = triangle.shape[0]
    if inner == 0:
        return xp.zeros(0, matrix.dtype)
    upper = triangle[:-1] + triangle[:-1][::-1, ::-1] if inner > 1 else triangle[:0]
    # The last row, reversed, comes first; the folded rows follow until the triangle is full.
    return xp.concatenate([triangle[-1][::-1], upper.reshape(-1)])[: inner * (inner + 1) // 2]
