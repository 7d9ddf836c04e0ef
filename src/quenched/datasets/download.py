"""One file from its address into the cache, by pooch.

pooch writes to a temporary file beside the destination and moves it into place after the check, so that an
interrupted or damaged download leaves nothing behind.
"""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from quenched.datasets.locations import CACHE_VARIABLE, DATA_VARIABLE
from quenched.datasets.progress import Bar
from quenched.datasets.registry import RemoteFile
from quenched.datasets.verification import DatasetError, verify


def import_pooch() -> ModuleType:
    """pooch, which only a download needs; the error names the extra that installs it."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            'Downloading a dataset needs pooch: pip install "quenched[datasets]". '
            f"Or set {DATA_VARIABLE} to a folder that has the files."
        ) from error
    return pooch


def download(file: RemoteFile, folder: Path, *, timeout: float = 30.0, bar: Bar | None = None) -> Path:
    """Download `file` below `folder` and return its path.

    Parameters
    ----------
    file
        What to download; nothing is kept unless its sha256 is right.
    folder
        The cache.
    timeout
        Seconds without an answer after which the server is given up.
    bar
        A progress bar, told of every chunk.

    Raises
    ------
    DatasetError
        If the address cannot be reached, sends something else, or the cache cannot be written.
    """
    pooch = import_pooch()
    from requests.exceptions import RequestException  # pooch depends on requests

    destination = folder / file.path
    fetch_bytes = pooch.HTTPDownloader(
        progressbar=bar if bar is not None else False, chunk_size=1 << 16, timeout=timeout
    )

    def fetch_and_verify(address: str, temporary: str, caller: object) -> None:
        fetch_bytes(address, temporary, caller)
        # Before pooch's own check, whose error has neither the sizes nor a remedy.
        verify(
            Path(temporary),
            file,
            called=f"The download of {file.path} from {file.address}",
            remedy=f"It has been discarded. Fetch again, or {_by_hand(file)}",
        )

    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(
                file.address,
                known_hash=f"sha256:{file.sha256}",
                fname=destination.name,
                path=destination.parent,
                downloader=fetch_and_verify,
            )
    except RequestException as error:
        raise DatasetError(
            f"Could not download {file.path} from {file.address}: {error}.\nWithout a network, {_by_hand(file)}"
        ) from error
    except OSError as error:
        raise DatasetError(
            f"Could not write {destination}: {error}. Set {CACHE_VARIABLE} to a folder that can be written."
        ) from error
    return destination


def _by_hand(file: RemoteFile) -> str:
    return (
        f"get the file elsewhere and place it at {file.path} below the folder that the environment variable "
        f"{DATA_VARIABLE} names."
    )


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    # pooch announces every file on stderr; a dataset has up to forty of them.
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
