"""Means and standard deviations of the target, by importance weights on samples of the fitted posterior."""

from typing import NamedTuple

import jax
import numpy as np

from quenched.diagnostics.importance import Importance
from quenched.posterior import to_natural
from quenched.transforms import Parameters, Space


class Reweighted(NamedTuple):
    """Moments in natural units, shaped like `start`, and their standard errors; right as long as k-hat is."""

    mean: Parameters
    sd: Parameters
    mean_error: Parameters
    sd_error: Parameters


def reweight(space: Space, mean: Parameters, sd: Parameters, importance: Importance) -> Reweighted:
    """What the weights make of a posterior's own means and standard deviations.

    Weighted moments are compared with plain ones of the same samples: what the two have in common, which is most of their
    noise when the weights are even, cancels.
    """
    samples, weights = to_natural(space, importance.samples), len(importance.weights) * importance.weights
    leaves, structure = jax.tree.flatten(samples)
    pairs = zip(leaves, jax.tree.leaves(mean), jax.tree.leaves(sd), strict=True)
    columns = zip(*(_reweighted(values, weights, *own) for values, *own in pairs), strict=True)
    return Reweighted(*(jax.tree.unflatten(structure, column) for column in columns))


def _reweighted(values: np.ndarray, weights: np.ndarray, mean: np.ndarray, sd: np.ndarray):
    weights = weights.reshape(-1, *(1,) * (values.ndim - 1))
    away = values - values.mean(axis=0)
    shift = np.mean(weights * away, axis=0)
    plain, weighted = np.mean(away**2, axis=0), np.mean(weights * (away - shift) ** 2, axis=0)
    # How much each sample moves the differences that are reported.
    moves_mean = weights * (away - shift) - away
    moves_ratio = weights * ((away - shift) ** 2 / weighted - 1.0) - (away**2 / plain - 1.0)
    error = lambda moves: np.sqrt(np.mean(moves**2, axis=0) / len(values))
    ratio = np.sqrt(weighted / plain)
    return mean + shift, sd * ratio, error(moves_mean), 0.5 * sd * ratio * error(moves_ratio)
