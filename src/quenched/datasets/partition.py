"""One division of a two-class set into training and test rows."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Partition:
    """Rows to train on and rows to test on.

    Parameters
    ----------
    train_features, test_features
        Float64 of shape (rows, features).
    train_labels, test_labels
        Int64 of shape (rows,), 0 or 1.
    label
        The set and the number of the partition, from 1: `"heart 3"`.
    origin
        Whose partition it is: one of Rätsch et al., or a seeded split of ours.
    """

    train_features: np.ndarray
    train_labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray
    label: str
    origin: str


def binary_labels(signs: np.ndarray) -> np.ndarray:
    """Labels 0 and 1 for −1 and +1."""
    flat = np.asarray(signs).reshape(-1)
    strange = np.setdiff1d(flat, (-1, 1))
    if strange.size:
        raise ValueError(f"Labels must be -1 or +1; found {strange[:5].tolist()}.")
    return (flat > 0).astype(np.int64)


def standardise(features: np.ndarray, over: np.ndarray | None = None) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1 (divisor N − 1); a constant column becomes 0.

    Parameters
    ----------
    features
        Of shape (rows, features).
    over
        The rows, with repetitions, that the means and scales are taken over; every row once by default.
    """
    rows = features if over is None else features[over]
    constant = np.ptp(rows, axis=0) == 0
    scale = np.where(constant, 1.0, rows.std(axis=0, ddof=1))
    return np.where(constant, 0.0, (features - rows.mean(axis=0)) / scale)
