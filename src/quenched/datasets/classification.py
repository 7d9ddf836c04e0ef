"""The multiclass sets of the paper (Sec. 3.4), each as one matrix with labels 0, 1, ..., C-1."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quenched.datasets.fetching import fetch
from quenched.datasets.registry import find, of_kind


@dataclass(frozen=True, eq=False)
class Classification:
    """A classification problem.

    Parameters
    ----------
    name
        Its name in the registry.
    features
        Float64 of shape (rows, features), as in the file: not standardised.
    labels
        Int64 of shape (rows,): the index of each row's class in `classes`.
    classes
        The labels of the file, sorted.
    feature_names
        The names of the columns.
    """

    name: str
    features: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]
    feature_names: tuple[str, ...]


@dataclass(frozen=True)
class _Layout:
    """How a text file is read. A column that numbers the rows is dropped: it would give the class away."""

    separator: str | None
    label_columns: tuple[int, ...]
    dropped_columns: tuple[int, ...] = ()
    header_lines: int = 0


_BLANKS = None  # str.split's word for any run of blanks
_LAYOUTS = {
    "ecoli": _Layout(_BLANKS, label_columns=(8,), dropped_columns=(0,)),
    "glass": _Layout(",", label_columns=(10,), dropped_columns=(0,)),
    "iris": _Layout(",", label_columns=(4,)),
    "wine": _Layout(",", label_columns=(0,)),
    "soybean-small": _Layout(",", label_columns=(35,)),
    "vehicle": _Layout(_BLANKS, label_columns=(18,)),
    "balance-scale": _Layout(",", label_columns=(0,)),
    # rownames, sp, sex, index, then the measurements: the class is species and sex together.
    "crabs": _Layout(",", label_columns=(1, 2), dropped_columns=(0, 3), header_lines=1),
}


def load(name: str, *, progress: bool | None = None) -> Classification:
    """Load a multiclass set, fetching it if need be (see `fetch`).

    Parameters
    ----------
    name
        `ecoli`, `glass`, `iris`, `wine`, `soybean-small`, `vehicle`, `balance-scale` or `crabs`.
    progress
        As for `fetch`.

    Raises
    ------
    ValueError
        For an unknown name, or the name of a set that is not multiclass.
    """
    dataset = find(name)
    if dataset.kind != "classification":
        raise ValueError(
            f"{name} is not a multiclass set: the two-class sets are read by partitions(...), images by faces(). "
            f"load reads {', '.join(of_kind('classification'))}."
        )
    rows = _read_rows(fetch(name, progress=progress), _LAYOUTS[name])
    return _assemble(name, rows, _LAYOUTS[name], dataset.feature_names)


def _read_rows(paths: Iterable[Path], layout: _Layout) -> list[list[str]]:
    texts = (path.read_text(encoding="ascii").splitlines()[layout.header_lines :] for path in paths)
    return [line.split(layout.separator) for lines in texts for line in lines if line.strip()]


def _assemble(name: str, rows: list[list[str]], layout: _Layout, feature_names: tuple[str, ...]) -> Classification:
    aside = {*layout.label_columns, *layout.dropped_columns}
    features = [[float(cell) for i, cell in enumerate(row) if i not in aside] for row in rows]
    words = ["".join(row[i].strip() for i in layout.label_columns) for row in rows]
    classes, labels = np.unique(words, return_inverse=True)
    return Classification(
        name=name,
        features=np.array(features, dtype=np.float64),
        labels=labels.astype(np.int64),
        classes=tuple(str(word) for word in classes),
        feature_names=feature_names,
    )
