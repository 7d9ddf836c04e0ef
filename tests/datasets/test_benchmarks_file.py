"""`benchmarks.mat`, through small files of the same structure: the real one is never needed here."""

from pathlib import Path

import numpy as np
import pytest

from quenched import datasets
from quenched.datasets import raetsch
from quenched.datasets.benchmarks import read_benchmarks

FEATURES = np.array([[0.0, 10.0], [1.0, 11.0], [2.0, 12.0], [3.0, 13.0], [4.0, 14.0]])
SIGNS = np.array([[1], [-1], [1], [-1], [-1]], dtype=np.int8)
TRAIN = np.array([[1, 2, 3], [5, 4, 3], [2, 4, 5]], dtype=np.uint16)
TEST = np.array([[4, 5], [1, 2], [1, 3]], dtype=np.uint16)


def write(folder: Path, **changes) -> Path:
    from scipy.io import savemat

    struct = {"x": FEATURES, "t": SIGNS, "train": TRAIN, "test": TEST, **changes}
    struct = {name: value for name, value in struct.items() if value is not None}
    path = folder / "benchmarks.mat"
    savemat(path, {"breast_cancer": struct, "flare_solar": struct, "other": np.eye(2)}, do_compression=True)
    return path


def test_row_numbers_start_at_one(tmp_path: Path) -> None:
    first, second, third = read_benchmarks(write(tmp_path), "breast-cancer")
    np.testing.assert_array_equal(first.train_features, FEATURES[[0, 1, 2]])
    np.testing.assert_array_equal(first.train_labels, [1, 0, 1])
    np.testing.assert_array_equal(second.train_features, FEATURES[[4, 3, 2]])
    np.testing.assert_array_equal(second.test_features, FEATURES[[0, 1]])
    np.testing.assert_array_equal(third.test_labels, [1, 1])
    assert second.label == "breast-cancer 2"
    assert "partition 2 of 3 of Rätsch" in second.origin
    assert first.train_features.dtype == np.float64
    assert first.train_labels.dtype == np.int64


def test_axes_of_length_one_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path, x=FEATURES[:, :1], train=TRAIN[:1], test=TEST[:1, :1])
    (only,) = read_benchmarks(path, "breast-cancer")
    assert only.train_features.shape == (3, 1)
    assert only.test_features.shape == (1, 1)
    assert only.test_labels.shape == (1,)


def test_solar_is_standardised_over_all_rows_with_repetitions(tmp_path: Path) -> None:
    # Row 1 stands for two equal rows of the set, one in each half; row 5 for none.
    train, test = np.array([[1, 2, 3]]), np.array([[1, 4]])
    (only,) = read_benchmarks(write(tmp_path, train=train, test=test), "flare-solar")
    rows = np.vstack([only.train_features, only.test_features])
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(rows.std(axis=0, ddof=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": TRAIN - 1}, r"breast_cancer\.train has row numbers 0 to 4, outside 1 to 5"),
        ({"test": TEST + 1}, r"breast_cancer\.test has row numbers 2 to 6, outside 1 to 5"),
        ({"test": TEST[:2]}, "3 rows in train and 2 in test"),
        ({"t": SIGNS[:4]}, "5 rows in x and 4 in t"),
        ({"t": SIGNS * 2}, r"breast_cancer\.t: Labels must be -1 or \+1"),
        ({"test": None}, "not a struct with the fields x, t, train, test"),
    ],
)
def test_other_structure_is_refused(changes: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(datasets.DatasetError, match=message):
        read_benchmarks(write(tmp_path, **changes), "breast-cancer")


@pytest.mark.parametrize(("name", "message"), [("heart", "no variable 'heart'"), ("other", "not a struct")])
def test_other_variables_are_refused(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(datasets.DatasetError, match=message):
        read_benchmarks(write(tmp_path), name)


def test_all_partitions_come_from_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path)
    monkeypatch.setattr(raetsch, "fetch", lambda name, progress: {"raetsch-benchmarks": [path]}[name])
    found = datasets.partitions("flare-solar", all_partitions=True)
    assert [partition.label for partition in found] == ["flare-solar 1", "flare-solar 2", "flare-solar 3"]
    assert len(datasets.partitions("breast-cancer", all_partitions=True, number=2)) == 2
    with pytest.raises(ValueError, match="has 3 partitions here, not 4"):
        datasets.partitions("breast-cancer", all_partitions=True, number=4)


def test_the_archive_is_verified_before_it_is_read(own_folder: Path) -> None:
    (own_folder / "raetsch-benchmarks").mkdir()
    path = write(own_folder / "raetsch-benchmarks")
    with pytest.raises(datasets.DatasetError, match="47c19e4bc4716edc") as caught:
        datasets.partitions("breast-cancer", all_partitions=True)
    assert str(path) in str(caught.value)
