"""Spectra from a CSV file, as columns for `GroundMotion`."""

import csv
from pathlib import Path

import numpy as np

from quenched.files import read_path

_TEXT = ("dataset", "event", "origin_utc", "station", "sensor", "mag_type")  # even where they look like numbers


def read_spectra_csv(path: str | Path) -> dict[str, np.ndarray]:
    """Read a CSV file of spectra into columns; rows marked `usable` = 0 are left out, and lines with `#` are comments.

    Needed are event, Mw, R_hyp_km, frequency_hz and fas, or other names that `GroundMotion` knows; every further column
    is kept, as numbers where it holds only numbers.

    Raises
    ------
    ValueError
        For a file that is missing, empty, or not a table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from quenched.science import read_spectra_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "spectra.csv"
    ...     _ = path.write_text("event,Mw,R,f,fas\\none,5.0,20.0,1.0,0.5\\none,5.0,20.0,2.0,0.7\\n")
    ...     columns = read_spectra_csv(path)
    >>> columns["fas"]
    array([0.5, 0.7])
    """
    path = read_path("path", path)
    if path.exists() and not path.is_file():
        raise ValueError(f"path={str(path)!r}: cannot be read as a CSV file: it is a folder, a pipe or a device.")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"path={str(path)!r}: cannot be read as a CSV file: {error}.") from error
    if not rows:
        raise ValueError(f"path={str(path)!r}: has no rows below its heading.")
    names = [name for name in rows[0] if name is not None]
    for number, row in enumerate(rows, start=1):
        if None in row or any(row[name] is None for name in names):
            raise ValueError(f"path={str(path)!r}: row {number} does not have the {len(names)} cells of the heading.")
    if "usable" in names:
        rows = [row for row in rows if row["usable"].strip() in ("1", "1.0")]
    return {name: _column(name, [row[name] for row in rows]) for name in names}


def _column(name: str, cells: list[str]) -> np.ndarray:
    if name in _TEXT:
        return np.array(cells)
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return np.array(cells)
