"""Results as rows of one table, `results.csv`."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Record(NamedTuple):
    """One number beside the paper's."""

    experiment: str
    dataset: str
    mode: str  # paper | default
    method: str
    metric: str
    value: float
    spread: float | None = None
    paper_value: float | None = None
    paper_spread: float | None = None
    repetitions: int = 1


def summarise(
    experiment: str,
    dataset: str,
    mode: str,
    method: str,
    metric: str,
    values: Sequence[float],
    paper: tuple[float, float] | float | None = None,
) -> Record:
    """Mean and standard deviation over repetitions."""
    numbers = np.asarray(values, dtype=float)
    spread = float(numbers.std(ddof=1)) if len(numbers) > 1 else None
    value, paper_spread = paper if isinstance(paper, tuple) else (paper, None)
    return Record(
        experiment, dataset, mode, method, metric, float(numbers.mean()), spread, value, paper_spread, len(numbers)
    )


def by_method(records: Iterable[Record]) -> dict[tuple[str, str, str], dict[str, Record]]:
    """Records by dataset, mode and method, each by its metric."""
    groups: dict[tuple[str, str, str], dict[str, Record]] = {}
    for record in records:
        groups.setdefault((record.dataset, record.mode, record.method), {})[record.metric] = record
    return groups


def shown(record: Record | None, digits: int = 4) -> str:
    """Value and spread as text; a dash for what is missing."""
    return "–" if record is None else pair(record.value, record.spread, digits)


def pair(value: float, spread: float | None, digits: int = 4) -> str:
    """`0.889 ± 0.005`."""
    return f"{value:.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")


def beside(record: Record | None, digits: int = 4) -> str | None:
    """What the paper has for it, as text."""
    if record is None or record.paper_value is None:
        return None
    return pair(record.paper_value, record.paper_spread, digits)


def write_csv(path: Path, records: Iterable[Record]) -> None:
    """Write all records, one row each."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Record._fields)
        writer.writerows(["" if cell is None else cell for cell in record] for record in records)
