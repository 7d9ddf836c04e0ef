"""The monitor: the bound on check draws that were never trained on (paper, Sec. 2.3)."""

from typing import NamedTuple

import numpy as np

from quenched.draws import Draws, iid
from quenched.families import Gaussian
from quenched.objective import log_ratios
from quenched.problem import Problem
from quenched.targets import Hyper


class Check(NamedTuple):
    """The bound on check draws: unbiased, with its standard error."""

    bound: float
    error: float


def check_draws(n: int, dim: int, seed: int) -> Draws:
    """Independent draws from another stream of the same seed."""
    stream = np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0]
    return iid(n, dim, int(stream >> 1))


def check(problem: Problem, posterior: Gaussian, hyper: Hyper, draws: Draws) -> Check:
    """Mean and standard error of log p − log q over the check draws."""
    ratios = log_ratios(problem, posterior, hyper, draws.points)
    return Check(float(np.mean(ratios)), float(np.std(ratios, ddof=1) / np.sqrt(len(ratios))))
