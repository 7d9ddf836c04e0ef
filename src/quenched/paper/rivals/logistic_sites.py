"""Logistic regression with a Gaussian site per data item: what Jaakkola and Jordan and the best Gaussian share.

Both have the posterior N(μ, Σ) with Σ⁻¹ = αI + Σ_n λ_n φ_n φ_nᵀ and differ in how they choose the sites. Both repeat
their updates as a fixed-point iteration, extrapolated and kept from descending (`raise_sites`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, qr, solve_triangular

from quenched.paper.rivals.arguments import Array, check_precision, checked_features, checked_vector


@dataclass(frozen=True, eq=False)
class LogisticPosterior:
    """Gaussian posterior of the weights, with the method's own bound on the log evidence, in nats.

    `history` holds the bound at the start and after each round. `converged` is False when the rounds ran out, or when a
    learned prior precision ran into a limit, most often because the labels do not depend on the features.
    """

    mean: Array
    covariance: Array
    prior_precision: float
    bound: float
    history: Array
    n_rounds: int
    converged: bool


@dataclass(frozen=True, eq=False)
class LogisticProblem:
    """A Bernoulli-logistic regression in coordinates u of the span of the features: w = rotation @ u + rest.

    The posterior of the rest is the prior, whatever the data.
    """

    rows: Array
    rotation: Array
    labels: Array
    prior_precision: float | None

    def start_log_alpha(self) -> float:
        """The given precision, or the one that gives the linear predictor unit variance under the prior."""
        if self.prior_precision is not None:
            return float(np.log(self.prior_precision))
        return float(np.log(np.mean(np.sum(self.rows**2, axis=1))))

    def limits(self) -> tuple[float, float]:
        """Log precisions beyond which the prior, or its effect, is lost in rounding."""
        size = np.log(np.sum(self.rows**2))
        return float(size + np.log(1e-20)), float(size + np.log(1e12))

    def alpha(self, log_alpha: float) -> float:
        """The given precision, or a learned one kept where numbers are safe."""
        if self.prior_precision is not None:
            return self.prior_precision
        return float(np.exp(np.clip(log_alpha, *self.limits())))

    def next_log_alpha(self, posterior: SitePosterior) -> float:
        """MacKay's update γ / μᵀμ with γ = M − α tr Σ; its fixed point is α = M / (μᵀμ + tr Σ)."""
        tiny = np.finfo(float).tiny
        squared = float(posterior.mean @ posterior.mean)
        wanted = np.log(max(posterior.n_effective, tiny)) - np.log(max(squared, tiny))
        return float(np.log(self.alpha(float(wanted))))

    def at_limit(self, posterior: SitePosterior) -> bool:
        """Whether a learned precision ran away."""
        if self.prior_precision is not None:
            return False
        low, high = self.limits()
        return not low + 1e-6 < np.log(posterior.prior_precision) < high - 1e-6

    def answer(self, path: Path) -> LogisticPosterior:
        """Where an ascent ended, in terms of all the weights."""
        posterior = path.last.posterior
        mean, covariance = self.natural_units(posterior)
        return LogisticPosterior(
            mean=mean,
            covariance=covariance,
            prior_precision=posterior.prior_precision,
            bound=path.last.bound,
            history=path.history,
            n_rounds=len(path.history) - 1,
            converged=path.converged and not self.at_limit(posterior),
        )

    def natural_units(self, posterior: SitePosterior) -> tuple[Array, Array]:
        """Mean and covariance of all the weights."""
        half = solve_triangular(posterior.precision_factor, np.eye(posterior.mean.size), lower=True)
        spread = self.rotation @ half.T
        covariance = spread @ spread.T
        n_weights, rank = self.rotation.shape
        if rank < n_weights:
            covariance -= self.rotation @ self.rotation.T / posterior.prior_precision
            covariance[np.diag_indices(n_weights)] += 1 / posterior.prior_precision
        return self.rotation @ posterior.mean, covariance


def logistic_problem(features: ArrayLike, labels: ArrayLike, prior_precision: float | None) -> LogisticProblem:
    """Check the arguments, and rotate the weights into the span of the features."""
    matrix = checked_features(features)
    y = checked_labels(labels, len(matrix))
    check_precision("prior_precision", prior_precision)
    if prior_precision is None and not np.any(matrix):
        raise ValueError("features are all zero and say nothing of the weights; give prior_precision")
    factors: Any = qr(matrix.T, mode="economic", pivoting=True)  # SciPy's stubs do not know the third one
    rotation, triangle, order = factors
    sizes = np.abs(np.diag(triangle))
    rank = max(1, int(np.sum(sizes > sizes[0] * max(matrix.shape) * np.finfo(float).eps)))
    rows = np.empty((len(matrix), rank))
    rows[order] = triangle[:rank].T
    return LogisticProblem(rows, rotation[:, :rank], y, prior_precision)


