"""Exact Bayesian linear regression of all weights, the yardstick of Sec. 3.2 of the paper."""

from numpy.typing import ArrayLike

from quenched.models.linear_predictors import (
    LinearSolution,
    check_precision,
    checked_features,
    checked_vector,
    decompose,
    solve_linear,
)


def exact_linear_regression(
    features: ArrayLike,
    targets: ArrayLike,
    *,
    prior_precision: float | None = None,
    noise_precision: float | None = None,
) -> LinearSolution:
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
    return solve_linear(decompose(matrix, y, whole=True), prior_precision, noise_precision)
