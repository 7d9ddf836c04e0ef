"""The best Gaussian for models of linear predictors, without draws in the space of the weights.

E_q log p(y_n | φ_nᵀw) depends on q = N(μ, Σ) only through the mean and variance of φ_nᵀw (Opper and Archambeau 2009), so a
few frozen points per data item, in one dimension or as many as there are predictors, give the bound
Σ_n E_q log p(y_n | φ_nᵀw) − KL(q ‖ prior). At its maximum

    Σ⁻¹ = P + Σ_n φ_n λ_n φ_nᵀ,  Pμ = Σ_n φ_n g_n,  g_n = E ∇ log p,  λ_n = −E ∇² log p,  α = M / (μᵀμ + tr Σ),

and repeating these as updates is natural-gradient ascent with unit steps, here extrapolated and kept from descending by
`raise_sites`.
"""

import numpy as np

from quenched.draws import Purpose, generator
from quenched.models.linear_predictors.arguments import Array
from quenched.models.linear_predictors.design import Design
from quenched.models.linear_predictors.likelihoods import Likelihood
from quenched.models.linear_predictors.sites import (
    LinearProblem,
    Path,
    SitePosterior,
    SiteRound,
    raise_sites,
    site_posterior,
)
from quenched.models.linear_predictors.start import first_guess

_PROBES = 2


def raise_linear_bound(
    problem: LinearProblem,
    likelihood: Likelihood,
    *,
    max_rounds: int = 500,
    tolerance: float = 1e-8,
) -> Path:
    """Maximise the bound over all Gaussians, and over the prior precision if the problem gives none.

    Parameters
    ----------
    problem, likelihood
        The rows with the prior, and what the data say of their predictors.
    max_rounds, tolerance
        Rounds stop when the norm of the gradient of the bound is below this, in the posterior's own coordinates: half its
        square is about the nats still to be gained. That of the covariance is felt by a few probes. For a given prior precision and a log-concave likelihood
        the bound is concave, so there is one answer.
    """
    design, shape = problem.design, likelihood.site_shape
    n_numbers = int(np.prod(shape))
    n_coordinates = design.view.n_coordinates * (1 if len(shape) == 1 else shape[1])
    probes = generator(0, Purpose.PROBES).standard_normal((n_coordinates, _PROBES))

    def evaluate(point: Array) -> SiteRound:
        curvature = likelihood.proper(point[:n_numbers].reshape(shape))
        push = point[n_numbers:-1].reshape(shape[:-1] if len(shape) == 3 else shape)
        prior = problem.prior(problem.alpha(point[-1]))
        linear = design.transposed_times(design.counted(push)).T.ravel()
        posterior = site_posterior(design, curvature, linear, prior)
        found = likelihood.expectations(posterior.means, posterior.variances)
        pushed, asked = _felt(design, posterior.inverse_factor, found.push, found.curvature - curvature, probes)
        inverse = posterior.inverse_factor
        error = np.sqrt(
            np.sum((inverse @ (pushed - posterior.prior * posterior.mean)) ** 2)
            + np.sum((inverse @ asked) ** 2) / (2 * _PROBES)
            + _precision_error(problem, posterior)
        )
        there = found.push + _times(found.curvature, posterior.means)
        log_alpha = np.log(posterior.prior_precision)
        bound = float(design.counts @ found.log_density) - posterior.divergence
        return SiteRound(
            here=np.concatenate([curvature.ravel(), push.ravel(), [log_alpha]]),
            there=np.concatenate([found.curvature.ravel(), there.ravel(), [problem.next_log_alpha(posterior)]]),
            bound=bound if np.isfinite(bound) else -np.inf,
            error=float(error) if np.isfinite(error) else np.inf,
            posterior=posterior,
        )

    means, variances, log_alpha = first_guess(problem, likelihood)
    first = likelihood.expectations(means, variances)
    pushes = first.push + _times(first.curvature, means)
    start = np.concatenate([first.curvature.ravel(), pushes.ravel(), [log_alpha]])
    return raise_sites(
        evaluate, start, max_rounds, tolerance, metric=_metric(shape, design.weights), exact=likelihood.exact
    )


def _felt(design: Design, inverse: Array, push: Array, misses: Array, probes: Array) -> tuple[Array, Array]:
    """Σ_n φ_n push_n, and D L⁻ᵀ probes for D = Σ_n φ_n misses_n φ_nᵀ, in one pass over the rows.

    |L⁻¹ D L⁻ᵀ|² in Frobenius' norm is felt by L⁻¹ times the latter (Hutchinson); a quarter of it is about what the bound gains
    by the covariance that these sites ask for.
    """
    n_predictors, n_probes = 1 if misses.ndim == 1 else misses.shape[1], probes.shape[1]
    directions = (inverse.T @ probes).reshape(n_predictors, -1, n_probes)
    seen = design.times(directions.transpose(1, 0, 2).reshape(-1, n_predictors * n_probes))
    if misses.ndim == 1:
        asked = misses[:, None] * seen
    else:
        asked = np.matmul(misses, seen.reshape(len(seen), n_predictors, n_probes)).reshape(len(seen), -1)
    back = design.transposed_times(design.counted(np.column_stack([push, asked])))
    of_probes = back[:, n_predictors:].reshape(-1, n_predictors, n_probes).transpose(1, 0, 2)
    return back[:, :n_predictors].T.ravel(), of_probes.reshape(-1, n_probes)


def _precision_error(problem: LinearProblem, posterior: SitePosterior) -> float:
    """The squared gradient in log α, in units of its curvature, about half of the weights that the data determine."""
    if problem.prior_precision is not None:
        return 0.0
    slope = (posterior.n_determined - posterior.prior_precision * posterior.squared) / 2
    return slope**2 / max(posterior.n_determined / 2, 1.0)


def _times(curvature: Array, means: Array) -> Array:
    return curvature * means if curvature.ndim == 1 else np.einsum("njk,nk->nj", curvature, means)


def _metric(shape: tuple[int, ...], weights: Array | None) -> Array | None:
    """An item that counts twice is extrapolated as two items are."""
    if weights is None:
        return None
    sites = int(np.prod(shape[1:]))
    pushes = shape[1] if len(shape) == 3 else 1
    root = np.sqrt(weights)
    return np.concatenate([np.repeat(root, sites), np.repeat(root, pushes), [1.0]])
