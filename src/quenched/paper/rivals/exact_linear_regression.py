"""Exact Bayesian linear regression of all weights, the yardstick of Sec. 3.2 of the paper."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quenched.models.linear_predictors import (
    check_precision,
    checked_features,
    checked_vector,
    decompose,
    solve_linear,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExactLinearRegression:
    """Posterior of the weights and the log evidence, exact given the two precisions.

    `evidence` is in nats with all constants. `converged` is False when it does not fall before the end of the
    search: with the prior precision if the targets do not depend on the features, with the noise precision if
    the features fit the targets without error.
    """

    mean: Array
    covariance: Array
    prior_precision: float
    noise_precision: float
    evidence: float
    converged: bool


def exact_linear_regression(
    features: ArrayLike,
    targets: ArrayLike,
    *,
    prior_precision: float | None = None,
    noise_precision: float | None = None,
) -> ExactLinearRegression:
    """Exact posterior of a linear model, with the precisions given or learned (None).

    Parameters
    ----------
    features
        Matrix Φ, one row per data item. It may have more columns than rows.
    targets
        Vector y.
    prior_precision, noise_precision
        α and β; what is None is learned by maximising the evidence.
    """
    matrix = checked_features(features)
    y = checked_vector("targets", targets, len(matrix))
    check_precision("prior_precision", prior_precision)
    check_precision("noise_precision", noise_precision)
    solved = solve_linear(decompose(matrix, y, whole=True), prior_precision, noise_precision)
    scaled = solved.directions / np.sqrt(solved.precision)[:, None]
    return ExactLinearRegression(
        mean=solved.coordinates @ solved.directions,
        covariance=scaled.T @ scaled,
        prior_precision=solved.prior_precision,
        noise_precision=solved.noise_precision,
        evidence=solved.evidence,
        converged=solved.converged,
    )
