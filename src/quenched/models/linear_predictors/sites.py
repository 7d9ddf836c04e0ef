"""Models whose data see linear predictors only: a Gaussian site per data item, and the posterior that the sites make.

The posterior is N(μ, Σ) with Σ⁻¹ = P + Σ_n φ_n λ_n φ_nᵀ, P the diagonal prior precision; the best Gaussian of a likelihood
and Jaakkola and Jordan's differ in how they choose the sites. Both repeat their updates as a fixed-point iteration,
extrapolated and kept from descending (`raise_sites`).

With one predictor per item λ_n is a number; with d of them (contrasts between classes) it is a d × d matrix, and the
coordinates are those of the first predictor, then those of the second, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrmm  # pyright: ignore
from scipy.linalg.lapack import dtrtri  # pyright: ignore

from quenched.models.linear_predictors.arguments import Array
from quenched.models.linear_predictors.design import Design, sound_factor

_MEMORY = 8  # rounds that are extrapolated from
_NEARLY = 1.0  # nats that a bound which is not exact may fall below its highest: at rest it is nearly that
INTERCEPT_SD = 10.0  # of the prior of an intercept, on the scale of the predictor


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """Rows of linear predictors with a prior N(0, I/α) on the weights, α given or learned (None)."""

    design: Design
    prior_precision: float | None

    def __post_init__(self):
        if self.prior_precision is not None:  # a whole number may be larger than NumPy can hold
            object.__setattr__(self, "prior_precision", float(self.prior_precision))

    def prior(self, alpha: float) -> Array:
        """Precision of each coordinate of one predictor."""
        view = self.design.view
        return np.append(np.full(view.rank, alpha), np.full(view.n_coordinates - view.rank, INTERCEPT_SD**-2.0))

    def start_log_alpha(self) -> float:
        """The given precision, or the one that gives the linear predictor unit variance under the prior."""
        if self.prior_precision is not None:
            return float(np.log(float(self.prior_precision)))
        return float(np.log(self._size / np.sum(self.design.counts)))

    @property
    def _size(self) -> float:
        return self.design.squares if self.design.squares > 0 else float(np.sum(self.design.counts))

    def limits(self) -> tuple[float, float]:
        """Log precisions beyond which the prior, or its effect, is lost in rounding."""
        size = np.log(self._size)
        return float(size + np.log(1e-20)), float(size + np.log(1e12))

    def alpha(self, log_alpha: float) -> float:
        """The given precision, or a learned one kept where numbers are safe."""
        if self.prior_precision is not None:
            return self.prior_precision
        low, high = self.limits()
        return float(np.exp(min(max(log_alpha, low), high)))

    def next_log_alpha(self, posterior: SitePosterior) -> float:
        """MacKay's update γ / μᵀμ with γ = M − α tr Σ; its fixed point is α = M / (μᵀμ + tr Σ)."""
        tiny = np.finfo(float).tiny
        wanted = np.log(max(posterior.n_determined, tiny)) - np.log(max(posterior.squared, tiny))
        return float(np.log(self.alpha(float(wanted))))

    def at_limit(self, posterior: SitePosterior) -> bool:
        """Whether a learned precision ran away."""
        if self.prior_precision is not None:
            return False
        low, high = self.limits()
        return not low + 1e-6 < np.log(posterior.prior_precision) < high - 1e-6


@dataclass(frozen=True, eq=False)
class SitePosterior:
    """The Gaussian with precision P + Σ_n φ_n λ_n φ_nᵀ and what the bounds need of it.

    `means` and `variances` are those of the linear predictors; `half_log_volume` is ½ log(|Σ| |P|); `n_effective` is
    dim − tr PΣ. `squared` and `n_determined` are μᵀμ and M − α tr Σ of the weights alone, without intercepts.
    `inverse_factor` is L⁻¹ for Σ⁻¹ = L Lᵀ.
    """

    mean: Array
    inverse_factor: Array
    prior: Array
    prior_precision: float
    means: Array
    variances: Array
    half_log_volume: float
    n_effective: float
    squared: float
    n_determined: float

    @property
    def divergence(self) -> float:
        """From the prior, in nats."""
        return (float(self.prior @ self.mean**2) - self.n_effective) / 2 - self.half_log_volume


def site_posterior(design: Design, site_precision: Array, linear: Array, prior: Array) -> SitePosterior:
    """The Gaussian with natural parameters `linear` and P + Σ_n φ_n λ_n φ_nᵀ, by one Cholesky factorisation.

    Parameters
    ----------
    design
        The rows φ_n, and how often each counts.
    site_precision
        λ_n, (N,), or (N, d, d) for d predictors.
    linear
        Of all coordinates, (d r,).
    prior
        Precision of the coordinates of one predictor, (r,); the weights come first, then the intercept.
    """
    counted = design.counted(site_precision)
    n_predictors = 1 if site_precision.ndim == 1 else site_precision.shape[1]
    precision_of_all = np.tile(prior, n_predictors)
    factor = _precision_factor(design, counted, precision_of_all)
    inverse = dtrtri(factor, lower=1)[0]
    mean = inverse.T @ (inverse @ linear)
    means, variances = _predictors(design, mean, inverse, site_precision.shape)
    covered = np.sum(inverse**2, axis=0) * precision_of_all  # the diagonal of PΣ
    rank = design.view.rank
    is_weight = np.tile(np.arange(len(prior)) < rank, n_predictors)
    n_effective = float(np.sum(counted * variances))
    return SitePosterior(
        mean=mean,
        inverse_factor=inverse,
        prior=precision_of_all,
        prior_precision=float(prior[0]),
        means=means,
        variances=variances,
        half_log_volume=float(0.5 * np.sum(np.log(precision_of_all)) - np.sum(np.log(np.abs(np.diag(factor))))),
        n_effective=n_effective,
        squared=float(mean[is_weight] @ mean[is_weight]),
        n_determined=float(n_effective - np.sum(1.0 - covered[~is_weight])),
    )


