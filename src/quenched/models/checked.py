"""What scikit-learn hands to an estimator, checked as scikit-learn wants it checked."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data


def checked_features(estimator: BaseEstimator, X: Any) -> Any:
    """New rows, dense or CSR, with the columns of the training rows."""
    return validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=False)


def checked_training(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, *, numeric: bool
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Training rows, dense or CSR, their targets, and how often each counts; rows that count zero times are left out."""
    X, y = validate_data(
        estimator, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=numeric, ensure_min_samples=2
    )
    y = np.asarray(y, dtype=np.float64) if numeric else y
    if sample_weight is None:
        return X, y, None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    counted = weights > 0
    if counted.sum() < 2:
        raise ValueError(f"sample_weight: {counted.sum()} samples have a positive weight; give at least two.")
    return X[counted], y[counted], weights[counted]


def checked_classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order, and the place of each label among them.

    Raises
    ------
    ValueError
        For one class only, and for targets that are no classes.
    """
    check_classification_targets(y)
    classes, places = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y: there is one class only, {classes[0]!r}; a classifier needs samples of two classes or more."
        )
    return classes, places
