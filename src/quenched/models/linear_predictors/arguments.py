"""Arguments of the rivals, checked before anything is computed: a `ValueError` says what is wrong and what to give."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quenched.numbers import float_array, positive_number, whole_number
from quenched.text import shown

Array = NDArray[np.float64]
_LARGEST = 1e100  # of precisions: squares of larger ones are no numbers


def checked_features(features: ArrayLike, name: str = "features") -> Array:
    """The matrix in 64 bits, or a ValueError that says what is wrong with it."""
    matrix = float_array(name, features)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} has shape {matrix.shape}; give a matrix with a row per data item, not empty")
    check_finite(name, matrix)
    return matrix


def checked_vector(name: str, values: ArrayLike, length: int) -> Array:
    """The vector in 64 bits, or a ValueError that says what is wrong with it."""
    vector = float_array(name, values)
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}; give a vector of shape ({length},)")
    check_finite(name, vector)
    return vector


def check_finite(name: str, values: Array) -> None:
    """Refuse NaN and infinity, naming the first place where they stand."""
    if not np.all(np.isfinite(values)):
        place = tuple(int(index) for index in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{name} is {values[place]} at {place}; remove or impute what is not finite")


def check_precision(name: str, value: float | None) -> None:
    """A precision is None (learn it) or a positive number."""
    try:
        right = value is None or positive_number(name, value) <= _LARGEST
    except ValueError:
        right = False
    if not right:
        raise ValueError(f"{name} is {shown(value)}; give a positive number up to {_LARGEST:g}, or None to learn it")


def check_rounds(max_rounds: int, tolerance: float) -> None:
    """Limits of an iteration: at least one round and a positive tolerance."""
    whole_number("max_rounds", max_rounds, 1)
    positive_number("tolerance", tolerance)
