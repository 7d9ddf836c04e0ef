"""Files from the user's folder and from the cache: found in that order, and never trusted unchecked."""

import shutil
import sys
from pathlib import Path

import pytest

from quenched.paper import datasets
from quenched.paper.datasets.registry import find, registry

AT_HAND = [name for name in registry() if name != "raetsch-benchmarks"]


def copy(data: Path, folder: Path, path: str = "iris/iris.data") -> Path:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(data / path, target)
    return target


@pytest.mark.parametrize("name", AT_HAND)
def test_the_files_at_hand_have_the_pinned_sums(name: str, data: Path) -> None:
    paths = datasets.fetch(name)
    assert [path.relative_to(data).as_posix() for path in paths] == [file.path for file in find(name).files]


def test_folder_comes_before_cache(data: Path, own_folder: Path, empty_cache: Path) -> None:
    cached = copy(data, empty_cache)
    assert datasets.fetch("iris") == [cached]
    local = copy(data, own_folder)
    assert datasets.fetch("iris") == [local]


def test_without_a_folder_the_cache_is_read(data: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUENCHED_DATA")
    cached = copy(data, empty_cache)
    assert datasets.fetch("iris") == [cached]


@pytest.mark.parametrize("origin", ["folder", "cache"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-100],
        lambda content: content.replace(b"5.1", b"5.2", 1),
        lambda content: content + b"\n",
        lambda content: b"",
    ],
    ids=["truncated", "changed", "too long", "empty"],
)
def test_damaged_file_is_named(origin: str, damage, data: Path, own_folder: Path, empty_cache: Path) -> None:
    path = copy(data, own_folder if origin == "folder" else empty_cache)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(datasets.DatasetError, match="is not the file that was expected") as caught:
        datasets.load("iris")
    message = str(caught.value)
    assert str(path) in message
    assert find("iris").files[0].sha256 in message
    assert "4551 bytes" in message
    assert f"{len(damaged)} bytes" in message
    assert "delete it and fetch again" in message.lower()
    assert ("QUENCHED_DATA" in message) == (origin == "folder")
    assert path.read_bytes() == damaged


def test_damaged_file_is_not_passed_over_for_a_good_one(data: Path, own_folder: Path, empty_cache: Path) -> None:
    copy(data, empty_cache)
    local = copy(data, own_folder)
    local.write_bytes(b"damaged")
    with pytest.raises(datasets.DatasetError, match=r"data/iris/iris\.data"):
        datasets.fetch("iris")
    assert local.read_bytes() == b"damaged"


def test_one_damaged_file_of_many_is_the_one_named(data: Path, own_folder: Path) -> None:
    for file in find("vehicle").files:
        copy(data, own_folder, file.path)
    (own_folder / "vehicle/xae.dat").write_bytes(b"damaged")
    with pytest.raises(datasets.DatasetError, match=r"xae\.dat"):
        datasets.load("vehicle")


def test_misspelt_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUENCHED_DATA", str(tmp_path / "mising"))
    with pytest.raises(datasets.DatasetError, match=r"QUENCHED_DATA names .*mising"):
        datasets.fetch("iris")


def test_files_at_hand_need_no_pooch(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUENCHED_CACHE")
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert datasets.load("iris").features.shape == (150, 4)


@pytest.mark.parametrize("cache_is_named", [True, False])
def test_missing_file_without_pooch_names_the_extra(
    cache_is_named: bool, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not cache_is_named:
        monkeypatch.delenv("QUENCHED_CACHE")
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r'pip install "quenched\[datasets\]"'):
        datasets.fetch("iris")


def test_no_network_names_address_file_and_remedy(own_folder: Path, no_network: None) -> None:
    with pytest.raises(datasets.DatasetError) as caught:
        datasets.fetch("iris")
    message = str(caught.value)
    assert find("iris").files[0].address in message
    assert "iris/iris.data" in message
    assert "QUENCHED_DATA" in message
