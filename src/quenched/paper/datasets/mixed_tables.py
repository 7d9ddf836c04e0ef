"""Tables of mixed models, as columns."""

import csv

import numpy as np

from quenched.paper.datasets.files import obtain
from quenched.paper.datasets.registry import find


def mixed_table(name: str) -> dict[str, np.ndarray]:
    """The columns of one table: numbers where all entries are, text elsewhere.

    Parameters
    ----------
    name
        "salamander", "VerbAgg", "sleepstudy", "Penicillin", "InstEval", "Seeds" or "Epil".

    Raises
    ------
    ValueError
        For an unknown name.
    DatasetError
        For a damaged file, or one that cannot be had.
    """
    files = {file.path.rpartition("/")[2].partition(".")[0]: file for file in find("mixed").files}
    if name not in files:
        raise ValueError(f"name={name!r}: no such table; there are {', '.join(files)}.")
    (path,) = obtain([files[name]])
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file, delimiter="," if path.suffix == ".csv" else " ")
    return {label: _column([row[place] for row in rows]) for place, label in enumerate(head)}


def _column(entries: list[str]) -> np.ndarray:
    try:
        return np.array(entries, float)
    except ValueError:
        return np.array(entries)