def _predictors(design: Design, mean: Array, inverse: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Means and (co)variances of the linear predictors of all rows: (N,) and (N,), or (N, d) and (N, d, d)."""
    n_predictors = 1 if len(shape) == 1 else shape[1]
    of_each = mean.reshape(n_predictors, -1)
    halves = inverse.reshape(len(inverse), n_predictors, -1)
    means, variances = np.empty(shape[:-1] if len(shape) == 3 else shape), np.empty(shape)
    for place, block in design.blocks():
        if len(shape) == 1:
            half = dtrmm(1.0, inverse, block.T, lower=1)
            means[place] = block @ mean
            variances[place] = np.einsum("mn,mn->n", half, half)
            continue
        means[place] = block @ of_each.T
        spread = [block @ halves[:, j].T for j in range(n_predictors)]
        for j in range(n_predictors):
            for k in range(j + 1):
                variances[place, j, k] = variances[place, k, j] = np.einsum("nm,nm->n", spread[j], spread[k])
    return means, variances


def _precision_factor(design: Design, site_precision: Array, prior: Array) -> Array:
    precision = np.diag(prior)
    width = design.view.n_coordinates
    for place, block in design.blocks():
        sites = site_precision[place]
        if sites.ndim == 1:
            weighted = block * np.sqrt(sites)[:, None]
            precision += weighted.T @ weighted
            continue
        for j in range(sites.shape[1]):
            for k in range(j + 1):
                part = block.T @ (sites[:, j, k, None] * block)
                precision[j * width : (j + 1) * width, k * width : (k + 1) * width] += part
                if k < j:
                    precision[k * width : (k + 1) * width, j * width : (j + 1) * width] += part.T
    factor = sound_factor(precision)
    # A weak prior on nearly dependent features: triangulate the square root, whose condition is not squared.
    return _triangulated(design, site_precision, prior) if factor is None else factor


def _triangulated(design: Design, site_precision: Array, prior: Array) -> Array:
    root = np.diag(np.sqrt(prior))
    for place, block in design.blocks():
        sites = site_precision[place]
        if sites.ndim == 1:
            rows = block * np.sqrt(sites)[:, None]
        else:
            values, vectors = np.linalg.eigh(sites)
            halves = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
            rows = np.einsum("njk,ni->nkji", halves, block).reshape(-1, len(prior))
        root = np.linalg.qr(np.vstack([root, rows]))[1]
    return root.T * np.sign(np.diag(root))


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
    evaluate: Callable[[Array], SiteRound],
    start: Array,
    max_rounds: int,
    tolerance: float,
    *,
    metric: Array | None = None,
    exact: bool = True,
) -> Path:
    """Fixed-point iteration with Anderson's extrapolation that does not descend.

    Each round tries the extrapolated point, then the plain update, then ever shorter parts of it, and takes
    the first that does not lower the bound; if the bound is not exact, also one that does not lead further from rest. The last coordinate of a point is the log prior precision.

    Parameters
    ----------
    evaluate, start
        The map, and a point.
    max_rounds, tolerance
        It ends after so many rounds, or where the error is below.
    metric
        Weight of each coordinate of a point in the residual that the extrapolation makes small.
    exact
        The updates come to rest at the top of the bound. With frozen draws they do so only nearly.
    """
    now = evaluate(start)
    past, history = [now], [now.bound]
    while now.error > tolerance and len(history) <= max_rounds:
        after = _first_ascent(evaluate, now, past, metric, now.bound if exact else max(history) - _NEARLY)
        if after is None:
            return Path(now, np.array(history), False)
        now = after
        past = [*past[-_MEMORY:], now]
        history.append(now.bound)
    return Path(now, np.array(history), now.error <= tolerance)


def _first_ascent(
    evaluate: Callable[[Array], SiteRound], now: SiteRound, past: list[SiteRound], metric: Array | None, floor: float
) -> SiteRound | None:
    """The first step that does not lower the bound; or above the floor, one that does not lead further from rest."""
    lowest = now.bound - 1e-13 * abs(now.bound)

    def good(after: SiteRound, part_of_error: float) -> bool:
        nearer = floor < now.bound and after.error <= part_of_error * now.error
        return after.bound >= lowest or (nearer and after.bound >= floor)

    if len(past) > 1:
        after = evaluate(_extrapolate(past, metric))
        if good(after, 0.9):
            return after
        # The past misled: forget it.
        del past[:-1]
    step = now.there - now.here
    # With the prior precision held the step is an ascent direction for certain, with it nearly always.
    held = np.append(step[:-1], 0.0)
    for part in 0.5 ** np.arange(30):
        for direction in (step, held):
            after = evaluate(now.here + part * direction)
            if good(after, 2.0):  # near rest plain updates lead on, be it slowly
                return after
    return None


def _extrapolate(past: list[SiteRound], metric: Array | None) -> Array:
    """Anderson (1965): the mix of past updates whose residual, by linearity, would be smallest."""
    there = np.array([point.there for point in past])
    residual = there - np.array([point.here for point in past])
    measured = residual if metric is None else residual * metric
    mix = np.linalg.lstsq(np.diff(measured, axis=0).T, measured[-1], rcond=1e-10)[0]
    return there[-1] - np.diff(there, axis=0).T @ mix
