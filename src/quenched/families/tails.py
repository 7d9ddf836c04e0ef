"""Long tails of outer coordinates: maps that are lines in the middle and parabolas far out.

θ = c + u g((φ − c) / u) with g(x) = x + r h(x) − l h(−x), h(x) = p(x)² / 2 and p(x) = (x + √(x² + 1)) / 2. A Gaussian tail of φ becomes one of
θ that falls off like an exponential: as those do of the logarithm of a standard deviation that may as well be zero. `tails` has
the rows c, u, l and r; with l = r = 0 nothing is moved.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from quenched.arrays import Array, namespace

_BISECTIONS, _POLISHES = 40, 3


def no_tails(dim: int) -> np.ndarray:
    """The identity."""
    return np.stack([np.zeros(dim), np.ones(dim), np.zeros(dim), np.zeros(dim)])


def lengthen(points: Array, tails: Array) -> Array:
    """The θ of every φ, along the last axis."""
    centre, unit, left, right = _rows(tails)
    return centre + unit * _bent((points - centre) / unit, left, right)


def log_slopes(points: Array, tails: Array) -> Array:
    """log dθ/dφ of every coordinate."""
    centre, unit, left, right = _rows(tails)
    return namespace(points).log(_slope((points - centre) / unit, left, right))


def turns(points: Array, tails: Array) -> Array:
    """The derivative of that in φ."""
    centre, unit, left, right = _rows(tails)
    x = (points - centre) / unit
    root, up, down = (x**2 + 1.0) ** 0.5, right * _part(x) ** 2, left * _part(-x) ** 2
    turn = 2.0 * (up - down) / root**2 - (up + down) * x / root**3
    return turn / _slope(x, left, right) / unit


def shorten(points: Array, tails: Array) -> Array:
    """The φ of every θ: bisection, then Newton steps, through which derivatives pass."""
    centre, unit, left, right = _rows(tails)
    wanted = (points - centre) / unit

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        below = _bent(middle, left, right) < wanted
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    bracket = jnp.minimum(wanted, 0.0) - right - 1.0, jnp.maximum(wanted, 0.0) + left + 1.0
    low, high = lax.fori_loop(0, _BISECTIONS, halve, bracket)
    x = lax.stop_gradient(0.5 * (low + high))
    for _ in range(_POLISHES):
        x = x - (_bent(x, left, right) - wanted) / _slope(x, left, right)
    return centre + unit * x


def _rows(tails: Array) -> tuple[Array, ...]:
    return tuple(tails[..., k, :] for k in range(4))


def _part(x: Array) -> Array:
    """A smooth positive part."""
    root = (x**2 + 1.0) ** 0.5
    return namespace(x).where(x < 0.0, 0.5 / (root + abs(x)), 0.5 * (x + root))


def _bent(x: Array, left: Array, right: Array) -> Array:
    return x + 0.5 * (right * _part(x) ** 2 - left * _part(-x) ** 2)


def _slope(x: Array, left: Array, right: Array) -> Array:
    root = (x**2 + 1.0) ** 0.5
    return 1.0 + (right * _part(x) ** 2 + left * _part(-x) ** 2) / root
