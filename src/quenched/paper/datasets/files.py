"""From names to verified files on this machine: the user's folder, then the cache, then a download.

Folder and cache have the same layout, `<dataset>/<file>`, so a cache filled on one machine can be the folder of
another. pooch keeps the cache: it checks every sum, and an interrupted or damaged download leaves nothing behind, and
one that was killed an unfinished file, which a later one sweeps away. The folder is read without it.
"""

import contextlib
import hashlib
import itertools
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from quenched.paper.datasets.registry import Dataset, RemoteFile, find

DATA_VARIABLE = "QUENCHED_DATA"
CACHE_VARIABLE = "QUENCHED_CACHE"
_TIMEOUT = 30.0  # seconds without an answer after which a server is given up
_CHUNK = 1 << 16  # bytes
_LEFT_BEHIND = 3600.0  # seconds without a byte after which an unfinished download is nobody's
_REMEDY = f"It is in the folder that {DATA_VARIABLE} names: replace it, or delete it and fetch again."


class DatasetError(RuntimeError):
    """A data file is damaged, or cannot be had; the message names the file and the remedy."""


def fetch(name: str) -> list[Path]:
    """Local paths of the files of a dataset, every one verified.

    A file is taken from the folder named by the environment variable `QUENCHED_DATA` if it is there, else
    from the cache (`QUENCHED_CACHE`, or the cache folder of the system), else downloaded into the cache, with a bar if
    standard error is a terminal. What has been downloaded before an error stays, so that fetching again goes on from
    there.

    Raises
    ------
    ValueError
        For an unknown name.
    DatasetError
        For a damaged file, which is never replaced in silence, or a failed download.
    ImportError
        If a file is not in the folder and pooch is not installed.
    """
    return obtain(find(name).files)


def obtain(files: Sequence[RemoteFile]) -> list[Path]:
    """`fetch` for files of the caller's choice, so that one partition does not cost the download of ten."""
    folder = data_folder()
    here = {file: verify(folder / file.path, file) for file in files if folder and (folder / file.path).is_file()}
    missing = [file for file in files if file not in here]
    found = here | (_from_cache(missing) if missing else {})
    return [found[file] for file in files]


def where(dataset: Dataset) -> str:
    """`"local folder"`, `"cache"`, `"not fetched"`, or how many files are there: looked up, not read."""
    folders = {"local folder": data_folder(), "cache": cache_folder()}
    places = (
        next((place for place, folder in folders.items() if folder and (folder / file.path).is_file()), None)
        for file in dataset.files
    )
    found = Counter(place for place in places if place)
    if not found:
        return "not fetched"
    if found.total() < len(dataset.files):
        return f"{found.total()} of {len(dataset.files)} files"
    return " and ".join(sorted(found, reverse=True))


def data_folder() -> Path | None:
    """The folder named by `QUENCHED_DATA`, or `None` if the variable is not set."""
    named = os.environ.get(DATA_VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        # A misspelt folder must not quietly turn into a download.
        raise DatasetError(f"{DATA_VARIABLE} names {folder}, which is not a folder. Correct it or unset it.")
    return folder


def cache_folder() -> Path | None:
    """The folder of downloads: `QUENCHED_CACHE`, or pooch's choice for this system; `None` without pooch."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser()
    with contextlib.suppress(ImportError):
        return Path(_pooch().os_cache("quenched"))
    return None


def verify(path: Path, file: RemoteFile, remedy: str = _REMEDY) -> Path:
    """`path`, if it holds exactly the bytes of `file`.

    Raises
    ------
    DatasetError
        If the sha256 differs, with both sums, both sizes and the remedy.
    """
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found == file.sha256:
        return path
    raise DatasetError(
        f"{path} is not the file that was expected: {path.stat().st_size} bytes with sha256 {found}, not {file.size} "
        f"bytes with {file.sha256}. {remedy}"
    )


def _from_cache(files: Sequence[RemoteFile]) -> dict[RemoteFile, Path]:
    """From the cache, or from the network into it."""
    pooch = _pooch()
    storage = pooch.create(
        path=pooch.os_cache("quenched"),
        env=CACHE_VARIABLE,
        base_url="",
        registry={file.path: f"sha256:{file.sha256}" for file in files},
        urls={file.path: file.address for file in files},
        allow_updates=False,
    )
    found, missing = {}, [file for file in files if not (storage.abspath / file.path).is_file()]
    for folder in {(storage.abspath / file.path).parent for file in missing}:
        _sweep(folder)
    with _quiet(pooch.get_logger()), _bars(missing) as bars:
        for file in files:
            downloader = pooch.HTTPDownloader(progressbar=bars.get(file, False), chunk_size=_CHUNK, timeout=_TIMEOUT)
            with _explained(file, storage.abspath / file.path):
                found[file] = Path(storage.fetch(file.path, downloader=downloader))
    return found


def _sweep(folder: Path) -> None:
    """Remove what downloads that were killed have left behind; pooch leaves such files to Python's `tempfile`."""
    with contextlib.suppress(OSError):
        for left in folder.glob("tmp????????"):
            with contextlib.suppress(OSError):  # another process may be quicker
                if time.time() - left.stat().st_mtime > _LEFT_BEHIND:
                    left.unlink()


def _pooch() -> ModuleType:
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            'Downloading a dataset needs pooch: pip install "quenched[datasets]". '
            f"Or set {DATA_VARIABLE} to a folder that has the files."
        ) from error
    return pooch


@contextlib.contextmanager
def _explained(file: RemoteFile, path: Path) -> Iterator[None]:
    """What went wrong, with the file, where it comes from, and what to do."""
    from requests.exceptions import RequestException  # pooch depends on requests

    by_hand = f"get it elsewhere and place it at {file.path} below the folder that {DATA_VARIABLE} names."
    try:
        yield
    except RequestException as error:
        raise DatasetError(
            f"Could not download {file.path} from {file.address}: {error}.\nWithout a network, {by_hand}"
        ) from error
    except OSError as error:
        raise DatasetError(
            f"Could not write {path}: {error}. Set {CACHE_VARIABLE} to a folder that can be written."
        ) from error
    except ValueError as error:  # pooch's word for another sum
        expected = f"is not the file that was expected ({file.size} bytes with sha256 {file.sha256})"
        if path.exists():
            raise DatasetError(f"{path} {expected}: {path.stat().st_size} bytes. Delete it and fetch again.") from error
        raise DatasetError(
            f"The download of {file.path} from {file.address} {expected}. It has been discarded. Fetch again, or {by_hand}"
        ) from error


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    # pooch announces every file on stderr; a dataset has up to forty of them.
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Bar:
    """One file's share of a bar over all bytes, in the form that pooch can drive."""

    total = 0

    def __init__(self, show: Callable[[int], None]) -> None:
        self._show, self._done = show, 0

    def update(self, amount: int) -> None:
        # pooch reports whole chunks, which overshoot at the end of a file.
        self._done = min(self._done + amount, self.total)
        self._show(self._done)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass


@contextlib.contextmanager
def _bars(files: Sequence[RemoteFile]) -> Iterator[dict[RemoteFile, _Bar]]:
    """The share of each file in a bar over the bytes of all, which is drawn on a terminal only."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Progress(*columns, console=console, transient=True, disable=not (files and console.is_terminal)) as display:
        task = display.add_task("", total=sum(file.size for file in files))

        def bar(file: RemoteFile, before: int) -> _Bar:
            return _Bar(lambda done: display.update(task, description=file.path, completed=before + done))

        ends = itertools.accumulate(file.size for file in files)
        yield {file: bar(file, end - file.size) for file, end in zip(files, ends, strict=True)}
