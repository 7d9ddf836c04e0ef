"""The multiclass sets of the paper (Sec. 3.4), each as one matrix with labels 0, 1, ..., C-1."""

from dataclasses import dataclass

import numpy as np

from quenched.paper.datasets.files import fetch
from quenched.paper.datasets.registry import find


@dataclass(frozen=True, eq=False)
class Classification:
    """A classification problem.

    Parameters
    ----------
    features
        Float64 of shape (rows, features), as in the file: not standardised.
    labels
        Int64 of shape (rows,): the index of each row's class in `classes`.
    classes
        The labels of the file, sorted.
    """

    features: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]


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


def load(name: str) -> Classification:
    """Load a multiclass set, fetching it if need be (see `fetch`).

    Raises
    ------
    ValueError
        For an unknown name, or the name of a set that is not multiclass.
    """
    layout = _LAYOUTS[find(name, "classification").name]
    texts = (path.read_text(encoding="ascii").splitlines()[layout.header_lines :] for path in fetch(name))
    rows = [line.split(layout.separator) for lines in texts for line in lines if line.strip()]
    aside = {*layout.label_columns, *layout.dropped_columns}
    features = [[float(cell) for i, cell in enumerate(row) if i not in aside] for row in rows]
    words = ["".join(row[i].strip() for i in layout.label_columns) for row in rows]
    classes, labels = np.unique(words, return_inverse=True)
    return Classification(np.array(features), labels.astype(np.int64), tuple(classes.tolist()))
