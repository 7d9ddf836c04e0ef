"""Where a data file can be on this machine: the folder the user names, then the cache.

Both have the same layout, `<dataset>/<file>`, so a cache filled on one machine can be the data
folder of another.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from quenched.datasets.registry import RemoteFile
from quenched.datasets.verification import DatasetError

DATA_VARIABLE = "QUENCHED_DATA"
CACHE_VARIABLE = "QUENCHED_CACHE"


@dataclass(frozen=True)
class Location:
    """A file that is there, not yet verified."""

    path: Path
    origin: Literal["local folder", "cache"]


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
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("quenched"))


def locate(file: RemoteFile) -> Location | None:
    """Where this file is now, or `None` if it has to be downloaded. Looks, but does not read."""
    folder = data_folder()
    if folder is not None and (folder / file.path).is_file():
        return Location(folder / file.path, "local folder")
    cache = cache_folder()
    if cache is not None and (cache / file.path).is_file():
        return Location(cache / file.path, "cache")
    return None
