"""Downloads, from a real web server on this machine: right, wrong, broken off, missing, silent."""

import io
import logging
from pathlib import Path

import pooch
import pytest

from quenched.datasets import DatasetError
from quenched.datasets.download import download
from quenched.datasets.fetching import obtain
from quenched.datasets.progress import FileBar

CONTENT = bytes(range(256)) * 1000
PATH = "toy/toy.data"


class Recorder:
    """A bar that remembers."""

    total = 0

    def __init__(self) -> None:
        self.amounts: list[int] = []

    def update(self, amount: int) -> None:
        self.amounts.append(amount)

    def reset(self) -> None:
        self.amounts.clear()

    def close(self) -> None:
        self.closed = True


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


def test_download_arrives_in_the_layout_of_the_cache(server, tmp_path: Path) -> None:
    path = download(server.offer(PATH, CONTENT), tmp_path)
    assert path == tmp_path / PATH
    assert path.read_bytes() == CONTENT
    assert remains(tmp_path) == [path]


def test_corrupted_download_is_reported_and_discarded(server, tmp_path: Path) -> None:
    wrong = CONTENT[:-1] + b"?"
    file = server.offer(PATH, CONTENT, instead=wrong)
    with pytest.raises(DatasetError, match="bytes have changed") as caught:
        download(file, tmp_path)
    for part in (PATH, file.address, file.sha256, f"({len(CONTENT)} bytes)", "discarded", "QUENCHED_DATA"):
        assert part in str(caught.value)
    assert remains(tmp_path) == []


def test_download_that_breaks_off_leaves_nothing(server, tmp_path: Path) -> None:
    file = server.offer(PATH, CONTENT, instead=CONTENT[:1000])
    server.declared_length = len(CONTENT)
    with pytest.raises(DatasetError, match=r"Could not download toy/toy\.data"):
        download(file, tmp_path)
    assert remains(tmp_path) == []


def test_page_that_is_not_there_is_an_error(server, tmp_path: Path) -> None:
    file = server.offer(PATH, CONTENT)
    server.pages.clear()
    with pytest.raises(DatasetError, match="404"):
        download(file, tmp_path)


def test_silent_server_is_given_up(server, tmp_path: Path) -> None:
    file = server.offer(PATH, CONTENT)
    server.silent = True
    with pytest.raises(DatasetError, match=r"read timeout=0\.2"):
        download(file, tmp_path, timeout=0.2)


def test_cache_that_cannot_be_written_is_named(server, tmp_path: Path) -> None:
    (tmp_path / "toy").write_text("a file where the folder should be")
    with pytest.raises(DatasetError, match=r"Could not write .*QUENCHED_CACHE"):
        download(server.offer(PATH, CONTENT), tmp_path)


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


def test_bar_is_told_of_every_byte(server, tmp_path: Path) -> None:
    bar = Recorder()
    download(server.offer(PATH, CONTENT), tmp_path, bar=bar)
    assert bar.total == len(CONTENT)
    assert sum(bar.amounts) == len(CONTENT)


@pytest.mark.parametrize(("terminal", "progress"), [(True, None), (False, True)])
def test_bar_is_shown_on_a_terminal_or_on_request(
    terminal: bool, progress: bool | None, server, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = replace_screen(monkeypatch, terminal=terminal)
    obtain([server.offer(PATH, CONTENT), server.offer("toy/second.data", CONTENT)], progress=progress)
    assert "toy/second.data" in screen.getvalue()
    if not terminal:
        assert "512.0/512.0 kB" in screen.getvalue()


def test_bar_does_not_overshoot() -> None:
    # pooch reports whole chunks of 64 kB, of files that may have one.
    shown: list[int] = []
    bar = FileBar(10, shown.append)
    bar.update(1 << 16)
    bar.reset()
    bar.update(10)
    assert shown == [10, 10]


@pytest.mark.parametrize(("terminal", "progress"), [(False, None), (True, False)])
def test_otherwise_a_download_is_silent(
    terminal: bool,
    progress: bool | None,
    server,
    own_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = replace_screen(monkeypatch, terminal=terminal)
    logger = pooch.get_logger()
    logger.setLevel(logging.INFO)
    records: list[logging.LogRecord] = []
    listener = logging.Handler()
    monkeypatch.setattr(listener, "emit", records.append)
    logger.addHandler(listener)
    try:
        obtain([server.offer(PATH, CONTENT)], progress=progress)
    finally:
        logger.removeHandler(listener)
    assert screen.getvalue() == ""
    assert records == []
    assert logger.level == logging.INFO
