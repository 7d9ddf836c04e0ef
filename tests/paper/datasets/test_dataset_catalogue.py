"""The catalogue says where each dataset is now."""

from pathlib import Path

from quenched import datasets
from quenched.datasets.registry import find


def place(folder: Path, name: str, number: int | None = None) -> None:
    for file in find(name).files[:number]:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_where_each_dataset_is(own_folder: Path, empty_cache: Path) -> None:
    place(own_folder, "iris")
    place(empty_cache, "wine")
    place(own_folder, "vehicle", 2)
    place(empty_cache, "heart")
    place(own_folder, "heart", 1)
    where = {row.name: row.where for row in datasets.table()}
    assert where["iris"] == "local folder"
    assert where["wine"] == "cache"
    assert where["vehicle"] == "2 of 9 files"
    assert where["heart"] == "local folder and cache"
    assert where["banana"] == "not fetched"


def test_table_has_a_row_for_every_name() -> None:
    assert tuple(row.name for row in datasets.table()) == datasets.names()


def test_row_of_vehicle() -> None:
    row = datasets.describe("vehicle")
    assert (row.rows, row.features, row.classes, row.files, row.size) == (846, 18, 4, 9, 55100)
    assert row.licence == "CC BY 4.0 (UCI)"
