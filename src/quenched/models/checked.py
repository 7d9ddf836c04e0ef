"""What scikit-learn hands to an estimator, checked as scikit-learn wants it checked."""

import re
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from quenched.numbers import real_array
from quenched.text import shown

_LARGEST = 1e100
_MOST = 1e15  # samples that one may count for


class TakesSparse:
    """Of estimators whose rows may be sparse."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # pyright: ignore
        tags.input_tags.sparse = True
        return tags


class Components(TakesSparse, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The base of estimators that turn rows into a few latent variables. Not to be used by itself."""

    components_: np.ndarray

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]


def validated(estimator: BaseEstimator, X: Any, *rest: Any, **options: Any) -> Any:
    """What scikit-learn makes of rows (and targets); whatever goes wrong there names them."""
    for name, value in zip(("X", "y"), (X, *rest), strict=False):
        _refuse_masked(name, value)
    try:
        checked = validate_data(estimator, X, *rest, **options)
    except Exception as error:  # of whatever it is, when it is made an array
        names = "X, y" if rest else "X"
        if isinstance(error, (ValueError, TypeError)) and re.search(r"\b[Xy]\b", str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{names}: {error}") from error
    for name, values in zip(("X", "y"), checked if rest else (checked,), strict=False):
        _refuse_huge(name, values)
    return checked


def _refuse_masked(name: str, value: Any) -> None:
    """NumPy, and scikit-learn with it, would take the values behind the mask for data."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name}: has masked values; leave such rows out, or fill the values in.")


def _refuse_huge(name: str, values: Any) -> None:
    """Numbers whose squares, summed, are none."""
    numbers = getattr(values, "data", values) if hasattr(values, "tocsr") else np.asarray(values)
    if numbers.dtype.kind == "f" and numbers.size and (most := np.max(np.abs(numbers))) > _LARGEST:
        raise ValueError(
            f"{name}: has an entry of {most:.3g}, and squares of what is beyond {_LARGEST:g} are no numbers; give it in a larger unit."
        )


def latent_rows(X: Any, n_components: int) -> np.ndarray:
    """Latent variables (n, n_components)."""
    rows = real_array("X", X)
    if rows.ndim != 2 or rows.shape[1] != n_components:
        raise ValueError(f"X has shape {rows.shape}; give (n_samples, {n_components}), a column for each component.")
    return rows


def seed_of(random_state: Any) -> int:
    """A seed by what scikit-learn calls a random state: a whole number, a generator, or None for another every time."""
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except Exception as error:
        raise ValueError(
            f"random_state={shown(random_state)}: give a whole number from 0 to 2**32 - 1, a RandomState or None."
        ) from error


def new_rows(estimator: BaseEstimator, X: Any) -> Any:
    """New rows, dense or CSR, with the columns of the training rows."""
    return validated(estimator, X, accept_sparse="csr", dtype=np.float64, reset=False)


def checked_training(
    estimator: BaseEstimator, X: Any, y: Any, sample_weight: Any, *, numeric: bool
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Training rows, dense or CSR, their targets, and how often each counts; rows that count zero times are left out."""
    X, y = validated(estimator, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=numeric, ensure_min_samples=2)
    y = np.asarray(y, dtype=np.float64) if numeric else y
    if sample_weight is None:
        return X, y, None
    sample_weight = real_array("sample_weight", sample_weight)[()]  # a number rather than an array of no axes
    try:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    except Exception as error:  # of whatever it is, when it is made an array
        if isinstance(error, (ValueError, TypeError)) and "ample" in str(error):
            raise
        raise ValueError(f"sample_weight={shown(sample_weight)}: {error}") from error
    if weights.max() > _MOST:
        raise ValueError(
            f"sample_weight: {weights.max():.3g} is too large; weights count samples: {_MOST:g} at the most."
        )
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
