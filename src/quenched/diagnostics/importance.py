"""How far the family is from the target: importance weights of fresh samples of the posterior.

Their k-hat says whether the weights can be trusted: below 0.5 freely, above 0.7 not.
"""

from typing import NamedTuple

import numpy as np

from quenched.draws import Purpose, generator
from quenched.families import Member
from quenched.objective import Problem, log_ratios, place
from quenched.targets import Hyper
from quenched.trust import Weights, weigh_ratios

_BATCH = 512  # samples at a time


class Importance(NamedTuple):
    """Samples of the posterior with weights that make them samples of the target."""

    samples: np.ndarray  # (n, dim), on the real line
    log_ratios: np.ndarray  # log p − log q
    weights: Weights


def weigh(problem: Problem, posterior: Member, hyper: Hyper, n: int, seed: int) -> Importance:
    """Draw n samples of the posterior and weigh them by the target. Fewer are the first of more."""
    z = generator(seed, Purpose.WEIGHTS).standard_normal((n, problem.dim))
    batches = [z[first : first + _BATCH] for first in range(0, n, _BATCH)]
    ratios = np.concatenate([log_ratios(problem, posterior, hyper, batch) for batch in batches])
    return Importance(np.asarray(place(posterior, z)), ratios, weigh_ratios(ratios))
