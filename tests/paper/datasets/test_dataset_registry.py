"""The registry is complete, pinned and readable, and importing it costs nothing."""

import re
import subprocess
import sys

import pytest

from quenched.paper import datasets
from quenched.paper.datasets.registry import find, registry

NAMES = [
    *("banana", "breast-cancer", "heart", "flare-solar", "raetsch-benchmarks"),
    *("ecoli", "glass", "iris", "wine", "soybean-small", "vehicle", "balance-scale", "crabs"),
    *("yaleb", "mixed"),
]
PINNED = re.compile(r"https://raw\.githubusercontent\.com/[\w.-]+/[\w.-]+/[0-9a-f]{40}/.+")


def test_names_are_those_of_the_paper_and_the_archive() -> None:
    assert list(datasets.names()) == NAMES


def test_every_file_is_pinned_to_a_commit_and_a_sum() -> None:
    files = [file for dataset in registry().values() for file in dataset.files]
    assert len({file.path for file in files}) == len(files) == 146
    for file in files:
        assert PINNED.fullmatch(file.address), file
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256), file
        assert file.size > 0


@pytest.mark.parametrize(("name", "files"), [("banana", 40), ("heart", 40), ("vehicle", 9), ("iris", 1), ("mixed", 7)])
def test_number_of_files(name: str, files: int) -> None:
    assert len(find(name).files) == files


@pytest.mark.parametrize("name", NAMES)
def test_what_a_user_must_know_is_there(name: str) -> None:
    dataset = find(name)
    assert dataset.licence
    assert dataset.citation
    assert dataset.description
    # An archive of several sets has no counts of its own.
    assert (dataset.rows is None) == (name in ("raetsch-benchmarks", "mixed"))


@pytest.mark.parametrize("function", [datasets.fetch, datasets.load, lambda name: datasets.partition(name, 1), find])
def test_unknown_name_suggests_the_nearest_and_lists_all(function) -> None:
    with pytest.raises(ValueError, match="Did you mean 'breast-cancer'") as caught:
        function("BREAST_CANCER")
    assert all(name in str(caught.value) for name in NAMES)


def test_unknown_name_without_a_neighbour_has_no_suggestion() -> None:
    with pytest.raises(ValueError, match=r"Unknown dataset 'xyz'\. Known: banana"):
        datasets.fetch("xyz")


def test_import_is_light() -> None:
    code = (
        "import sys, quenched; before = set(sys.modules); import quenched.paper.datasets; "
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"scipy", "sklearn", "pooch", "requests", "rich", "jax"} & set(loaded.stdout.split())
