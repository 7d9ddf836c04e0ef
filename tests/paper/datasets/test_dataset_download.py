"""Downloads, from a real web server on this machine: right, wrong, broken off, missing, silent."""

import io
import logging
from pathlib import Path

import pooch
import pytest

from quenched.paper.datasets import DatasetError, files
from quenched.paper.datasets.files import obtain

CONTENT = bytes(range(256)) * 1000
PATH = "toy/toy.data"


def replace_screen(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> io.StringIO:
    """Standard error as a plain terminal or as a file, whatever this test runs in."""
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: terminal)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    for variable in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)
    return screen


def remains(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture(autouse=True)
def nothing_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No data folder: what is not in the cache is downloaded."""
    monkeypatch.delenv("QUENCHED_DATA", raising=False)


def test_download_arrives_in_the_layout_of_the_cache(server, empty_cache: Path) -> None:
    (path,) = obtain([server.offer(PATH, CONTENT)])
    assert path == empty_cache / PATH
    assert path.read_bytes() == CONTENT
    assert remains(empty_cache) == [path]


def test_corrupted_download_is_reported_and_discarded(server, empty_cache: Path) -> None:
    wrong = CONTENT[:-1] + b"?"
    file = server.offer(PATH, CONTENT, instead=wrong)
    with pytest.raises(DatasetError, match="not the file that was expected") as caught:
        obtain([file])
    for part in (PATH, file.address, file.sha256, f"{len(CONTENT)} bytes", "discarded", "QUENCHED_DATA"):
        assert part in str(caught.value)
    assert remains(empty_cache) == []


def test_download_that_breaks_off_leaves_nothing(server, empty_cache: Path) -> None:
    file = server.offer(PATH, CONTENT, instead=CONTENT[:1000])
    server.declared_length = len(CONTENT)
    with pytest.raises(DatasetError, match=r"Could not download toy/toy\.data"):
        obtain([file])
    assert remains(empty_cache) == []


def test_page_that_is_not_there_is_an_error(server, empty_cache: Path) -> None:
    file = server.offer(PATH, CONTENT)
    server.pages.clear()
    with pytest.raises(DatasetError, match="404"):
        obtain([file])


def test_silent_server_is_given_up(server, monkeypatch: pytest.MonkeyPatch) -> None:
    file = server.offer(PATH, CONTENT)
    server.silent = True
    monkeypatch.setattr(files, "_TIMEOUT", 0.2)
    with pytest.raises(DatasetError, match=r"read timeout=0\.2"):
        obtain([file])


def test_cache_that_cannot_be_written_is_named(server, empty_cache: Path) -> None:
    empty_cache.mkdir()
    (empty_cache / "toy").write_text("a file where the folder should be")
    with pytest.raises(DatasetError, match=r"Could not write .*toy.data.*QUENCHED_CACHE"):
        obtain([server.offer(PATH, CONTENT)])


def test_only_missing_files_are_downloaded_and_only_once(server, own_folder: Path, empty_cache: Path) -> None:
    here, there = server.offer("toy/here.data", b"here"), server.offer("toy/there.data", b"there")
    (own_folder / "toy").mkdir()
    (own_folder / here.path).write_bytes(b"here")
    expected = [own_folder / here.path, empty_cache / there.path]
    assert obtain([here, there]) == expected
    assert obtain([here, there]) == expected
    assert server.asked == ["/toy/there.data"]


def test_what_came_before_an_error_is_kept(server, own_folder: Path, empty_cache: Path) -> None:
    good, bad = server.offer("toy/good.data", b"good"), server.offer("toy/bad.data", b"bad", instead=b"worse")
    with pytest.raises(DatasetError, match=r"toy/bad\.data"):
        obtain([good, bad])
    assert remains(empty_cache) == [empty_cache / good.path]


def test_bar_ends_at_the_bytes_of_all_files(server, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = replace_screen(monkeypatch, terminal=True)
    obtain([server.offer(PATH, CONTENT), server.offer("toy/second.data", CONTENT)])
    assert "toy/second.data" in screen.getvalue()
    assert "512.0/512.0 kB" in screen.getvalue()


def test_bar_does_not_overshoot() -> None:
    # pooch reports whole chunks of 64 kB, of files that may have one.
    shown: list[int] = []
    bar = files._Bar(shown.append)
    bar.total = 10
    bar.update(1 << 16)
    bar.reset()
    bar.update(10)
    assert shown == [10, 10]


def test_files_in_the_cache_draw_no_bar(server, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [server.offer(PATH, CONTENT)]
    obtain(offered)
    screen = replace_screen(monkeypatch, terminal=True)
    obtain(offered)
    assert screen.getvalue() == ""


def test_download_is_silent_in_a_log(server, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = replace_screen(monkeypatch, terminal=False)
    logger = pooch.get_logger()
    logger.setLevel(logging.INFO)
    records: list[logging.LogRecord] = []
    listener = logging.Handler()
    monkeypatch.setattr(listener, "emit", records.append)
    logger.addHandler(listener)
    try:
        obtain([server.offer(PATH, CONTENT)])
    finally:
        logger.removeHandler(listener)
    assert screen.getvalue() == ""
    assert records == []
    assert logger.level == logging.INFO
