"""Files that appear whole or not at all, whatever happens meanwhile."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from quenched.text import shown

_BEGINS, _ENDS = ".quenched-", ".part"
_LEFT_BEHIND = 3600.0  # seconds after which an unfinished file is nobody's


def read_path(name: str, value: Any) -> Path:
    """A path that a file may have."""
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError(f"{name}={shown(value)}: give the path of a file.")
    text = os.fspath(value)
    if not isinstance(text, str) or not text or "\0" in text:
        raise ValueError(
            f"{name}={shown(value)}: is not a path; give a text that is not empty, without null characters."
        )
    return Path(text)


def read_path_to_write(name: str, value: Any) -> Path:
    """A path at which a file can be written, as far as can be told before it is.

    Raises
    ------
    ValueError
        For a folder, a device or a pipe, and where no file can be made.
    """
    path = read_path(name, value)
    _insist_file(name, path)
    _insist_writable(f"{name}={shown(str(path))}: no file can be written there", path.parent, path.name)
    return path


def _insist_file(name: str, path: Path) -> None:
    """A file is moved into place, and would take that of a device: nobody wants a `/dev/null` that remembers."""
    if os.path.isdir(path):  # False where it cannot be told
        raise ValueError(f"{name}={shown(str(path))}: is a folder; give the path of a file in it.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"{name}={shown(str(path))}: is a device or a pipe; give the path of a file.")


def read_folder_to_write(name: str, value: Any) -> Path:
    """A folder in which files can be written; made if it does not exist."""
    path = read_path(name, value)
    _insist_writable(f"{name}={shown(str(path))}: no files can be written into that folder", path, "file")
    return path


def _insist_writable(otherwise: str, folder: Path, name: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _try_to_write(folder, name)
    except OSError as error:
        raise ValueError(f"{otherwise}: {error.strerror or type(error).__name__}.") from error


def _try_to_write(folder: Path, name: str) -> None:
    """Write a block of a file under another name, and remove it."""
    tried = _temporary(folder, name)
    try:
        with open(tried, "xb") as file:
            file.write(bytes(4096))
            file.flush()
    finally:
        with suppress(OSError):
            tried.unlink(missing_ok=True)


def _temporary(folder: Path, name: str) -> Path:
    return folder / f"{_BEGINS}{name[:60]}-{uuid4().hex[:12]}{_ENDS}"


def write_whole(path: str | Path, write: Callable[[IO[bytes]], object]) -> Path:
    """Write a file under a name of ours, make sure that it is on the disk, and move it into place.

    What a process that was killed has left behind there is swept away. A link stays a link to what is written.
    """
    path = read_path("path", path)
    _insist_file("path", path)
    place = Path(os.path.realpath(path))
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place.parent)
    temporary = _temporary(place.parent, place.name)
    try:
        with open(temporary, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, place)
    except OSError as error:  # a full disk does not say which file it was for
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return Path(path)


def _sweep(folder: Path) -> None:
    with suppress(OSError):
        for left in folder.glob(f"{_BEGINS}*{_ENDS}"):
            with suppress(OSError):  # another process may be quicker
                if time.time() - left.stat().st_mtime > _LEFT_BEHIND:
                    left.unlink()
