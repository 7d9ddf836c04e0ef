"""Fourier amplitude spectra of strong ground motion: two stations of KiK-net, and the L'Aquila main shock.

The spectra are derived from public records that their owners ask to be fetched from them, so they are read from a local
folder only: `<QUENCHED_DATA>/groundmotion/fas_records.csv` and `fas_records_dense.csv`.
"""

import csv
from pathlib import Path

import numpy as np

from quenched.datasets.locations import DATA_VARIABLE, data_folder
from quenched.datasets.verification import DatasetError

_FOLDER = "groundmotion"
_FILES = {
    "fksh11": ("fas_records_dense.csv", "kiknet_fksh11"),
    "kmmh14": ("fas_records_dense.csv", "kiknet_kmmh14"),
    "laquila": ("fas_records.csv", "laquila2009_resorce"),
}
COLUMNS = ("event", "Mw", "R_hyp_km", "frequency_hz", "fas")
_TEXT = ("dataset", "event", "origin_utc", "station", "sensor", "mag_type")
_SOURCES = (
    "The records are public: KiK-net stations FKSH11 and KMMH14 from NIED (https://www.kyoshin.bosai.go.jp, free "
    "registration, doi:10.17598/NIED.0004); L'Aquila, 6 April 2009, from ITACA (http://itaca.mi.ingv.it) or ESM "
    "(https://esm-db.eu). Their spectra must be computed from them, with the columns dataset, "
    f"{', '.join(COLUMNS)} (cm/s), station, sensor (surface or borehole), usable (1 or 0)."
)


def ground_motion(name: str, *, sensor: str | None = None) -> dict[str, np.ndarray]:
    """Usable points of the spectra of one set, as columns for `quenched.science.GroundMotion`.

    KiK-net: acknowledge NIED, doi:10.17598/NIED.0004.

    Parameters
    ----------
    name
        "fksh11" or "kmmh14" (8 events at one station, 250 frequencies), or "laquila" (1 event at 13 stations, 30
        frequencies).
    sensor
        "borehole" or "surface"; by default the borehole where there is one.

    Raises
    ------
    ValueError
        For an unknown name or sensor.
    DatasetError
        Without the folder or the file, saying where the records are public.
    """
    if name not in _FILES:
        raise ValueError(f"name={name!r}: no such ground-motion set; there are {', '.join(_FILES)}.")
    file, label = _FILES[name]
    folder = data_folder()
    if folder is None or not (folder / _FOLDER / file).is_file():
        where = f"{DATA_VARIABLE} is not set" if folder is None else f"there is no {folder / _FOLDER / file}"
        raise DatasetError(f"The ground-motion spectra are not at hand: {where}. {_SOURCES}")
    columns = read_spectra_csv(folder / _FOLDER / file)
    missing = [column for column in ("dataset", "sensor") if column not in columns]
    if missing:
        raise DatasetError(f"{folder / _FOLDER / file} has no column {missing[0]!r}. {_SOURCES}")
    chosen = columns["dataset"] == label
    sensors = sorted(set(columns["sensor"][chosen].tolist()))
    sensor = sensors[0] if sensor is None else sensor  # "borehole" sorts before "surface"
    if sensor not in sensors:
        raise ValueError(f"sensor={sensor!r}: {name} has {' and '.join(sensors)}.")
    chosen &= columns["sensor"] == sensor
    return {column: values[chosen] for column, values in columns.items()}


def read_spectra_csv(path: str | Path) -> dict[str, np.ndarray]:
    """Read a CSV file of spectra into columns; rows marked `usable` = 0 are left out, and lines with `#` are comments.

    Needed are event, Mw, R_hyp_km, frequency_hz and fas, or other names that `GroundMotion` knows; every further column
    is kept, as numbers where it holds only numbers.

    Raises
    ------
    DatasetError
        For a file that is missing, empty, or not a table.
    """
    path = Path(path)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(line for line in file if not line.startswith("#"))
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path} cannot be read as a CSV file: {error}.") from error
    if not rows:
        raise DatasetError(f"{path} has no rows below its heading.")
    names = [name for name in rows[0] if name is not None]
    for number, row in enumerate(rows, start=1):
        if None in row or any(row[name] is None for name in names):
            raise DatasetError(f"{path}: row {number} does not have the {len(names)} cells of the heading.")
    if "usable" in names:
        rows = [row for row in rows if float(row["usable"]) == 1.0]
    return {name: _column(name, [row[name] for row in rows]) for name in names}


def _column(name: str, cells: list[str]) -> np.ndarray:
    if name in _TEXT:
        return np.array(cells)
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return np.array(cells)
