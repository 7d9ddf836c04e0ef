"""From names to verified files on this machine: the user's folder, then the cache, then a download."""

import sys
from collections.abc import Sequence
from pathlib import Path

from quenched.datasets.download import download, import_pooch
from quenched.datasets.locations import DATA_VARIABLE, Location, cache_folder, locate
from quenched.datasets.progress import Bar, bars
from quenched.datasets.registry import RemoteFile, find
from quenched.datasets.verification import verify


def fetch(name: str, *, progress: bool | None = None, timeout: float = 30.0) -> list[Path]:
    """Local paths of the files of a dataset, every one verified.

    A file is taken from the folder named by the environment variable `QUENCHED_DATA` if it is there, else
    from the cache (`QUENCHED_CACHE`, or the cache folder of the system), else downloaded into the cache. What
    has been downloaded before an error stays, so that fetching again goes on from there.

    Parameters
    ----------
    name
        One of `names()`.
    progress
        Show a bar while downloading; by default if standard error is a terminal.
    timeout
        Seconds without an answer after which a server is given up.

    Raises
    ------
    ValueError
        For an unknown name.
    DatasetError
        For a damaged file, which is never replaced in silence, or a failed download.
    ImportError
        If a download is needed and pooch is not installed.
    """
    return obtain(find(name).files, progress=progress, timeout=timeout)


def obtain(files: Sequence[RemoteFile], *, progress: bool | None = None, timeout: float = 30.0) -> list[Path]:
    """`fetch` for files of the caller's choice, so that one partition does not cost the download of ten."""
    located = [locate(file) for file in files]
    missing = [file for file, location in zip(files, located, strict=True) if location is None]
    show = sys.stderr.isatty() if progress is None else progress
    with bars(missing, show) as bar_of:
        return [
            _download(file, timeout, bar_of(file)) if location is None else _verify(location, file)
            for file, location in zip(files, located, strict=True)
        ]


def _verify(location: Location, file: RemoteFile) -> Path:
    if location.origin == "cache":
        remedy = "Delete it and fetch again."
    else:
        remedy = f"It is in the folder that {DATA_VARIABLE} names: replace it, or delete it and fetch again."
    return verify(location.path, file, remedy=remedy)


def _download(file: RemoteFile, timeout: float, bar: Bar | None) -> Path:
    import_pooch()
    folder = cache_folder()
    assert folder is not None  # it is None only without pooch
    return download(file, folder, timeout=timeout, bar=bar)
