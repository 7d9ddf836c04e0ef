"""Importance weights from a posterior to its target, Pareto-smoothed (Vehtari, Simpson, Gelman, Yao and Gabry 2024).

The largest ratios p / q are replaced by quantiles of a generalised Pareto distribution fitted to them; its shape, k-hat,
says how far the weights can be trusted: below 0.5 freely, above 0.7 not. All of it is arithmetic on the log ratios
log p − log q at samples of the posterior, which every fit has from its check draws.
"""

from typing import NamedTuple

import numpy as np

GOOD, BAD = 0.5, 0.7  # k-hat
_FEWEST_IN_TAIL = 5
_SAME = 1e-8  # relative differences of log ratios that are none: posterior and target are one
_PRIOR_SHAPE, _PRIOR_WEIGHT = 0.5, 10  # of the shape, in samples: keeps that of a short tail from running wild
_CLEAR = 0.8  # of what a share is short of one: an even share was never seen to be lowered by more
_LARGE = 1.0  # nats by which one posterior may be nearer to the target than another at one draw, and count in full


class Weights(NamedTuple):
    """What the log ratios of some samples say."""

    weights: np.ndarray  # smoothed, with sum one; zero beyond the support
    khat: float
    evidence: float  # log mean of the smoothed ratios
    evidence_error: float  # infinite where the weights cannot tell
    outside: float  # share of the samples at which the target is not finite
    variation: float = 1.0  # distance in total variation, by weights no larger than √n times their mean

    @property
    def share(self) -> float:
        """The part of the samples that the weights keep."""
        return float(1.0 / np.sum(self.weights**2)) / len(self.weights)


class Weighed:
    """What is asked of whoever has `weights`: a fit by its check draws, a diagnosis by its samples."""

    weights: Weights
    up_to_constant: bool  # the log density leaves out constants that nobody knows: then there is no evidence

    @property
    def khat(self) -> float:
        """Pareto k-hat of the weights: the posterior is close to the target below 0.5, and too far above 0.7."""
        return self.weights.khat

    @property
    def evidence(self) -> float:
        """Log evidence by importance sampling, in nats; NaN where the log density is known up to a constant only."""
        return float("nan") if self.up_to_constant else self.weights.evidence

    @property
    def evidence_error(self) -> float:
        """Its standard error; infinite where k-hat is above 0.7, since the weights cannot tell there."""
        return float("nan") if self.up_to_constant else self.weights.evidence_error


def weigh_ratios(log_ratios: np.ndarray) -> Weights:
    """Smooth the weights of samples with these log ratios log p − log q."""
    ratios = np.asarray(log_ratios, dtype=np.float64)
    n, inside = len(ratios), np.isfinite(ratios)  # the others are beyond the support, and weigh nothing
    outside = 1.0 - inside.mean() if n else 1.0
    if inside.sum() < max(0.5 * n, 2):
        return Weights(np.full(n, 1.0 / max(n, 1)), np.inf, np.nan, np.inf, outside)
    logs = np.full(n, -np.inf)
    logs[inside], khat, tail_error = _smoothed(ratios[inside])
    largest = ratios[inside].max()
    with np.errstate(divide="ignore"):
        weights = np.exp(logs)
    mean = weights.mean()
    spread = weights.std(ddof=1) / np.sqrt(n) / mean
    error = np.hypot(spread, tail_error / (n * mean)) if khat <= BAD else np.inf
    variation = _variation(ratios[inside] - largest, n)
    return Weights(weights / weights.sum(), khat, float(largest + np.log(mean)), float(error), outside, variation)


def uneven(log_ratios: np.ndarray, share: float) -> np.ndarray:
    """Which rows of log ratios have weights that keep less than a share of their samples.

    By smoothed weights where it is close: to smooth takes longer than all else. Far below, it would lift a share to this one
    only where a few samples stand out, and more of them are wanted there too. Where there are none, nothing says that they are even.
    """
    if not log_ratios.shape[1]:
        return np.full(len(log_ratios), True)
    with np.errstate(invalid="ignore"):
        weights = np.exp(log_ratios - log_ratios.max(axis=1, keepdims=True))
        raw = weights.sum(axis=1) ** 2 / np.sum(weights**2, axis=1) / log_ratios.shape[1]
    below, clear = raw < share, np.abs(raw - share) > _CLEAR * (1.0 - share)
    for row in np.flatnonzero(~(clear & np.isfinite(log_ratios).all(axis=1))):
        below[row] = weigh_ratios(log_ratios[row]).share < share
    return below


