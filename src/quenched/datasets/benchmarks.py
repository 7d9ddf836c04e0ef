"""`benchmarks.mat`: every partition of the sets of Rätsch in one MATLAB file, repackaged by Tom Diethe.

One 1×1 struct per set, with the fields `x` (rows × features), `t` (rows × 1, −1 or +1) and `train`, `test`, a
row of 1-based row numbers per partition. Its README says that `x` has *unique* patterns: a row number may
then occur more than once in a partition, even in both of its halves, so nothing here assumes otherwise.
"""

from pathlib import Path

import numpy as np

from quenched.datasets.partition import Partition, binary_labels, standardise
from quenched.datasets.verification import DatasetError

_FIELDS = ("x", "t", "train", "test")


def read_benchmarks(path: Path, name: str) -> tuple[Partition, ...]:
    """All partitions of one set.

    Parameters
    ----------
    path
        `benchmarks.mat`, or a file of the same structure.
    name
        The set, by our name: `breast-cancer` for the file's `breast_cancer`.

    Raises
    ------
    DatasetError
        If the file does not have the structure above.
    """
    features, labels, train, test = _read_struct(path, name.replace("-", "_"))
    if name == "flare-solar":
        # Taken over the rows of a partition, repetitions included, since these are the whole set in any case.
        features = standardise(features, over=np.concatenate([train[0], test[0]]))
    return tuple(
        Partition(
            train_features=features[rows],
            train_labels=labels[rows],
            test_features=features[others],
            test_labels=labels[others],
            label=f"{name} {i}",
            origin=f"partition {i} of {len(train)} of Rätsch et al., {path.name}",
        )
        for i, (rows, others) in enumerate(zip(train, test, strict=True), start=1)
    )


def _read_struct(path: Path, key: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    from scipy.io import loadmat

    # Not squeezed: a set with one partition or one feature must keep both axes.
    variable = loadmat(path, variable_names=[key]).get(key)
    if variable is None:
        raise DatasetError(f"{path} has no variable {key!r}.")
    if variable.dtype.names is None or not set(_FIELDS) <= set(variable.dtype.names):
        raise DatasetError(f"{path}: {key!r} is not a struct with the fields {', '.join(_FIELDS)}.")
    record = variable[0, 0]
    features = np.asarray(record["x"], dtype=np.float64)
    try:
        labels = binary_labels(record["t"])
    except ValueError as error:
        raise DatasetError(f"{path}: {key}.t: {error}") from error
    # Signed before the subtraction: MATLAB may have stored the numbers as unsigned.
    train, test = (np.asarray(record[field]).astype(np.int64) - 1 for field in ("train", "test"))
    _check(path, key, features, labels, train, test)
    return features, labels, train, test


def _check(path: Path, key: str, features: np.ndarray, labels: np.ndarray, train: np.ndarray, test: np.ndarray) -> None:
    rows = len(features)
    if len(labels) != rows:
        raise DatasetError(f"{path}: {key} has {rows} rows in x and {len(labels)} in t.")
    if len(train) != len(test):
        raise DatasetError(f"{path}: {key} has {len(train)} rows in train and {len(test)} in test.")
    for field, numbers in (("train", train), ("test", test)):
        if numbers.min() < 0 or numbers.max() >= rows:
            found = f"{numbers.min() + 1} to {numbers.max() + 1}"
            raise DatasetError(f"{path}: {key}.{field} has row numbers {found}, outside 1 to {rows}.")
