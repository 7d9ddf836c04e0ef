"""The two-class sets of the paper (Sec. 3.3), in the partitions for training and testing of Rätsch et al.

Partitions 1 to 10 of banana, breast-cancer and heart are read from the original `.asc` files. Those of flare-solar are
**not** those of the literature: they are seeded random splits of the sizes used there, and their `origin` says so.
"""

from dataclasses import dataclass

import numpy as np

from quenched.paper.datasets.files import obtain
from quenched.paper.datasets.registry import find

_PARTS = ("train_data", "train_labels", "test_data", "test_labels")
_SOLAR_TRAIN_ROWS = 666
_SOLAR_SEED = 0


@dataclass(frozen=True, eq=False)
class Partition:
    """Rows to train on and rows to test on.

    Parameters
    ----------
    train_features, test_features
        Float64 of shape (rows, features).
    train_labels, test_labels
        Int64 of shape (rows,), 0 or 1.
    origin
        Whose partition it is: one of Rätsch et al., or a seeded split of ours.
    """

    train_features: np.ndarray
    train_labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray
    origin: str


def partition(name: str, number: int) -> Partition:
    """One partition of a two-class set, fetching its files if need be (see `fetch`).

    The features are as Rätsch et al. published them: standardised before the split into training and test
    rows. The file of flare-solar has raw integers instead; its columns are standardised here in the same
    manner, over the whole matrix and with the divisor N − 1 (a constant column becomes 0).

    Parameters
    ----------
    name
        `banana`, `breast-cancer`, `heart` or `flare-solar`.
    number
        From 1; up to 10 for a set that is read from partitions.

    Raises
    ------
    ValueError
        For an unknown name, the name of a set without partitions, or a partition that there is not.
    """
    files = {file.path: file for file in find(name, "partitions").files}
    if name == "flare-solar":
        if number < 1:
            raise ValueError(f"number={number}: splits of flare-solar are numbered from 1.")
        return _seeded_split(np.loadtxt(obtain([*files.values()])[0], delimiter=",", skiprows=1), number)
    paths = [f"{name}/{name}_{part}_{number}.asc" for part in _PARTS]
    if not set(paths) <= set(files):
        raise ValueError(f"number={number}: {name} has the partitions 1 to {len(files) // len(_PARTS)} here.")
    train, train_labels, test, test_labels = (np.loadtxt(path) for path in obtain([files[path] for path in paths]))
    origin = f"partition {number} of 100 of Rätsch et al., .asc files"
    return Partition(train, _binary(train_labels), test, _binary(test_labels), origin)


def _seeded_split(table: np.ndarray, number: int) -> Partition:
    features, labels = standardise(table[:, 1:]), table[:, 0].astype(np.int64)
    # The raw stream of a bit generator is fixed for all versions of NumPy; `Generator.permutation` is not.
    order = np.argsort(np.random.PCG64([_SOLAR_SEED, number]).random_raw(len(labels)), kind="stable")
    train, test = np.sort(order[:_SOLAR_TRAIN_ROWS]), np.sort(order[_SOLAR_TRAIN_ROWS:])
    origin = f"seeded random split {number} (seed {_SOLAR_SEED}), not a partition of Rätsch et al."
    return Partition(features[train], labels[train], features[test], labels[test], origin)


def _binary(signs: np.ndarray) -> np.ndarray:
    """Labels 0 and 1 for −1 and +1."""
    return (signs > 0).astype(np.int64)


def standardise(features: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1 (divisor N − 1); a constant column becomes 0."""
    constant = np.ptp(features, axis=0) == 0
    scale = np.where(constant, 1.0, features.std(axis=0, ddof=1))
    return np.where(constant, 0.0, (features - features.mean(axis=0)) / scale)
