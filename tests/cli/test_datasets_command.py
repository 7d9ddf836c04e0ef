"""`quenched datasets`: what there is, and bringing it here. No test downloads anything."""

import os
from pathlib import Path

import pytest

from quenched.paper.datasets import find, names

GIVEN_DATA = os.environ.get("QUENCHED_DATA")


@pytest.fixture(autouse=True)
def nothing_here(tmp_path, monkeypatch):
    """An empty cache and no data folder."""
    monkeypatch.setenv("QUENCHED_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("QUENCHED_DATA", raising=False)


def test_list_names_every_dataset(run):
    done = run("datasets", "list")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(names())
    assert all("not fetched" in line for line in lines[1:])


@pytest.mark.parametrize(("columns", "described"), [("160", True), ("80", False)])
def test_list_describes_on_a_wide_screen(call, monkeypatch, columns, described):
    monkeypatch.setenv("COLUMNS", columns)
    code, printed, _ = call("datasets", "list")
    assert code == 0
    assert (find("iris").description[:25] in printed) == described


def test_fetch_checks_what_is_there(call, monkeypatch, tmp_path):
    (file,) = find("iris").files
    path = tmp_path / "data" / file.path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"something else")
    monkeypatch.setenv("QUENCHED_DATA", str(tmp_path / "data"))
    code, _, complaints = call("datasets", "fetch", "iris")
    assert code == 2
    assert str(path) in complaints


@pytest.mark.skipif(not GIVEN_DATA, reason="QUENCHED_DATA is not set: the real data files are not at hand")
def test_fetch_says_where_the_files_are(call, monkeypatch):
    monkeypatch.setenv("QUENCHED_DATA", str(GIVEN_DATA))
    code, printed, _ = call("datasets", "fetch", "iris")
    assert code == 0
    assert printed == f"iris: 1 file in {Path(str(GIVEN_DATA)) / 'iris'}\n"


def test_an_unknown_name_gets_the_nearest(call):
    code, _, complaints = call("datasets", "fetch", "irsi")
    assert code == 2
    assert "Did you mean 'iris'?" in complaints


def test_a_misspelt_folder_is_named(call, monkeypatch):
    monkeypatch.setenv("QUENCHED_DATA", "no such folder")
    code, _, complaints = call("datasets", "list")
    assert code == 2
    assert "which is not a folder" in complaints


@pytest.mark.parametrize("arguments", [["datasets"], ["datasets", "fetch"], ["nonsense"], []])
def test_an_incomplete_command_shows_the_usage(call, arguments):
    code, _, complaints = call(*arguments)
    assert code == 2
    assert "usage: quenched" in complaints
