"""Products of Hermite polynomials of a few numbers up to a degree: what smooth functions of outer draws are put together from.

Under standard-normal draws they are orthonormal, so that least squares on them is well conditioned whatever the degree.
"""

from itertools import product
from math import comb

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array


def monomials(x: Array, degree: int) -> Array:
    """(..., dim) to (..., count): 1 first, then by degree."""
    xp = np if isinstance(x, np.ndarray) else jnp
    powers = [xp.ones_like(x), x]
    for k in range(1, degree):
        powers.append((x * powers[k] - np.sqrt(k) * powers[k - 1]) / np.sqrt(k + 1.0))
    columns = []
    for orders in _orders(x.shape[-1], degree):
        column = xp.ones(x.shape[:-1])
        for place, order in enumerate(orders):
            column = column if order == 0 else column * powers[order][..., place]
        columns.append(column)
    return xp.stack(columns, axis=-1)


def _orders(dim: int, degree: int) -> list[tuple[int, ...]]:
    if dim > 6:  # few of all products: those of at most two numbers
        pairs = [tuple(int(k == i) + int(k == j) for k in range(dim)) for i in range(dim) for j in range(i, dim)]
        single = [tuple(int(k == i) for k in range(dim)) for i in range(dim)]
        return [(0,) * dim, *single, *(pairs if degree >= 2 else [])]
    found = [orders for orders in product(range(degree + 1), repeat=dim) if sum(orders) <= degree]
    return sorted(found, key=lambda orders: (sum(orders), orders[::-1]))


def count_monomials(dim: int, degree: int) -> int:
    """How many there are."""
    return comb(dim + min(degree, 2 if dim > 6 else degree), dim)
