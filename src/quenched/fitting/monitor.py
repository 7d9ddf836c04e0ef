"""The monitor: the bound on check draws that were never trained on (paper, Sec. 2.3)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from quenched.draws import Draws, iid, stream
from quenched.families import Gaussian
from quenched.objective import log_ratios
from quenched.problem import Problem
from quenched.targets import Hyper

Decided = Callable[[float, float, int], bool]  # told the check bound, its error and the draws so far


class Check(NamedTuple):
    """The bound on check draws: unbiased, with its standard error."""

    bound: float
    error: float


def check_draws(n: int, dim: int, seed: int) -> Draws:
    """Independent draws from another stream of the same seed."""
    return iid(n, dim, stream(seed, 1))


def check(
    problem: Problem,
    posterior: Gaussian,
    hyper: Hyper,
    draws: Draws,
    batch: int,
    decided: Decided = lambda *seen: False,
) -> Check:
    """Mean and standard error of log p − log q over the check draws.

    They are taken `batch` at a time, and no more than are needed for a decision.
    """
    ratios = np.zeros(0)
    error = np.inf
    for first in range(0, draws.n, batch):
        part = log_ratios(problem, posterior, hyper, draws.points[first : first + batch])
        ratios = np.concatenate([ratios, part])
        error = float(np.std(ratios, ddof=1) / np.sqrt(len(ratios)))
        if decided(float(np.mean(ratios)), error, len(ratios)):
            break
    return Check(float(np.mean(ratios)), error)
