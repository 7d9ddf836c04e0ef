"""How far the family is from the target: importance weights of fresh samples of the posterior.

Pareto-smoothed importance sampling (Vehtari et al. 2024) is ArviZ's. Its k-hat says whether the weights can be trusted:
below 0.5 freely, above 0.7 not.
"""

from typing import NamedTuple

import numpy as np

from quenched.draws import Purpose, generator
from quenched.families import Member
from quenched.objective import log_ratios, place
from quenched.problem import Problem
from quenched.targets import Hyper

_BATCH = 512  # samples at a time
_SAME = 1e-8  # relative differences of log ratios that are none: posterior and target are one


class Importance(NamedTuple):
    """Samples of the posterior with weights that make them samples of the target."""

    samples: np.ndarray  # (n, dim), on the real line
    log_ratios: np.ndarray  # log p − log q
    weights: np.ndarray  # smoothed, with sum one
    khat: float
    evidence: float  # log mean of the smoothed ratios
    evidence_error: float

    @property
    def effective_share(self) -> float:
        """The part of the samples that the weights keep."""
        return float(1.0 / np.sum(self.weights**2)) / len(self.weights)


def weigh(problem: Problem, posterior: Member, hyper: Hyper, n: int, seed: int) -> Importance:
    """Draw n samples of the posterior and weigh them by the target."""
    from arviz_stats.base import array_stats  # half a second to import

    z = generator(seed, Purpose.WEIGHTS).standard_normal((n, problem.dim))
    batches = [z[first : first + _BATCH] for first in range(0, n, _BATCH)]
    ratios = np.concatenate([log_ratios(problem, posterior, hyper, batch) for batch in batches])
    samples = np.asarray(place(posterior, z))
    inside = np.isfinite(ratios)  # the others are beyond the support, and weigh nothing
    if inside.sum() < 0.5 * n:
        return Importance(samples, ratios, np.full(n, 1.0 / n), np.inf, np.nan, np.inf)
    weights = np.zeros(n)
    if np.ptp(ratios[inside]) <= _SAME * max(1.0, float(np.max(np.abs(ratios[inside])))):
        weights[inside], khat = 1.0 / inside.sum(), 0.0  # rounding has no tail to speak of
    else:
        # It takes log likelihoods that are left out: minus the log ratio.
        log_weights, khat = array_stats.psislw(-ratios[inside])
        weights[inside] = np.exp(log_weights)
    middle = np.flatnonzero(inside)[np.argsort(ratios[inside])[inside.sum() // 2]]  # never in the tail that is smoothed
    evidence = ratios[middle] - np.log(weights[middle]) - np.log(n)
    error = np.sqrt(max(n * np.sum(weights**2) - 1.0, 0.0) / n)
    return Importance(samples, ratios, weights, float(khat), float(evidence), float(error))
