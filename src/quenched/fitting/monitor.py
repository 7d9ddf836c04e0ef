"""The monitor: the bound on check draws that were never trained on (paper, Sec. 2.3)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from quenched.arrays import Array
from quenched.draws import Purpose, generator
from quenched.fitting.drive import Driver, Entries

_KEPT = 2000  # log ratios of each fit
Decided = Callable[
    [np.ndarray, np.ndarray, np.ndarray, int], np.ndarray
]  # which, their check bounds, errors; the draws


class Checks(NamedTuple):
    """The bounds on check draws: unbiased, with their standard errors."""

    bound: np.ndarray
    error: np.ndarray
    log_ratios: list[np.ndarray]  # log p − log q at the first check draws of each


def clear(gap: Array, error: Array, tolerance: float) -> Array:
    """Whether a check is precise enough to say on which side of the tolerance the gap is."""
    return (abs(gap) + 2.0 * error <= tolerance) | (abs(gap) - 2.0 * error > tolerance)


def too_few(gap: Array, error: Array, tolerance: float) -> Array:
    """Whether the draws have not been shown to suffice."""
    return abs(gap) + 2.0 * error > tolerance


def check(driver: Driver, entries: Entries, *, n: int, batch: int, seed: int, decided: Decided) -> Checks:
    """Mean and standard error of log p − log q over check draws: iid, from another stream of the fit's seed.

    They are drawn and evaluated `batch` at a time, up to `n`, and no more of them than each entry needs for a decision.
    """
    random, many = generator(seed, Purpose.CHECK), len(entries.index)
    mean, squares, seen = np.zeros(many), np.zeros(many), 0
    kept: list[list[np.ndarray]] = [[] for _ in range(many)]
    open_, error = np.arange(many), np.full(many, np.inf)
    while seen < n and len(open_):
        fresh = random.standard_normal((min(batch, n - seen), driver.batch.problem.dim))
        ratios = driver.log_ratios(entries.some(open_), fresh)
        if seen < _KEPT:
            for place, row in zip(open_, ratios, strict=True):
                kept[place].append(row[: _KEPT - seen])
        mean[open_], squares[open_] = _joined(seen, mean[open_], squares[open_], ratios)
        seen += len(fresh)
        error[open_] = np.sqrt(squares[open_] / max(seen - 1, 1) / seen)
        open_ = open_[~decided(open_, mean[open_], error[open_], seen)]
    return Checks(mean, error, [np.concatenate(parts) if parts else np.zeros(0) for parts in kept])


def _joined(seen: int, mean: np.ndarray, squares: np.ndarray, ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sum of squared deviations with more values (Chan, Golub and LeVeque 1983)."""
    n = ratios.shape[1]
    with np.errstate(invalid="ignore", over="ignore"):  # a ratio may be minus infinity
        centre = ratios.mean(axis=1)
        away = centre - mean
        own = np.sum((ratios - centre[:, None]) ** 2, axis=1)
        if seen == 0:
            return centre, own
        return mean + away * n / (seen + n), squares + own + away**2 * seen * n / (seen + n)
