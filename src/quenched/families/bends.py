"""Quadratic terms of the draws, and how much each coordinate is moved by them.

The terms are z_j z_k for j < k and (z_k² − 1) / √2, in the order of k and then j: each has mean 0 and variance 1, and any
two are uncorrelated. Coordinate i is moved by the terms of the coordinates before it, which are the first i (i + 1) / 2.
"""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array


def n_terms(dim: int) -> int:
    """Quadratic terms of `dim` coordinates."""
    return dim * (dim + 1) // 2


def n_bends(dim: int) -> int:
    """Numbers that move `dim` coordinates, each by the terms of those before it."""
    return (dim - 1) * dim * (dim + 1) // 6


def terms(draws: Array) -> Array:
    """Every term at every row of (n, dim), as (n, terms)."""
    first, second, weights = _pairs(draws.shape[-1])
    return (draws[..., first] * draws[..., second] - (first == second)) * weights


def unpack_bends(vector: Array, dim: int) -> Array:
    """The (dim, terms) matrix with the vector where a coordinate may be moved, and zeros elsewhere."""
    if not vector.size:
        return jnp.zeros((dim, n_terms(dim)), vector.dtype)
    return jnp.zeros((dim, n_terms(dim)), vector.dtype).at[_places(dim)].set(vector)


def met_by_bends(bends: Array, products: Array) -> Array:
    """E of (what moves coordinate k) × x_i, for x_i uncorrelated with every term but its own z_i z_j, j ≤ i.

    `products[i, j]` is E x_i z_i z_j; of x_i z_i² on the diagonal, x_i having mean zero.
    """
    dim = bends.shape[0]
    first, second, weights = _pairs(dim)
    return (bends * (products[second, first] * weights)) @ (second[:, None] == np.arange(dim)).astype(float)


@lru_cache(maxsize=8)
def _pairs(dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    second, first = np.tril_indices(dim)
    return first, second, np.where(first == second, np.sqrt(0.5), 1.0)


@lru_cache(maxsize=8)
def _places(dim: int) -> tuple[np.ndarray, np.ndarray]:
    lengths = [n_terms(index) for index in range(dim)]
    rows = np.repeat(np.arange(dim), lengths)
    return rows, np.concatenate([np.arange(length) for length in lengths])
