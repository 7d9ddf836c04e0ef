"""Every multiclass set: counts as its source states them, and columns where they belong."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

from quenched.paper import datasets

# name: (features, members of each class)
COUNTS = {
    "ecoli": (7, {"cp": 143, "im": 77, "pp": 52, "imU": 35, "om": 20, "omL": 5, "imL": 2, "imS": 2}),
    "glass": (9, {"1": 70, "2": 76, "3": 17, "5": 13, "6": 9, "7": 29}),
    "iris": (4, {"Iris-setosa": 50, "Iris-versicolor": 50, "Iris-virginica": 50}),
    "wine": (13, {"1": 59, "2": 71, "3": 48}),
    "soybean-small": (35, {"D1": 10, "D2": 10, "D3": 10, "D4": 17}),
    "vehicle": (18, {"bus": 218, "saab": 217, "opel": 212, "van": 199}),
    "balance-scale": (4, {"L": 288, "R": 288, "B": 49}),
    "crabs": (5, {"BF": 50, "BM": 50, "OF": 50, "OM": 50}),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str, data: Path) -> None:
    features, members = COUNTS[name]
    loaded = datasets.load(name)
    assert loaded.features.shape == (sum(members.values()), features)
    assert (loaded.features.dtype, loaded.labels.dtype) == (np.float64, np.int64)
    assert np.isfinite(loaded.features).all()
    assert loaded.classes == tuple(sorted(members))
    assert dict(zip(loaded.classes, np.bincount(loaded.labels).tolist(), strict=True)) == members
    known = datasets.find(name)
    assert (known.rows, known.features, known.classes) == (*loaded.features.shape, len(members))


@pytest.mark.parametrize(
    ("name", "first", "class_"),
    [
        ("ecoli", [0.49, 0.29, 0.48, 0.50, 0.56, 0.24, 0.35], "cp"),
        ("glass", [1.52101, 13.64, 4.49, 1.10, 71.78, 0.06, 8.75, 0.00, 0.00], "1"),
        ("crabs", [8.1, 6.7, 16.1, 19, 7], "BM"),
    ],
)
def test_columns_that_identify_rows_are_dropped(name: str, first: list[float], class_: str, data: Path) -> None:
    loaded = datasets.load(name)
    assert loaded.features[0].tolist() == first
    assert loaded.classes[loaded.labels[0]] == class_


def test_balance_obeys_the_lever(data: Path) -> None:
    loaded = datasets.load("balance-scale")
    left_weight, left_distance, right_weight, right_distance = loaded.features.T
    torque = left_weight * left_distance - right_weight * right_distance
    sides = np.array(loaded.classes)[loaded.labels]
    np.testing.assert_array_equal(sides, np.select([torque > 0, torque < 0], ["L", "R"], "B"))


def test_wine_equals_the_copy_of_scikit_learn(data: Path) -> None:
    features, labels = load_wine(return_X_y=True)
    ours = datasets.load("wine")
    np.testing.assert_array_equal(ours.features, features)
    np.testing.assert_array_equal(ours.labels, labels)


def test_vehicle_keeps_the_order_of_its_nine_files(data: Path) -> None:
    last_file = datasets.fetch("vehicle")[-1].read_text().split("\n")
    last_row = [line for line in last_file if line.strip()][-1].split()
    loaded = datasets.load("vehicle")
    assert loaded.features[-1].tolist() == [float(cell) for cell in last_row[:-1]]
    assert loaded.classes[loaded.labels[-1]] == last_row[-1]


@pytest.mark.parametrize("name", ["banana", "flare-solar", "raetsch-benchmarks"])
def test_other_sets_are_refused_with_those_that_would_do(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} is not read here.*Choose one of ecoli, glass.*crabs\."):
        datasets.load(name)
