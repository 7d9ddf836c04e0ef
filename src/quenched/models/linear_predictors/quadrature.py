"""E log(1 + eˣ) and its derivatives under a Gaussian, to rounding."""

from functools import lru_cache

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from scipy.special import expit, ndtr

from quenched.models.linear_predictors.arguments import Array

# Nodes of Gauss-Hermite, and the sd up to which they are enough. σ has poles at ±iπ: with K nodes the error is at most about
# (K − 1)! (sd/π)^2K, and for many nodes of order exp(−2π√K / sd), below e⁻³⁶ for the last.
_RULES = ((1, 0.0), (4, 0.15), (6, 0.3), (8, 0.42), (16, 0.59), (32, 2 * np.pi * np.sqrt(32) / 36))
_AT_A_TIME = 4096  # rows, to bound the memory


def softplus_expectations(means: Array, variances: Array) -> tuple[Array, Array, Array]:
    """E log(1 + eˣ) and its first two derivatives in the mean, E σ(x) and E σ'(x), for x ~ N(mean, variance).

    Narrow Gaussians take a Gauss-Hermite rule. Wider ones see a rounded kink: max(x, 0) is in closed form, and what is left
    decays like e^−|x| and is integrated by Gauss-Legendre panels.
    """
    deviations = np.sqrt(variances)
    chosen_rule = np.searchsorted([widest for _, widest in _RULES], deviations)
    result = np.empty((3, means.size))
    for rule in np.flatnonzero(np.bincount(chosen_rule)):
        chosen = np.flatnonzero(chosen_rule == rule)
        for first in range(0, chosen.size, _AT_A_TIME):
            block = slice(first, first + _AT_A_TIME)
            block = block if chosen.size == means.size else chosen[block]
            mean, deviation = means[block, None], deviations[block, None]
            wide = rule == len(_RULES)
            result[:, block] = _panels(mean, deviation) if wide else _hermite(mean, deviation, _RULES[rule][0])
    return result[0], result[1], result[2]


def _hermite(means: Array, deviations: Array, nodes: int) -> Array:
    points, weights = hermite_rule(nodes)
    x = means + deviations * points
    below = np.exp(-np.abs(x))
    share = 1.0 / (1.0 + below)
    other = below * share
    values = (np.maximum(x, 0.0) + np.log1p(below), np.where(x >= 0, share, other), other * share)
    return np.array([value @ weights for value in values])


def _panels(means: Array, deviations: Array) -> Array:
    points, loss_weights, miss_weights, slope_weights = _panel_rule()
    scale = deviations * np.sqrt(2 * np.pi)
    above = np.exp(-0.5 * ((points - means) / deviations) ** 2) / scale
    below = np.exp(-0.5 * ((points + means) / deviations) ** 2) / scale
    ratio = means[:, 0] / deviations[:, 0]
    kink = means[:, 0] * ndtr(ratio) + deviations[:, 0] * np.exp(-0.5 * ratio**2) / np.sqrt(2 * np.pi)
    return np.array(
        [
            kink + (above + below) @ loss_weights,
            ndtr(ratio) + (below - above) @ miss_weights,
            (above + below) @ slope_weights,
        ]
    )


@lru_cache(maxsize=8)
def hermite_rule(nodes: int) -> tuple[Array, Array]:
    """Points and weights of Gauss-Hermite for a standard normal; the weights sum to one."""
    points, weights = hermegauss(nodes)
    return points, weights / np.sum(weights)


@lru_cache(maxsize=1)
def _panel_rule() -> tuple[Array, Array, Array, Array]:
    """Points x > 0, with weights for log(1 + e⁻ˣ), σ(−x) and σ'(x); e⁻⁴⁰ is below rounding."""
    edges = np.array([0.0, 1.5, 3.0, 5.0, 7.5, 11.0, 16.0, 24.0, 40.0])
    points, weights = leggauss(24)
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half * (1 + points)).ravel()
    measure = (half * weights).ravel()
    below = expit(-x)
    return x, measure * np.log1p(np.exp(-x)), measure * below, measure * below * (1 - below)
