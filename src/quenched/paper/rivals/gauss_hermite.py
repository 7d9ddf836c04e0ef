"""The best Gaussian for logistic regression: the truth that frozen draws approximate (Sec. 3.3 of the paper).

E_q log p(y_n | φ_nᵀw) depends on q = N(μ, Σ) only through the mean and variance of the scalar φ_nᵀw (Opper
and Archambeau 2009), so one-dimensional quadrature gives the bound Σ_n E_q log p(y_n | φ_nᵀw) − KL(q ‖ prior)
to rounding. At its maximum

    Σ⁻¹ = αI + Σ_n λ_n φ_n φ_nᵀ,  αμ = Σ_n (y_n − E σ_n) φ_n,  λ_n = E σ'_n,  α = M / (μᵀμ + tr Σ),

and repeating these as updates is natural-gradient ascent with unit steps, here extrapolated and kept from
descending by `raise_sites`.
"""

from functools import lru_cache

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit, ndtr

from quenched.paper.rivals.arguments import Array, check_precision, check_rounds, checked_features, checked_vector
from quenched.paper.rivals.logistic_sites import (
    LogisticPosterior,
    SiteRound,
    checked_labels,
    logistic_problem,
    raise_sites,
    site_posterior,
)


def best_gaussian(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    prior_precision: float | None = None,
    max_rounds: int = 500,
    tolerance: float = 1e-8,
) -> LogisticPosterior:
    """Maximise the bound of logistic regression over all Gaussians, and over the prior precision if None.

    Parameters
    ----------
    features
        Matrix Φ, one row per data item; add a column of ones for a bias.
    labels
        Zeros and ones.
    prior_precision
        α; None learns it.
    max_rounds, tolerance
        Rounds stop when the gradient of the bound is below this, in nats per posterior standard deviation
        (mean and covariance in the posterior's own coordinates, and log α). For a given prior precision the
        bound is concave, so there is one answer.
    """
    problem = logistic_problem(features, labels, prior_precision)
    check_rounds(max_rounds, tolerance)
    rows, signs, n_items = problem.rows, 2 * problem.labels - 1, len(problem.labels)

    def evaluate(point: Array) -> SiteRound:
        curvature, push = np.clip(point[:n_items], 0.0, 0.25), point[n_items:-1]
        posterior = site_posterior(rows, curvature, rows.T @ push, problem.alpha(point[-1]))
        loss, miss, slope = softplus_expectations(-signs * posterior.means, posterior.variances)
        alpha, squared = posterior.prior_precision, posterior.mean @ posterior.mean
        divergence = (alpha * squared - posterior.n_effective) / 2 - posterior.half_log_volume
        gradient = rows.T @ (signs * miss) - alpha * posterior.mean
        errors = (
            np.linalg.norm(solve_triangular(posterior.precision_factor, gradient, lower=True)),
            # At least the norm of the gradient with respect to Σ.
            np.abs(curvature - slope) @ posterior.variances / 2,
            abs(posterior.n_effective - alpha * squared) / 2 if prior_precision is None else 0.0,
        )
        here = np.concatenate([curvature, push, [np.log(alpha)]])
        there = np.concatenate([slope, slope * posterior.means + signs * miss, [problem.next_log_alpha(posterior)]])
        return SiteRound(here, there, float(-np.sum(loss) - divergence), float(max(errors)), posterior)

    start = np.concatenate([np.full(n_items, 0.125), signs / 2, [problem.start_log_alpha()]])
    return problem.answer(raise_sites(evaluate, start, max_rounds, tolerance))


def logistic_bound(
    mean: ArrayLike,
    covariance: ArrayLike,
    features: ArrayLike,
    labels: ArrayLike,
    prior_precision: float,
) -> float:
    """The true bound of any Gaussian for logistic regression, in nats.

    Parameters
    ----------
    mean, covariance
        μ and Σ of the Gaussian.
    features, labels
        Matrix Φ with one row per data item, and zeros and ones.
    prior_precision
        α.
    """
    matrix = checked_features(features)
    y = checked_labels(labels, len(matrix))
    centre = checked_vector("mean", mean, matrix.shape[1])
    factor = _factor(covariance, centre.size)
    check_precision("prior_precision", prior_precision)
    spread = matrix @ factor
    signs = 1 - 2 * y
    loss, _, _ = softplus_expectations(signs * (matrix @ centre), np.einsum("nm,nm->n", spread, spread))
    squared = centre @ centre + np.sum(factor**2)
    log_determinant = 2 * np.sum(np.log(np.diag(factor)))
    divergence = (prior_precision * squared - centre.size * (1 + np.log(prior_precision)) - log_determinant) / 2
    return float(-np.sum(loss) - divergence)


