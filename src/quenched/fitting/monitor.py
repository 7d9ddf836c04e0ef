"""The monitor: the bound on check draws that were never trained on (paper, Sec. 2.3)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from quenched.draws import stream
from quenched.families import Member
from quenched.objective import log_ratios
from quenched.problem import Problem
from quenched.targets import Hyper

Decided = Callable[[float, float, int], bool]  # told the check bound, its error and the draws so far


class Check(NamedTuple):
    """The bound on check draws: unbiased, with its standard error."""

    bound: float
    error: float


def check(
    problem: Problem,
    posterior: Member,
    hyper: Hyper,
    n: int,
    seed: int,
    batch: int,
    decided: Decided = lambda *seen: False,
) -> Check:
    """Mean and standard error of log p − log q over check draws: iid, from another stream of the fit's seed.

    They are drawn and evaluated `batch` at a time, up to `n`, and no more than are needed for a decision.
    """
    random = np.random.default_rng(stream(seed, 1))
    ratios, error = np.zeros(0), np.inf
    while len(ratios) < n:
        fresh = random.standard_normal((min(batch, n - len(ratios)), problem.dim))
        ratios = np.concatenate([ratios, log_ratios(problem, posterior, hyper, fresh)])
        error = float(np.std(ratios, ddof=1) / np.sqrt(len(ratios)))
        if decided(float(np.mean(ratios)), error, len(ratios)):
            break
    return Check(float(np.mean(ratios)), error)
