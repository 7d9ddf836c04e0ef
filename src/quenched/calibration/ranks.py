"""Ranks of true values among posterior samples, and bands for their distribution.

If posteriors are right, the rank of the true value among L independent samples is uniform on 0..L (Talts, Betancourt,
Simpson, Vehtari and Gelman 2018). The band around the distribution function of uniform ranks has simultaneous coverage,
found by simulation as Säilynoja, Bürkner and Vehtari (2022) do.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from quenched.draws import Purpose, generator

_POINTS = 100  # at which the distribution function is looked at, at the most
_SIMULATIONS = 4000


class Band(NamedTuple):
    """Where the empirical distribution function of n uniform ranks lies, at all points at once."""

    points: np.ndarray  # fractions of the ranks, (k,)
    low: np.ndarray  # of the distribution function, (k,)
    high: np.ndarray


def rank_of(true: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """How many of the samples (problem, sample, ...) are below the true values (problem, ...)."""
    return np.sum(samples < true[:, None], axis=1)


def distribution(ranks: np.ndarray, n_samples: int, points: np.ndarray) -> np.ndarray:
    """The empirical distribution function of ranks at fractions of their range."""
    fractions = (np.asarray(ranks) + 0.5) / (n_samples + 1)
    return np.searchsorted(np.sort(fractions), points, side="right") / len(fractions)


@lru_cache(maxsize=32)
def uniform_band(n: int, n_samples: int, coverage: float) -> Band:
    """The band that holds the distribution function of n uniform ranks with this probability.

    Pointwise the distribution function is binomial; the level of the pointwise intervals is lowered until that share of
    simulated functions lies within all of them.
    """
    from scipy.stats import binom

    k = min(_POINTS, n_samples)
    edges = np.arange(1, k + 1) * (n_samples + 1) // (k + 1)
    points = edges / (n_samples + 1)
    random = generator(0, Purpose.BANDS)
    below = np.empty((_SIMULATIONS, k), int)
    for index in range(_SIMULATIONS):
        ranks = random.integers(0, n_samples + 1, n)
        below[index] = np.searchsorted(np.sort(ranks), edges, side="left")
    tails = np.minimum(binom.cdf(below, n, points), binom.sf(below - 1, n, points))
    level = float(np.quantile(tails.min(axis=1), 1.0 - coverage))
    low, high = binom.ppf(level, n, points), binom.isf(level, n, points)
    return Band(points, low / n, high / n)


def departure(ranks: np.ndarray, n_samples: int, band: Band) -> float:
    """How far the ranks leave the band, in half-widths of the band: above 1 they are not uniform."""
    found = distribution(ranks, n_samples, band.points)
    middle, half = 0.5 * (band.low + band.high), np.maximum(0.5 * (band.high - band.low), 1e-12)
    # Functions that touch the band are within it, and often do: rounding may not put them beyond.
    return round(float(np.max(np.abs(found - middle) / half)), 9)