def softplus_expectations(means: Array, variances: Array, nodes: int = 32) -> tuple[Array, Array, Array]:
    """E log(1 + eˣ) and its first two derivatives in the mean, E σ(x) and E σ'(x), for x ~ N(mean, variance).

    Two rules, so that the error stays near rounding at every variance. σ has poles at ±iπ, so the error of
    Gauss-Hermite with K nodes is of order exp(−2π√K / sd): it serves while that is below e⁻³⁶ (sd < 0.99 for
    32 nodes). Wider Gaussians see a rounded kink: max(x, 0) is in closed form, and what is left decays like
    e^−|x| and is integrated by Gauss-Legendre panels.
    """
    deviations = np.sqrt(variances)
    narrow = deviations <= 2 * np.pi * np.sqrt(nodes) / 36
    result = np.empty((3, means.size))
    for where, wide in ((narrow, False), (~narrow, True)):
        chosen = np.flatnonzero(where)
        # Blocks of rows bound the memory.
        for first in range(0, chosen.size, 4096):
            block = chosen[first : first + 4096]
            mean, deviation = means[block, None], deviations[block, None]
            result[:, block] = _panels(mean, deviation) if wide else _hermite(mean, deviation, nodes)
    return result[0], result[1], result[2]


def _hermite(means: Array, deviations: Array, nodes: int) -> Array:
    points, weights = _hermite_rule(nodes)
    x = means + deviations * points
    sigmoid = expit(x)
    values = np.array([np.logaddexp(0.0, x), sigmoid, sigmoid * (1 - sigmoid)])
    return values @ weights


def _panels(means: Array, deviations: Array) -> Array:
    points, loss_weights, miss_weights, slope_weights = _panel_rule()
    scale = deviations * np.sqrt(2 * np.pi)
    above = np.exp(-0.5 * ((points - means) / deviations) ** 2) / scale
    below = np.exp(-0.5 * ((points + means) / deviations) ** 2) / scale
    ratio = means[:, 0] / deviations[:, 0]
    kink = means[:, 0] * ndtr(ratio) + deviations[:, 0] * np.exp(-0.5 * ratio**2) / np.sqrt(2 * np.pi)
    return np.array(
        [
            kink + (above + below) @ loss_weights,
            ndtr(ratio) + (below - above) @ miss_weights,
            (above + below) @ slope_weights,
        ]
    )


@lru_cache(maxsize=8)
def _hermite_rule(nodes: int) -> tuple[Array, Array]:
    points, weights = hermegauss(nodes)
    return points, weights / np.sum(weights)


@lru_cache(maxsize=1)
def _panel_rule() -> tuple[Array, Array, Array, Array]:
    """Points x > 0, with weights for log(1 + e⁻ˣ), σ(−x) and σ'(x); e⁻⁴⁰ is below rounding."""
    edges = np.array([0.0, 1.5, 3.0, 5.0, 7.5, 11.0, 16.0, 24.0, 40.0])
    points, weights = leggauss(24)
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half * (1 + points)).ravel()
    measure = (half * weights).ravel()
    below = expit(-x)
    return x, measure * np.log1p(np.exp(-x)), measure * below, measure * below * (1 - below)


def _factor(covariance: ArrayLike, size: int) -> Array:
    matrix = checked_features(covariance, "covariance")
    if matrix.shape != (size, size):
        raise ValueError(f"covariance has shape {matrix.shape}; give ({size}, {size}), as many as features has columns")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-8 * np.max(np.abs(matrix))):
        raise ValueError("covariance is not symmetric; symmetrise it")
    try:
        return cholesky(matrix, lower=True)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(matrix)[0]
        raise ValueError(f"covariance has eigenvalue {smallest:.3g}; give a positive definite matrix") from None
