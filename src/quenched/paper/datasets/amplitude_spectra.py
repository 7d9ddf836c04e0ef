"""Fourier amplitude spectra of strong ground motion: two stations of KiK-net, and the L'Aquila main shock.

The spectra are derived from public records that their owners ask to be fetched from them, so they are read from a local
folder only: `<QUENCHED_DATA>/groundmotion/fas_records.csv` and `fas_records_dense.csv`.
"""

import numpy as np

from quenched.paper.datasets.files import DATA_VARIABLE, DatasetError, data_folder

_FILES = {
    "fksh11": ("fas_records_dense.csv", "kiknet_fksh11"),
    "kmmh14": ("fas_records_dense.csv", "kiknet_kmmh14"),
    "laquila": ("fas_records.csv", "laquila2009_resorce"),
}
_SOURCES = (
    "The records are public: KiK-net stations FKSH11 and KMMH14 from NIED (https://www.kyoshin.bosai.go.jp, free "
    "registration, doi:10.17598/NIED.0004); L'Aquila, 6 April 2009, from ITACA (http://itaca.mi.ingv.it) or ESM "
    "(https://esm-db.eu). Their spectra must be computed from them, with the columns dataset, event, Mw, R_hyp_km, "
    "frequency_hz, fas (cm/s), station, sensor (surface or borehole), usable (1 or 0)."
)


def ground_motion(name: str) -> dict[str, np.ndarray]:
    """Usable points of the spectra of one set, as columns for `quenched.science.GroundMotion`.

    KiK-net: acknowledge NIED, doi:10.17598/NIED.0004. Of its two sensors, the borehole.

    Parameters
    ----------
    name
        "fksh11" or "kmmh14" (8 events at one station, 250 frequencies), or "laquila" (1 event at 13 stations, 30
        frequencies).

    Raises
    ------
    ValueError
        For an unknown name.
    DatasetError
        Without the folder or the file, saying where the records are public.
    """
    from quenched.science import read_spectra_csv  # which a list of datasets need not load

    if name not in _FILES:
        raise ValueError(f"name={name!r}: no such ground-motion set; there are {', '.join(_FILES)}.")
    file, label = _FILES[name]
    folder = data_folder()
    path = None if folder is None else folder / "groundmotion" / file
    if path is None or not path.is_file():
        reason = f"{DATA_VARIABLE} is not set" if path is None else f"there is no {path}"
        raise DatasetError(f"The ground-motion spectra are not at hand: {reason}. {_SOURCES}")
    try:
        columns = read_spectra_csv(path)
    except ValueError as error:
        raise DatasetError(f"{error} {_SOURCES}") from error
    if not {"dataset", "sensor"} <= columns.keys() or label not in columns["dataset"]:
        raise DatasetError(f"{path} has no rows with the dataset {label} and a sensor. {_SOURCES}")
    chosen = columns["dataset"] == label
    chosen &= columns["sensor"] == min(columns["sensor"][chosen])  # "borehole" sorts before "surface"
    return {column: values[chosen] for column, values in columns.items()}
