"""The monitor: the bound on check draws that were never trained on (paper, Sec. 2.3)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from quenched.arrays import Array
from quenched.draws import CHECK_BLOCK, Purpose, check_draws, generator
from quenched.fitting.drive import Driver, Entries

_KEPT = 2000  # log ratios of each fit
_FEWEST_BLOCKS = 8  # of check draws, to know how far their means vary
_AIM = 0.5  # of the tolerance: the gap that more draws are to have
_MOST_AT_ONCE = 16  # times the draws that a fit may be given next
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


def draws_needed(n: int, gap: float, tolerance: float, most: int) -> int:
    """How many draws to take next: the gap falls at least as fast as they become more.

    Draws are doubled some times, so that few sizes are ever asked for.
    """
    doublings = np.clip(np.ceil(np.log2(max(abs(gap), 1e-300) / (_AIM * tolerance))), 1, np.log2(_MOST_AT_ONCE))
    return n * 2 ** int(min(doublings, np.log2(most / n)))


def check(driver: Driver, entries: Entries, *, n: int, batch: int, seed: int, decided: Decided) -> Checks:
    """Mean and standard error of log p − log q over check draws, from another stream of the fit's seed.

    They are drawn and evaluated `batch` at a time, up to `n`, and no more of them than each entry needs for a decision.
    """
    random, many = generator(seed, Purpose.CHECK), len(entries.index)
    points, blocks = Moments.none(many), Moments.none(many)
    kept: list[list[np.ndarray]] = [[] for _ in range(many)]
    open_, error = np.arange(many), np.full(many, np.inf)
    while points.n < n and len(open_):
        fresh = check_draws(min(batch, n - points.n), driver.batch.problem.dim, random)
        ratios = driver.log_ratios(entries.some(open_), fresh)
        if points.n < _KEPT:
            for place, row in zip(open_, ratios, strict=True):
                kept[place].append(row[: _KEPT - points.n])
        whole = ratios[:, : len(fresh) // CHECK_BLOCK * CHECK_BLOCK].reshape(len(open_), -1, CHECK_BLOCK)
        points, blocks = points.with_more(open_, ratios), blocks.with_more(open_, whole.mean(axis=2))
        error[open_] = _error(points, blocks)[open_]
        open_ = open_[~decided(open_, points.mean[open_], error[open_], points.n)]
    return Checks(points.mean, error, [np.concatenate(parts) if parts else np.zeros(0) for parts in kept])


class Moments(NamedTuple):
    """Mean and sum of squared deviations of some values, in rows."""

    n: int
    mean: np.ndarray
    squares: np.ndarray

    @staticmethod
    def none(rows: int) -> "Moments":
        return Moments(0, np.zeros(rows), np.zeros(rows))

    def with_more(self, places: np.ndarray, values: np.ndarray) -> "Moments":
        """With more values for some of the rows (Chan, Golub and LeVeque 1983)."""
        n = values.shape[1]
        if n == 0:
            return self
        mean, squares = self.mean.copy(), self.squares.copy()
        with np.errstate(invalid="ignore", over="ignore"):  # a ratio may be minus infinity
            centre = values.mean(axis=1)
            away = centre - mean[places] if self.n else 0.0 * centre
            squares[places] += np.sum((values - centre[:, None]) ** 2, axis=1) + away**2 * self.n * n / (self.n + n)
            mean[places] = centre - away * self.n / (self.n + n)
        return Moments(self.n + n, mean, squares)


def _error(points: Moments, blocks: Moments) -> np.ndarray:
    """By the blocks, each with a scramble of its own; by the points, as if they were independent, where those are few."""
    n = blocks.n
    if n < _FEWEST_BLOCKS:
        return np.sqrt(points.squares / max(points.n - 1, 1) / points.n)
    return np.sqrt(blocks.squares / (n * (n - 3)))  # as wide as Student's t is
