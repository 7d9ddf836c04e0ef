"""`quenched datasets`: what there is, and bringing it here. No test downloads anything."""

import hashlib

import pytest

from quenched import datasets
from quenched.datasets.registry import find


@pytest.fixture
def empty(tmp_path):
    """An environment with an empty cache and no data folder."""
    return {"QUENCHED_CACHE": str(tmp_path / "cache"), "QUENCHED_DATA": ""}


def test_list_names_every_dataset(run, empty):
    done = run("datasets", "list", **empty)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(datasets.names())
    assert all("not fetched" in line for line in lines[1:])


def test_list_describes_on_a_wide_screen(run, empty):
    description = datasets.describe("iris").description[:25]
    assert description in run("datasets", "list", COLUMNS="160", **empty).stdout
    assert description not in run("datasets", "list", COLUMNS="80", **empty).stdout


def test_fetch_finds_what_is_there_and_checks_it(run, tmp_path, empty):
    (file,) = find("iris").files
    path = tmp_path / "data" / file.path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"something else")
    done = run("datasets", "fetch", "iris", **{**empty, "QUENCHED_DATA": str(tmp_path / "data")})
    assert done.returncode == 2
    assert file.sha256[:8] in done.stderr or hashlib.sha256(b"something else").hexdigest()[:8] in done.stderr
    assert "Traceback" not in done.stderr


def test_fetch_says_where_the_files_are(run, real_data):
    done = run("datasets", "fetch", "iris", QUENCHED_DATA=str(real_data))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"iris: 1 file in {real_data / 'iris'}\n"


@pytest.fixture
def real_data():
    import os
    from pathlib import Path

    folder = os.environ.get("QUENCHED_DATA")
    if not folder:
        pytest.skip("QUENCHED_DATA is not set: the real data files are not at hand")
    return Path(folder)


def test_an_unknown_name_gets_the_nearest(run, empty):
    done = run("datasets", "fetch", "irsi", **empty)
    assert done.returncode == 2
    assert "Did you mean 'iris'?" in done.stderr


def test_a_misspelt_folder_is_named(run, empty):
    done = run("datasets", "list", **{**empty, "QUENCHED_DATA": "no such folder"})
    assert done.returncode == 2
    assert "which is not a folder" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["datasets"], ["datasets", "fetch"], ["nonsense"], []])
def test_an_incomplete_command_shows_the_usage(run, arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage: quenched" in done.stderr