def _variation(logs: np.ndarray, n: int) -> float:
    """By truncated weights (Ionides 2008), which no single sample rules, however long the tail is."""
    weights = np.exp(logs)
    weights = np.minimum(weights, np.sqrt(n) * weights.sum() / n)
    return float(0.5 * (np.abs(weights / weights.sum() - 1.0 / n).sum() + 1.0 - len(logs) / n))


def _smoothed(ratios: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Smoothed log ratios relative to the largest, k-hat, and the error of the sum of the tail due to that of k-hat."""
    logs = ratios - ratios.max()
    if -logs.min() <= _SAME * max(1.0, float(np.max(np.abs(ratios)))):
        return logs, 0.0, 0.0  # rounding has no tail to speak of
    n = len(logs)
    n_tail = int(min(0.2 * n, 3.0 * np.sqrt(n)))
    order = np.argsort(logs, kind="stable")
    cutoff = max(float(logs[order[-n_tail - 1]]), float(np.log(np.finfo(float).tiny)))
    tail = order[logs[order] > cutoff]
    if len(tail) < _FEWEST_IN_TAIL:
        return logs, np.inf, np.inf
    above = np.exp(logs[tail]) - np.exp(cutoff)
    shape, scale = _fit_generalised_pareto(above)
    if not np.isfinite(shape):
        return logs, np.inf, np.inf
    m = len(tail)
    quantiles = (np.arange(m) + 0.5) / m
    smooth = scale * (np.expm1(-shape * np.log1p(-quantiles)) / shape if shape != 0 else -np.log1p(-quantiles))
    logs = logs.copy()
    logs[tail] = np.minimum(np.log(smooth + np.exp(cutoff)), 0.0)
    # The mean of the tail is scale / (1 − shape); the shape is known to (1 + shape) / √m.
    slope = scale / (1.0 - shape) ** 2 if shape < 1.0 else np.inf
    return logs, float(shape), float(m * slope * (1.0 + max(shape, 0.0)) / np.sqrt(m)) * (shape > GOOD)


def _fit_generalised_pareto(values: np.ndarray) -> tuple[float, float]:
    """Shape and scale from sorted positive values, by the profile likelihood (Zhang and Stephens 2009)."""
    n = len(values)
    n_points = 30 + int(np.sqrt(n))
    grid = 1.0 - np.sqrt(n_points / (np.arange(1, n_points + 1) - 0.5))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        grid = grid / (3.0 * values[int(n / 4.0 + 0.5) - 1]) + 1.0 / values[-1]
        shapes = np.mean(np.log1p(-grid[:, None] * values), axis=1)
        likelihood = n * (np.log(-grid / shapes) - shapes - 1.0)
        weights = 1.0 / np.sum(np.exp(likelihood - likelihood[:, None]), axis=1)
    real = weights >= 10 * np.finfo(float).eps
    if not real.any():  # values too far apart for numbers of 64 bits
        return np.inf, np.nan
    weights, grid = weights[real] / weights[real].sum(), grid[real]
    point = float(np.sum(grid * weights))
    shape = float(np.mean(np.log1p(-point * values)))
    scale = -shape / point
    return (n * shape + _PRIOR_WEIGHT * _PRIOR_SHAPE) / (n + _PRIOR_WEIGHT), scale


def gains(log_ratios: np.ndarray, others: np.ndarray) -> bool:
    """Whether one posterior is clearly nearer to the target than another, by their log ratios on the same draws."""
    n = min(len(log_ratios), len(others))
    if n < 2:
        return False
    with np.errstate(invalid="ignore"):
        rise = log_ratios[:n] - others[:n]
        # A few draws that only the other one puts where there is no mass speak for it, and hide it in their noise: cut off,
        # they lower the mean.
        return any(np.mean(part) > 2.0 * np.std(part, ddof=1) / np.sqrt(n) for part in (rise, np.minimum(rise, _LARGE)))
