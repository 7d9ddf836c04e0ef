"""Skew normals with given moments, and mixtures of them: the marginals of the simplified Laplace approximation."""

import numpy as np
from scipy.special import ndtr

from quenched.nesting import ThirdOrder

_MOST_SKEWED = 0.95  # a skew normal has no more than 0.995
_LEVELS = {"5%": 0.05, "50%": 0.5, "95%": 0.95}
COLUMNS = ("mean", "sd", "skewness", *_LEVELS)
_PLACES = 401
_REACH = 6.0  # standard deviations to each side


def parameters(skewness: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Location, scale and slant of the skew normals of mean 0, variance 1 and this skewness (Azzalini 1985)."""
    skewness = np.clip(skewness, -_MOST_SKEWED, _MOST_SKEWED)
    share = np.abs(skewness) ** (2.0 / 3.0)
    delta = np.sign(skewness) * np.sqrt(0.5 * np.pi * share / (share + (0.5 * (4.0 - np.pi)) ** (2.0 / 3.0)))
    scale = 1.0 / np.sqrt(1.0 - 2.0 * delta**2 / np.pi)
    return -scale * delta * np.sqrt(2.0 / np.pi), scale, delta / np.sqrt(1.0 - delta**2)


def density(x: np.ndarray, location: np.ndarray, scale: np.ndarray, slant: np.ndarray) -> np.ndarray:
    """Of a skew normal."""
    z = (x - location) / scale
    return np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) * 2.0 * ndtr(slant * z) / scale


def mixed(moments: ThirdOrder, weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """The columns of every parameter, over the lanes."""
    mean = moments.mean @ weights
    away = moments.mean - mean[:, None]
    variance = (moments.sd**2 + away**2) @ weights
    third = (
        np.clip(moments.skewness, -_MOST_SKEWED, _MOST_SKEWED) * moments.sd**3 + 3.0 * moments.sd**2 * away + away**3
    ) @ weights
    sd = np.sqrt(variance)
    quantiles = np.array([_quantiles(row, weights) for row in zip(*moments, mean, sd, strict=True)])
    return mean, sd, third / sd**3, *quantiles.T


def _quantiles(row: tuple, weights: np.ndarray) -> np.ndarray:
    means, sds, skewness, mean, sd = row
    grid = mean + sd * np.linspace(-_REACH, _REACH, _PLACES)
    location, scale, slant = parameters(skewness)
    heights = density((grid[:, None] - means) / sds, location, scale, slant) @ (weights / sds)
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (heights[1:] + heights[:-1]))])
    return np.interp(list(_LEVELS.values()), cumulative / cumulative[-1], grid)
