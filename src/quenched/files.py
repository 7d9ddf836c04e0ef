"""Files that appear whole or not at all, whatever happens meanwhile."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

_BEGINS, _ENDS = ".quenched-", ".part"
_LEFT_BEHIND = 3600.0  # seconds after which an unfinished file is nobody's


def write_whole(path: str | Path, write: Callable[[IO[bytes]], object]) -> Path:
    """Write a file under a name of ours, make sure that it is on the disk, and move it into place.

    What a process that was killed has left behind there is swept away.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    temporary = path.parent / f"{_BEGINS}{path.name[:100]}-{uuid4().hex[:12]}{_ENDS}"
    try:
        with open(temporary, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path


def _sweep(folder: Path) -> None:
    with suppress(OSError):
        for left in folder.glob(f"{_BEGINS}*{_ENDS}"):
            with suppress(OSError):  # another process may be quicker
                if time.time() - left.stat().st_mtime > _LEFT_BEHIND:
                    left.unlink()
