"""The monitor: the bound on check draws that were never trained on (paper, Sec. 2.3)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from quenched.arrays import Array
from quenched.draws import Purpose, generator
from quenched.families import Member
from quenched.fitting.ascent import Watch
from quenched.objective import log_ratios
from quenched.outcome import Status
from quenched.problem import Problem
from quenched.targets import Hyper

_FEW_EVALUATIONS = 6  # more than a line search usually rejects in a row

Decided = Callable[[float, float, int], bool]  # told the check bound, its error and the draws so far


def until_level(watch: Watch, nats: float) -> Watch:
    """A watch that also ends an ascent, as converged, when a few evaluations raised the bound by less than `nats`."""
    bounds: list[float] = []

    def told(bound: float, n_draws: int) -> Status | None:
        bounds.append(bound)
        level = len(bounds) > _FEW_EVALUATIONS and bound - bounds[-1 - _FEW_EVALUATIONS] < nats
        return Status.CONVERGED if level else watch(bound, n_draws)

    return told


class Check(NamedTuple):
    """The bound on check draws: unbiased, with its standard error."""

    bound: float
    error: float


def clear(gap: Array, error: Array, tolerance: float) -> Array:
    """Whether a check is precise enough to say on which side of the tolerance the gap is."""
    return (abs(gap) + 2.0 * error <= tolerance) | (abs(gap) - 2.0 * error > tolerance)


def too_few(gap: Array, error: Array, tolerance: float) -> Array:
    """Whether the draws have not been shown to suffice."""
    return abs(gap) + 2.0 * error > tolerance


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
    random = generator(seed, Purpose.CHECK)
    ratios, error = np.zeros(0), np.inf
    while len(ratios) < n:
        fresh = random.standard_normal((min(batch, n - len(ratios)), problem.dim))
        ratios = np.concatenate([ratios, log_ratios(problem, posterior, hyper, fresh)])
        error = float(np.std(ratios, ddof=1) / np.sqrt(len(ratios)))
        if decided(float(np.mean(ratios)), error, len(ratios)):
            break
    return Check(float(np.mean(ratios)), error)
