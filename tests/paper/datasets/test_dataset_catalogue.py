"""The catalogue says where each dataset is now."""

from pathlib import Path

from quenched.paper.datasets import find, names, where


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
    found = {name: where(find(name)) for name in names()}
    assert found["iris"] == "local folder"
    assert found["wine"] == "cache"
    assert found["vehicle"] == "2 of 9 files"
    assert found["heart"] == "local folder and cache"
    assert found["banana"] == "not fetched"


def test_what_is_known_of_vehicle() -> None:
    vehicle = find("vehicle")
    assert (vehicle.rows, vehicle.features, vehicle.classes, len(vehicle.files), vehicle.size) == (846, 18, 4, 9, 55100)
    assert vehicle.licence == "CC BY 4.0 (UCI)"
