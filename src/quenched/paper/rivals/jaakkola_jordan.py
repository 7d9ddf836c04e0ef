"""Jaakkola and Jordan's variational logistic regression (2000), the comparison of Sec. 3.3 of the paper.

The logistic function is bounded below by a Gaussian in its argument, tight at ±ξ_n, one ξ per data item.
With λ(ξ) = (σ(ξ) − ½) / (2ξ) and prior N(w | 0, I/α):

    Σ⁻¹ = αI + 2 Σ_n λ(ξ_n) φ_n φ_nᵀ,  μ = Σ Σ_n (y_n − ½) φ_n,
    ξ_n² = φ_nᵀ(Σ + μμᵀ)φ_n,  α = M / (μᵀμ + tr Σ),
    bound = ½ log(|Σ| α^M) + ½ μᵀΣ⁻¹μ + Σ_n [log σ(ξ_n) − ξ_n/2 + λ(ξ_n) ξ_n²].

Plain EM needs hundreds of rounds. Here the rounds are extrapolated (`raise_sites`), and α moves by MacKay's
equation, which has the fixed point of the EM update; a round that would lower the bound is shortened.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

from quenched.models.linear_predictors import SiteRound, check_rounds, raise_sites, site_posterior
from quenched.paper.rivals.best_gaussian import LogisticPosterior, logistic_problem, of_all_weights

Array = NDArray[np.float64]


def jaakkola_jordan(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    prior_precision: float | None = None,
    max_rounds: int = 500,
    tolerance: float = 1e-8,
) -> LogisticPosterior:
    """Variational logistic regression with a quadratic bound on each data item.

    Its own bound is looser than the true bound of the same Gaussian (`logistic_bound`).

    Parameters
    ----------
    features
        Matrix Φ, one row per data item; add a column of ones for a bias.
    labels
        Zeros and ones.
    prior_precision
        α; None learns it.
    max_rounds, tolerance
        Rounds stop when an EM round would move no ξ and not log α by more than this, relative to 1 + ξ.
    """
    problem, y = logistic_problem(features, labels, prior_precision)
    check_rounds(max_rounds, tolerance)
    design = problem.design
    pull = design.transposed_times(y - 0.5)

    def evaluate(point: Array) -> SiteRound:
        tightness, alpha = np.abs(point[:-1]), problem.alpha(point[-1])
        curvature = quadratic_coefficient(tightness)
        posterior = site_posterior(design, 2 * curvature, pull, problem.prior(alpha))
        items = log_expit(tightness) - tightness / 2 + curvature * tightness**2
        wanted = np.append(np.sqrt(posterior.variances + posterior.means**2), problem.next_log_alpha(posterior))
        here = np.append(tightness, np.log(alpha))
        change = np.abs(wanted - here) / np.append(1 + tightness, 1.0)
        bound = posterior.half_log_volume + 0.5 * pull @ posterior.mean + np.sum(items)
        return SiteRound(here, wanted, float(bound), float(np.max(change)), posterior)

    log_alpha = problem.start_log_alpha()
    lengths = np.concatenate([np.sum(block**2, axis=1) for _, block in design.blocks()])
    path = raise_sites(evaluate, np.append(np.sqrt(lengths / np.exp(log_alpha)), log_alpha), max_rounds, tolerance)
    return of_all_weights(problem, path)


def quadratic_coefficient(tightness: Array) -> Array:
    """λ(ξ) = (σ(ξ) − ½) / (2ξ) = tanh(ξ/2) / (4ξ), and its limit 1/8 at zero."""
    small = np.abs(tightness) < 1e-4
    safe = np.where(small, 1.0, tightness)
    # The series of tanh(ξ/2) / (4ξ); its next term is below rounding for ξ < 1e-4.
    return np.where(small, 0.125 - tightness**2 / 96, np.tanh(safe / 2) / (4 * safe))
