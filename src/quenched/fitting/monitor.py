"""The monitor: the bound on check draws that were never trained on (paper, Sec. 2.3)."""

from typing import NamedTuple

import numpy as np

from quenched.draws import CHECK_BLOCK, CheckDraws
from quenched.execute import Expired
from quenched.fitting.drive import Driver, Entries

_KEPT = 2560  # log ratios of each fit
_ON_HOST = 8  # check draws at a time, where each is a call of a person's own function
_FEWEST_BLOCKS = 8  # of check draws, to know how far their means vary
FALL = 1.25  # the power of their number by which what Sobol points cost was seen to fall, at least


class Checks(NamedTuple):
    """The bounds on check draws: unbiased, with their standard errors."""

    bound: np.ndarray
    error: np.ndarray
    log_ratios: np.ndarray  # log p − log q at the first check draws of each


def draws_needed(n: int, shortfall: float, tolerance: float, most: int) -> int:
    """How many draws to take next, by what these cost. They are doubled, so that few sizes are ever asked for."""
    return doubled(n, int(np.clip(np.ceil(np.log2(shortfall / tolerance) / FALL), 1, 3)), most)


def doubled(n: int, times: int, most: int) -> int:
    """Draws doubled some times, but no more than there may be."""
    return n * 2 ** min(times, int(np.log2(most / n)))


def check(driver: Driver, entries: Entries, draws: CheckDraws, *, n: int, known: np.ndarray | None = None) -> Checks:
    """Mean and standard error of log p − log q over the first n check draws.

    `known` are log ratios at the first of them, in rows, where these posteriors have been checked by fewer before.
    """
    many = len(entries.index)
    points, blocks, kept = RunningMoments.none(many), RunningMoments.none(many), []
    known = np.zeros((many, 0)) if known is None else known
    for fresh in draws.batches(n):
        again = known[:, points.n : points.n + len(fresh)]
        ratios = again
        if again.shape[1] < len(fresh):
            ratios = np.concatenate([again, _ratios(driver, entries, fresh[again.shape[1] :])], axis=1)
        if points.n < _KEPT:
            kept.append(ratios[:, : _KEPT - points.n])
        whole = ratios[:, : ratios.shape[1] // CHECK_BLOCK * CHECK_BLOCK].reshape(many, -1, CHECK_BLOCK)
        points, blocks = points.with_more(ratios), blocks.with_more(whole.mean(axis=2))
        if ratios.shape[1] < len(fresh) or driver.watch.overdue:
            break
    if not points.n:
        unknown = np.full(many, np.nan)
        return Checks(unknown, unknown, np.zeros((many, 0)))
    return Checks(points.mean, _error(points, blocks), np.concatenate(kept, axis=1))


def _ratios(driver: Driver, entries: Entries, draws: np.ndarray) -> np.ndarray:
    """At all of these draws; on the host, at as many as there is time for."""
    if not driver.batch.problem.target.on_host or driver.watch.ends is None:
        return driver.log_ratios(entries, draws)
    found = [np.zeros((len(entries.index), 0))]
    try:
        for first in range(0, len(draws), _ON_HOST):
            found.append(driver.log_ratios(entries, draws[first : first + _ON_HOST]))
    except Expired:
        pass
    return np.concatenate(found, axis=1)


class RunningMoments(NamedTuple):
    """Mean and sum of squared deviations of some values, in rows."""

    n: int
    mean: np.ndarray
    squares: np.ndarray

    @staticmethod
    def none(rows: int) -> "RunningMoments":
        return RunningMoments(0, np.zeros(rows), np.zeros(rows))

    def with_more(self, values: np.ndarray) -> "RunningMoments":
        """With more values in every row (Chan, Golub and LeVeque 1983)."""
        n = values.shape[1]
        if n == 0:
            return self
        with np.errstate(invalid="ignore", over="ignore"):  # a ratio may be minus infinity
            centre = values.mean(axis=1)
            squares = np.sum((values - centre[:, None]) ** 2, axis=1)
            if self.n == 0:
                return RunningMoments(n, centre, squares)
            away, whole = centre - self.mean, self.n + n
            return RunningMoments(
                whole, self.mean + away * n / whole, self.squares + squares + away**2 * self.n * n / whole
            )


def _error(points: RunningMoments, blocks: RunningMoments) -> np.ndarray:
    """By the blocks, each with a scramble of its own; by the points, as if they were independent, where those are few."""
    n = blocks.n
    if n < _FEWEST_BLOCKS:
        return np.sqrt(points.squares / max(points.n - 1, 1) / points.n)
    return np.sqrt(blocks.squares / (n * (n - 3)))  # as wide as Student's t is
