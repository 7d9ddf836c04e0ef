"""The best Gaussian for models of linear predictors, without draws in the space of the weights.

E_q log p(y_n | φ_nᵀw) depends on q = N(μ, Σ) only through the mean and variance of φ_nᵀw (Opper and Archambeau 2009), so a
few frozen points per data item, in one dimension or as many as there are predictors, give the bound
Σ_n E_q log p(y_n | φ_nᵀw) − KL(q ‖ prior). At its maximum

    Σ⁻¹ = P + Σ_n φ_n λ_n φ_nᵀ,  Pμ = Σ_n φ_n g_n,  g_n = E ∇ log p,  λ_n = −E ∇² log p,  α = M / (μᵀμ + tr Σ),

and repeating these as updates is natural-gradient ascent with unit steps, here extrapolated and kept from descending by
`raise_sites`. For logistic regression it is the truth that frozen draws approximate (Sec. 3.3 of the paper).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky

from quenched.draws import Purpose, generator
from quenched.models.linear_predictors.arguments import (
    Array,
    check_precision,
    check_rounds,
    checked_features,
    checked_vector,
)
from quenched.models.linear_predictors.design import Design, lay_out
from quenched.models.linear_predictors.likelihoods import Bernoulli, Likelihood
from quenched.models.linear_predictors.quadrature import softplus_expectations
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


def best_gaussian(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    prior_precision: float | None = None,
    max_rounds: int = 500,
    tolerance: float = 1e-8,
) -> LogisticPosterior:
    """The best Gaussian of logistic regression: mean and covariance of all weights.

    Parameters
    ----------
    features
        Matrix Φ, one row per data item; add a column of ones for a bias.
    labels
        Zeros and ones.
    prior_precision
        α; None learns it.
    max_rounds, tolerance
        As in `raise_linear_bound`.
    """
    problem, y = logistic_problem(features, labels, prior_precision)
    check_rounds(max_rounds, tolerance)
    return answer(
        problem, raise_linear_bound(problem, Bernoulli(2 * y - 1), max_rounds=max_rounds, tolerance=tolerance)
    )


def logistic_problem(
    features: ArrayLike, labels: ArrayLike, prior_precision: float | None
) -> tuple[LinearProblem, Array]:
    """Check the arguments, and rotate the weights into the span of the features."""
    matrix = checked_features(features)
    y = checked_labels(labels, len(matrix))
    check_precision("prior_precision", prior_precision)
    if prior_precision is None and not np.any(matrix):
        raise ValueError("features are all zero and say nothing of the weights; give prior_precision")
    return LinearProblem(lay_out(matrix), prior_precision), y


def answer(problem: LinearProblem, path: Path) -> LogisticPosterior:
    """Where an ascent ended, in terms of all the weights."""
    posterior, view = path.last.posterior, problem.design.view
    spread = view.weights(posterior.inverse_factor)
    covariance = spread.T @ spread
    if view.rotation is not None and view.rank < view.n_weights:
        covariance -= view.rotation @ view.rotation.T / posterior.prior_precision
        covariance[np.diag_indices(view.n_weights)] += 1 / posterior.prior_precision
    return LogisticPosterior(
        mean=view.weights(posterior.mean),
        covariance=covariance,
        prior_precision=posterior.prior_precision,
        bound=path.last.bound,
        history=path.history,
        n_rounds=len(path.history) - 1,
        converged=path.converged and not problem.at_limit(posterior),
    )


def checked_labels(labels: ArrayLike, length: int) -> Array:
    """Zeros and ones, both present, or a ValueError."""
    y = checked_vector("labels", labels, length)
    wrong = y[(y != 0) & (y != 1)]
    if wrong.size:
        raise ValueError(f"labels has the value {wrong[0]}; give 0 and 1 only, (labels > 0) turns -1 and 1 into that")
    if np.all(y == y[0]):
        raise ValueError(f"labels are all {y[0]:.0f}; give data items of both classes")
    return y


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
