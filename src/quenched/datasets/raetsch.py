"""The two-class sets of the paper (Sec. 3.3), in the partitions for training and testing of Rätsch et al.

Three sources: the original `.asc` files (partitions 1 to 10 of banana, breast-cancer and heart),
`benchmarks.mat` (all 100 of every set), and, for flare-solar without that file, seeded random splits of the
sizes they used.
"""

import re
from pathlib import Path

import numpy as np

from quenched.datasets.benchmarks import read_benchmarks
from quenched.datasets.fetching import fetch, obtain
from quenched.datasets.partition import Partition, binary_labels, standardise
from quenched.datasets.registry import RemoteFile, find, of_kind

_SOLAR_TRAIN_ROWS = 666
_SEEDED_SPLITS = 10


def partitions(
    name: str,
    *,
    all_partitions: bool = False,
    number: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> tuple[Partition, ...]:
    """Partitions of a two-class set, fetching it if need be (see `fetch`).

    The features are as Rätsch et al. published them: standardised before the split into training and test
    rows. The file of flare-solar has raw integers instead; its columns are standardised here in the same
    manner, over the whole matrix and with the divisor N − 1 (a constant column becomes 0), from either
    source.

    The partitions of flare-solar are **not** those of the literature unless `all_partitions` is true: they
    are random splits into 666 and 400 rows that depend on `seed` alone, and their `origin` says so.

    Parameters
    ----------
    name
        `banana`, `breast-cancer`, `heart` or `flare-solar`.
    all_partitions
        Read the 100 partitions of `benchmarks.mat` (a download of 9 MB) instead of the ten at hand.
    number
        Return the first `number` partitions; by default all that the source has, and 10 seeded splits.
    seed
        The seed of the splits of flare-solar; without effect on partitions that are read from a file.
    progress
        As for `fetch`.

    Raises
    ------
    ValueError
        For an unknown name, the name of a set without partitions, or more partitions than there are.
    """
    if find(name).kind != "partitions":
        raise ValueError(
            f"{name} is not one of the sets in partitions: {', '.join(of_kind('partitions'))}. "
            "For a multiclass set call load(...)."
        )
    if number is not None and number < 1:
        raise ValueError(f"number = {number} partitions were asked for; give 1 or more.")
    if all_partitions:
        (path,) = fetch("raetsch-benchmarks", progress=progress)
        found = read_benchmarks(path, name)
        return found[: _at_most(name, len(found), number)]
    if name == "flare-solar":
        (path,) = fetch(name, progress=progress)
        return _seeded_splits(name, path, _SEEDED_SPLITS if number is None else number, seed)
    return _read_asc(name, number, progress)


def _at_most(name: str, available: int, number: int | None) -> int:
    if number is not None and number > available:
        remedy = " all_partitions=True gives 100." if available < 100 else ""
        raise ValueError(f"{name} has {available} partitions here, not {number}.{remedy}")
    return available if number is None else number


def _read_asc(name: str, number: int | None, progress: bool | None) -> tuple[Partition, ...]:
    by_partition: dict[int, list[RemoteFile]] = {}
    for file in find(name).files:
        match = re.search(r"_(\d+)\.asc$", file.path)
        if match is not None:
            by_partition.setdefault(int(match.group(1)), []).append(file)
    count = _at_most(name, len(by_partition), number)
    wanted = sorted(by_partition)[:count]
    files = [file for i in wanted for file in by_partition[i]]
    paths = {path.name: path for path in obtain(files, progress=progress)}
    return tuple(_one_of_asc(name, i, paths) for i in wanted)


def _one_of_asc(name: str, i: int, paths: dict[str, Path]) -> Partition:
    def read(part: str) -> np.ndarray:
        return np.loadtxt(paths[f"{name}_{part}_{i}.asc"], dtype=np.float64)

    return Partition(
        train_features=read("train_data"),
        train_labels=binary_labels(read("train_labels")),
        test_features=read("test_data"),
        test_labels=binary_labels(read("test_labels")),
        label=f"{name} {i}",
        origin=f"partition {i} of 100 of Rätsch et al., .asc files",
    )


def _seeded_splits(name: str, path: Path, number: int, seed: int) -> tuple[Partition, ...]:
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float64)
    features, labels = standardise(table[:, 1:]), table[:, 0].astype(np.int64)
    return tuple(_seeded_split(name, features, labels, i, seed) for i in range(1, number + 1))


def _seeded_split(name: str, features: np.ndarray, labels: np.ndarray, i: int, seed: int) -> Partition:
    # The raw stream of a bit generator is fixed for all versions of NumPy; `Generator.permutation` is not.
    order = np.argsort(np.random.PCG64([seed, i]).random_raw(len(labels)), kind="stable")
    train, test = np.sort(order[:_SOLAR_TRAIN_ROWS]), np.sort(order[_SOLAR_TRAIN_ROWS:])
    return Partition(
        train_features=features[train],
        train_labels=labels[train],
        test_features=features[test],
        test_labels=labels[test],
        label=f"{name} {i}",
        origin=f"seeded random split {i} (seed {seed}), not a partition of Rätsch et al.",
    )
