"""Arguments of the rivals, checked before anything is computed: a `ValueError` says what is wrong and what to give."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def checked_features(features: ArrayLike, name: str = "features") -> Array:
    """The matrix in 64 bits, or a ValueError that says what is wrong with it."""
    matrix = np.asarray(features, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} has shape {matrix.shape}; give a matrix with a row per data item, not empty")
    check_finite(name, matrix)
    return matrix


def checked_vector(name: str, values: ArrayLike, length: int) -> Array:
    """The vector in 64 bits, or a ValueError that says what is wrong with it."""
    vector = np.asarray(values, dtype=np.float64)
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
    if value is not None and not (np.ndim(value) == 0 and np.isfinite(value) and value > 0):
        raise ValueError(f"{name} is {value}; give a positive number, or None to learn it")


def check_rounds(max_rounds: int, tolerance: float) -> None:
    """Limits of an iteration: at least one round and a positive tolerance."""
    if not max_rounds >= 1:
        raise ValueError(f"max_rounds is {max_rounds}; give 1 or more")
    if not tolerance > 0:
        raise ValueError(f"tolerance is {tolerance}; give a positive number")
