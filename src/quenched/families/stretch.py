"""The stretching of one axis: a monotone map of the real line whose log slope grows like a logarithm.

stretch(u) is the integral of exp(c s(t)), s(t) = 2 asinh(t / 2): s is close to t for |t| < 2, where nearly all draws are,
and a draw far out is moved by a power of its size, never by an exponential. Positive c makes the right tail long and the
left one short. c = 0 is the identity. Because s is odd, the mean of the log slope is zero whatever c is.
"""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jax import lax

from quenched.arrays import Array

_LARGEST_POWER = 0.95  # the integral reaches both infinities for powers below one
_NODES = 40
_FARTHEST = 50.0  # in asinh(u / 2): beyond any number that has a double
_BISECTIONS, _POLISHES = 40, 3


def steepness(points: Array) -> Array:
    """s(u): what the logarithm of a slope is proportional to."""
    return 2.0 * jnp.arcsinh(0.5 * points)


def stretch(points: Array, rate: Array) -> tuple[Array, Array]:
    """The stretched points, their mean over standard-normal points taken off, and the log slope there."""
    half, power = jnp.arcsinh(0.5 * points), power_of(rate)
    return _integral(half, power) - _centre(power), power * half


def stretch_around(points: Array, power: Array, weights: Array) -> Array:
    """The stretched points (n, k) by powers (k,), their mean over just these points, with their weights, taken off."""
    stretched = _integral(jnp.arcsinh(0.5 * points), power)
    return stretched - weights @ stretched


def unstretch(points: Array, rate: Array) -> Array:
    """The inverse of `stretch`: bisection, then Newton steps, through which derivatives pass."""
    power = power_of(rate)
    wanted = points + _centre(power)

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        below = _integral(middle, power) < wanted
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    edge = jnp.full_like(wanted, _FARTHEST)
    low, high = lax.fori_loop(0, _BISECTIONS, halve, (-edge, edge))
    half = lax.stop_gradient(0.5 * (low + high))
    for _ in range(_POLISHES):
        half = half - (_integral(half, power) - wanted) * jnp.exp(-power * half) / (2.0 * jnp.cosh(half))
    return 2.0 * jnp.sinh(half)


def stretch_moments(rate: Array) -> tuple[Array, Array, Array]:
    """E h z, E h z² and E h² of h = stretch(z), over standard-normal z."""
    nodes, weights = quadrature()
    values, _ = stretch(nodes, rate[..., None])
    return (values * nodes) @ weights, (values * nodes**2) @ weights, values**2 @ weights


def hermite_moments(rate: Array, n: int) -> Array:
    """E h(z) He_k(z) / √k! of h = stretch(z) for k = 1 to n, along a last axis: E h(x) h(y) is their sum times ρᵏ.

    x and y are standard normal and correlate by ρ.
    """
    nodes, weights = quadrature()
    values, _ = stretch(nodes, rate[..., None])
    return (values * weights) @ _hermite_polynomials(n)


@lru_cache(maxsize=2)
def _hermite_polynomials(n: int) -> np.ndarray:
    """(nodes, n), of unit variance."""
    nodes, _ = quadrature()
    found = [np.ones_like(nodes), nodes]
    for k in range(1, n):
        found.append((nodes * found[k] - np.sqrt(k) * found[k - 1]) / np.sqrt(k + 1.0))
    return np.stack(found[1 : n + 1], axis=1)


def slope_moments(rate: Array) -> tuple[Array, Array, Array]:
    """E f, E f z and E f² of the slope f = exp(rate s(z)) that one coordinate gives to another."""
    nodes, weights = quadrature()
    slopes = jnp.exp(rate[..., None] * steepness(nodes))
    return slopes @ weights, (slopes * nodes) @ weights, slopes**2 @ weights


@lru_cache(maxsize=1)
def quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Hermite nodes and weights for standard-normal expectations."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, weights / weights.sum()


def power_of(rate: Array) -> Array:
    """The power by which a rate stretches: 2 c, held below one."""
    return _LARGEST_POWER * jnp.tanh(2.0 * rate / _LARGEST_POWER)


def _integral(half: Array, power: Array) -> Array:
    """∫ exp(power asinh(t / 2)) dt from 0 to 2 sinh(half)."""
    return jnp.expm1((power + 1.0) * half) / (power + 1.0) + jnp.expm1((power - 1.0) * half) / (power - 1.0)


def _centre(power: Array) -> Array:
    nodes, weights = quadrature()
    return _integral(np.arcsinh(0.5 * nodes), power[..., None]) @ weights
