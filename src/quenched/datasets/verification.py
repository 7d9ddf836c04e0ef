"""Is this the file that was meant? The sha256 is checked on every use, wherever the file came from."""

import hashlib
from pathlib import Path

from quenched.datasets.registry import RemoteFile


class DatasetError(RuntimeError):
    """A data file is damaged, or cannot be had; the message names the file and the remedy."""


def verify(path: Path, file: RemoteFile, *, remedy: str, called: str | None = None) -> Path:
    """Return `path` if it holds exactly the bytes of `file`.

    Parameters
    ----------
    path
        A file on this machine.
    file
        What it should hold.
    remedy
        The sentence that ends the error: what the user should do, which depends on where the file came from.
    called
        What the error calls the file; its path by default, which would say nothing of a temporary file.

    Raises
    ------
    DatasetError
        If the sha256 differs, with both sums, both sizes and the remedy.
    """
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found == file.sha256:
        return path
    size = path.stat().st_size
    expected_size = f" ({file.size} bytes)" if file.size is not None else ""
    raise DatasetError(
        f"{called or path} is not the file that was expected{_guess(size, file.size)}.\n"
        f"  expected sha256 {file.sha256}{expected_size}\n"
        f"  found    sha256 {found} ({size} bytes)\n"
        f"{remedy}"
    )


def _guess(size: int, expected: int | None) -> str:
    if expected is None:
        return ""
    if size < expected:
        return ": it looks truncated"
    return ": its bytes have changed" if size == expected else ": it is too long"