def checked_labels(labels: ArrayLike, length: int) -> Array:
    """Zeros and ones, both present, or a ValueError."""
    y = checked_vector("labels", labels, length)
    wrong = y[(y != 0) & (y != 1)]
    if wrong.size:
        raise ValueError(f"labels has the value {wrong[0]}; give 0 and 1 only, (labels > 0) turns -1 and 1 into that")
    if np.all(y == y[0]):
        raise ValueError(f"labels are all {y[0]:.0f}; give data items of both classes")
    return y


@dataclass(frozen=True, eq=False)
class SitePosterior:
    """The Gaussian with precision αI + Σ_n λ_n φ_n φ_nᵀ and what the bounds need of it.

    `means` and `variances` are those of the linear predictors φ_nᵀw; `half_log_volume` is ½ log(|Σ| α^M);
    `n_effective` is M − α tr Σ = Σ_n λ_n φ_nᵀΣφ_n.
    """

    mean: Array
    precision_factor: Array
    prior_precision: float
    means: Array
    variances: Array
    half_log_volume: float
    n_effective: float


def site_posterior(rows: Array, site_precision: Array, linear: Array, prior_precision: float) -> SitePosterior:
    """Gaussian with natural parameters linear and αI + Σ_n λ_n φ_n φ_nᵀ, by one Cholesky factorisation."""
    weighted = rows * np.sqrt(site_precision)[:, None]
    factor = _precision_factor(weighted, prior_precision)
    half = solve_triangular(factor, rows.T, lower=True, check_finite=False)
    mean = solve_triangular(factor, solve_triangular(factor, linear, lower=True), lower=True, trans=1)
    variances = np.einsum("in,in->n", half, half)
    half_log_volume = 0.5 * len(mean) * np.log(prior_precision) - np.sum(np.log(np.abs(np.diag(factor))))
    return SitePosterior(
        mean=mean,
        precision_factor=factor,
        prior_precision=float(prior_precision),
        means=rows @ mean,
        variances=variances,
        half_log_volume=float(half_log_volume),
        n_effective=float(site_precision @ variances),
    )


def _precision_factor(weighted: Array, prior_precision: float) -> Array:
    precision = weighted.T @ weighted
    precision[np.diag_indices(len(precision))] += prior_precision
    try:
        factor = cholesky(precision, lower=True, check_finite=False)
        diagonal = np.diag(factor)
        if np.min(diagonal) > 1e-4 * np.max(diagonal):
            return factor
    except np.linalg.LinAlgError:
        pass
    # A weak prior on nearly dependent features: triangulate the square root, whose condition is not squared.
    root = np.vstack([weighted, np.sqrt(prior_precision) * np.eye(len(precision))])
    return np.linalg.qr(root)[1].T


@dataclass(frozen=True, eq=False)
class SiteRound:
    """One evaluation: the point, where the plain update goes, the bound here, and how far from rest."""

    here: Array
    there: Array
    bound: float
    error: float
    posterior: SitePosterior


@dataclass(frozen=True, eq=False)
class Path:
    """Where an ascent ended, the bound along it, and whether it came to rest."""

    last: SiteRound
    history: Array
    converged: bool


def raise_sites(
    evaluate: Callable[[Array], SiteRound], start: Array, max_rounds: int, tolerance: float, memory: int = 8
) -> Path:
    """Fixed-point iteration with Anderson's extrapolation that does not descend.

    Each round tries the extrapolated point, then the plain update, then ever shorter parts of it, and takes
    the first that does not lower the bound. The last coordinate of a point is the log prior precision.
    """
    now = evaluate(start)
    past, history = [now], [now.bound]
    while now.error > tolerance and len(history) <= max_rounds:
        after = _first_ascent(evaluate, now, past)
        if after is None:
            return Path(now, np.array(history), False)
        now = after
        past = [*past[-memory:], now]
        history.append(now.bound)
    return Path(now, np.array(history), now.error <= tolerance)


def _first_ascent(evaluate: Callable[[Array], SiteRound], now: SiteRound, past: list[SiteRound]) -> SiteRound | None:
    slack = 1e-13 * abs(now.bound)
    if len(past) > 1:
        after = evaluate(_extrapolate(past))
        if after.bound >= now.bound - slack:
            return after
        # The past misled: forget it.
        del past[:-1]
    step = now.there - now.here
    # With the prior precision held the step is an ascent direction for certain, with it nearly always.
    held = np.append(step[:-1], 0.0)
    for part in 0.5 ** np.arange(30):
        for direction in (step, held):
            after = evaluate(now.here + part * direction)
            if after.bound >= now.bound - slack:
                return after
    return None


def _extrapolate(past: list[SiteRound]) -> Array:
    """Anderson (1965): the mix of past updates whose residual, by linearity, would be smallest."""
    there = np.array([point.there for point in past])
    residual = there - np.array([point.here for point in past])
    mix = np.linalg.lstsq(np.diff(residual, axis=0).T, residual[-1], rcond=1e-10)[0]
    return there[-1] - np.diff(there, axis=0).T @ mix
