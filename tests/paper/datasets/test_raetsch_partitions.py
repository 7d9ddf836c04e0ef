"""Partitions of the two-class sets: sizes, labels, one set behind all, and seeded splits that stay put."""

from pathlib import Path

import numpy as np
import pytest

from quenched.paper.datasets import Partition, partition
from quenched.paper.datasets.two_class_partitions import standardise

# name: (training rows, test rows, features, share of label 1)
SETS = {
    "banana": (400, 4900, 2, None),
    "breast-cancer": (200, 77, 9, 0.292),
    "heart": (170, 100, 13, 0.444),
    "flare-solar": (666, 400, 9, 589 / 1066),
}


def ten(name: str) -> list[Partition]:
    return [partition(name, number) for number in range(1, 11)]


def whole(part: Partition) -> np.ndarray:
    """All rows with their labels, in an order that does not depend on the partition."""
    train = np.column_stack([part.train_features, part.train_labels])
    test = np.column_stack([part.test_features, part.test_labels])
    rows = np.vstack([train, test])
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("name", SETS)
def test_ten_partitions_of_one_set(name: str, data: Path) -> None:
    train, test, features, share = SETS[name]
    found = ten(name)
    for part in found:
        assert part.train_features.shape == (train, features)
        assert part.test_features.shape == (test, features)
        assert part.train_labels.shape == (train,)
        assert part.test_labels.shape == (test,)
        assert part.train_labels.dtype == part.test_labels.dtype == np.int64
        np.testing.assert_array_equal(whole(part), whole(found[0]))
    labels = whole(found[0])[:, -1]
    assert set(labels) == {0, 1}
    if share is not None:
        assert labels.mean() == pytest.approx(share, abs=5e-4)
    # Ten different partitions, not one of them ten times.
    assert len({part.train_features.tobytes() for part in found}) == 10


@pytest.mark.parametrize("name", ["banana", "heart", "flare-solar"])
def test_columns_are_standardised_over_the_whole_set(name: str, data: Path) -> None:
    features = whole(partition(name, 1))[:, :-1]
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-7)
    np.testing.assert_allclose(features.std(axis=0, ddof=1), 1, atol=1e-7)


def test_label_is_that_of_the_file(data: Path) -> None:
    raw = np.loadtxt(data / "heart/heart_test_labels_7.asc")
    labels = partition("heart", 7).test_labels
    np.testing.assert_array_equal(labels == 1, raw == 1)


def test_origin_tells_ours_from_theirs(data: Path) -> None:
    assert "partition 3 of 100 of Rätsch" in partition("heart", 3).origin
    assert "seeded random split 3 (seed 0), not a partition of Rätsch" in partition("flare-solar", 3).origin


def test_seeded_splits_are_the_same_everywhere(data: Path) -> None:
    # Results that were published with these splits must be repeatable with any later NumPy.
    positives = [int(part.train_labels.sum()) for part in ten("flare-solar")]
    assert positives == [367, 373, 373, 373, 383, 367, 362, 370, 372, 374]


def test_a_partition_needs_only_its_files(data: Path, own_folder: Path) -> None:
    (own_folder / "heart").mkdir()
    for part in ("train_data", "train_labels", "test_data", "test_labels"):
        name = f"heart/heart_{part}_2.asc"
        (own_folder / name).write_bytes((data / name).read_bytes())
    assert partition("heart", 2).train_labels.shape == (170,)


@pytest.mark.parametrize(("name", "number"), [("heart", 11), ("heart", 0), ("flare-solar", 0)])
def test_impossible_number_is_refused(name: str, number: int) -> None:
    with pytest.raises(ValueError, match=rf"number={number}: .*{name}.* 1"):
        partition(name, number)


@pytest.mark.parametrize("name", ["iris", "raetsch-benchmarks"])
def test_sets_without_partitions_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="banana, breast-cancer, heart, flare-solar"):
        partition(name, 1)


def test_constant_column_becomes_zero() -> None:
    table = np.array([[1.0, 0.1], [2.0, 0.1], [6.0, 0.1]])
    scaled = standardise(table)
    np.testing.assert_allclose(scaled[:, 0], (table[:, 0] - 3) / np.sqrt(7))
    np.testing.assert_array_equal(scaled[:, 1], 0)
