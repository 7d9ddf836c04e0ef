"""The best Gaussian of logistic regression by quadrature: the truth that frozen draws approximate (Sec. 3.3 of the paper).

And the true bound of any Gaussian, by the same quadrature, so that methods can be compared on one scale.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky

from quenched.models.linear_predictors import (
    Bernoulli,
    LinearProblem,
    Path,
    check_precision,
    check_rounds,
    checked_features,
    checked_vector,
    lay_out,
    raise_linear_bound,
    softplus_expectations,
)

Array = NDArray[np.float64]


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
    return of_all_weights(
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


def of_all_weights(problem: LinearProblem, path: Path) -> LogisticPosterior:
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
