"""Partitions of the two-class sets: sizes, labels, one set behind all, and seeded splits that stay put."""

from pathlib import Path

import numpy as np
import pytest

from quenched import datasets
from quenched.datasets.partition import binary_labels, standardise

# name: (training rows, test rows, features, share of label 1)
SETS = {
    "banana": (400, 4900, 2, None),
    "breast-cancer": (200, 77, 9, 0.292),
    "heart": (170, 100, 13, 0.444),
    "flare-solar": (666, 400, 9, 589 / 1066),
}


def whole(partition: datasets.Partition) -> np.ndarray:
    """All rows with their labels, in an order that does not depend on the partition."""
    train = np.column_stack([partition.train_features, partition.train_labels])
    test = np.column_stack([partition.test_features, partition.test_labels])
    rows = np.vstack([train, test])
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("name", SETS)
def test_ten_partitions_of_one_set(name: str, data: Path) -> None:
    train, test, features, share = SETS[name]
    found = datasets.partitions(name)
    assert [partition.label for partition in found] == [f"{name} {i}" for i in range(1, 11)]
    for partition in found:
        assert partition.train_features.shape == (train, features)
        assert partition.test_features.shape == (test, features)
        assert partition.train_labels.shape == (train,)
        assert partition.test_labels.shape == (test,)
        assert partition.train_labels.dtype == partition.test_labels.dtype == np.int64
        np.testing.assert_array_equal(whole(partition), whole(found[0]))
    labels = whole(found[0])[:, -1]
    assert set(labels) == {0, 1}
    if share is not None:
        assert labels.mean() == pytest.approx(share, abs=5e-4)
    # Ten different partitions, not one of them ten times.
    assert len({partition.train_features.tobytes() for partition in found}) == 10


@pytest.mark.parametrize("name", ["banana", "heart", "flare-solar"])
def test_columns_are_standardised_over_the_whole_set(name: str, data: Path) -> None:
    features = whole(datasets.partitions(name, number=1)[0])[:, :-1]
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-7)
    np.testing.assert_allclose(features.std(axis=0, ddof=1), 1, atol=1e-7)


def test_label_is_that_of_the_file(data: Path) -> None:
    raw = np.loadtxt(data / "heart/heart_test_labels_7.asc")
    labels = datasets.partitions("heart")[6].test_labels
    np.testing.assert_array_equal(labels == 1, raw == 1)


def test_origin_tells_ours_from_theirs(data: Path) -> None:
    assert "partition 3 of 100 of Rätsch" in datasets.partitions("heart")[2].origin
    origin = datasets.partitions("flare-solar", seed=5)[2].origin
    assert "seeded random split 3 (seed 5), not a partition of Rätsch" in origin


def test_seeded_splits_depend_on_the_seed_alone(data: Path) -> None:
    ten = datasets.partitions("flare-solar")
    for again, before in zip(datasets.partitions("flare-solar", number=12), ten, strict=False):
        np.testing.assert_array_equal(again.train_features, before.train_features)
        np.testing.assert_array_equal(again.test_labels, before.test_labels)
    other = datasets.partitions("flare-solar", seed=1)[0]
    assert not np.array_equal(other.train_features, ten[0].train_features)


def test_seeded_splits_are_the_same_everywhere(data: Path) -> None:
    # Results that were published with these splits must be repeatable with any later NumPy.
    positives = [int(partition.train_labels.sum()) for partition in datasets.partitions("flare-solar")]
    assert positives == [367, 373, 373, 373, 383, 367, 362, 370, 372, 374]


def test_first_partitions_need_only_their_files(data: Path, own_folder: Path) -> None:
    (own_folder / "heart").mkdir()
    for part in ("train_data", "train_labels", "test_data", "test_labels"):
        name = f"heart/heart_{part}_1.asc"
        (own_folder / name).write_bytes((data / name).read_bytes())
    (only,) = datasets.partitions("heart", number=1)
    assert only.label == "heart 1"


@pytest.mark.parametrize(("number", "message"), [(11, "heart has 10 .* all_partitions"), (0, "give 1 or more")])
def test_impossible_number_is_refused(number: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        datasets.partitions("heart", number=number)


@pytest.mark.parametrize("name", ["iris", "raetsch-benchmarks"])
def test_sets_without_partitions_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="banana, breast-cancer, heart, flare-solar"):
        datasets.partitions(name)


def test_constant_column_becomes_zero() -> None:
    table = np.array([[1.0, 0.1], [2.0, 0.1], [6.0, 0.1]])
    scaled = standardise(table)
    np.testing.assert_allclose(scaled[:, 0], (table[:, 0] - 3) / np.sqrt(7))
    np.testing.assert_array_equal(scaled[:, 1], 0)


def test_labels_other_than_signs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"found \[0\.0, 2\.0\]"):
        binary_labels(np.array([-1.0, 0.0, 1.0, 2.0]))
