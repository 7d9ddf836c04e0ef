"""What a row of a term may see of one leaf of the parameters: some entries, a linear predictor, or all of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from quenched.arrays import Array
from quenched.numbers import plain_array
from quenched.targets.terms.in_files import extremes, spooled
from quenched.text import shown


class SparseRows(NamedTuple):
    """A sparse matrix row by row: every row has as many columns, filled up with zeros. Rows may be taken as of an array."""

    columns: Array  # (rows, most in a row)
    values: Array


@dataclass(frozen=True, eq=False)
class Dot:
    """A row of a design matrix times a leaf: made by `dot`."""

    design: np.ndarray | SparseRows
    shape: tuple[int, int]


class EachEntry:
    """One row for every entry of the leaf, along its first axis, in their order; the row sees that entry.

    Examples
    --------
    >>> prior = qd.each(lambda seen: -0.5 * seen["effect"] ** 2, sees={"effect": qd.each_entry})
    >>> qd.fit(qd.sum_of(prior), {"effect": np.ones(4)}).sd["effect"].round(3)
    array([1., 1., 1., 1.])
    """

    def __repr__(self) -> str:
        return "quenched.each_entry"


class Whole:
    """Every row sees the whole leaf: for parameters that all rows share.

    Examples
    --------
    >>> rows = qd.each(lambda seen, y: -0.5 * (y - seen["level"]) ** 2, np.array([1.0, 3.0]), sees={"level": qd.whole})
    >>> float(qd.fit(qd.sum_of(rows), {"level": 0.0}).mean["level"].round(3))
    2.0
    """

    def __repr__(self) -> str:
        return "quenched.whole"


_OF_LABELS = "; np.unique(labels, return_inverse=True)[1] makes whole numbers of it"
_OF_MASKS = "; np.flatnonzero(mask) makes whole numbers of it"
_HINTS = {"U": _OF_LABELS, "S": _OF_LABELS, "T": _OF_LABELS, "b": _OF_MASKS}  # by kind of dtype

each_entry = EachEntry()
whole = Whole()


def dot(design: Any) -> Dot:
    """Each row sees a linear predictor: its row of the design matrix times the leaf.

    For a leaf of shape (columns,) that is one number however many columns there are; for (columns, classes) it is one
    number for each class.

    Parameters
    ----------
    design
        Array or scipy.sparse matrix (rows, columns); a table of numbers is taken by its columns. A `numpy.memmap` stays in its
        file and is read a block at a time; an iterator of blocks of rows (as of a Parquet or zarr reader) is first written to
        a temporary file.

    Examples
    --------
    >>> design = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> def row(seen, y):
    ...     return -0.5 * (y - seen["weights"]) ** 2
    >>> fit = qd.fit(qd.sum_of(qd.each(row, np.array([1.0, 3.0, 5.0]), sees={"weights": qd.dot(design)})), {"weights": np.zeros(2)})
    >>> fit.mean["weights"].round(3)
    array([1., 2.])
    """
    if isinstance(design, Iterator):
        design = spooled(design, "design")
    if hasattr(design, "tocsr"):
        return Dot(_sparse_rows(design), _two(design.shape))
    array = plain_array("design", design)
    _insist_real(array)
    try:
        in_file = isinstance(design, np.memmap) and design.dtype.kind == "f"
        array = np.asarray(array, dtype=None if in_file else np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"design: {type(design).__name__} is no matrix of real numbers: {error}.") from error
    if array.ndim != 2:
        raise ValueError(f"design: has shape {array.shape}; a matrix (rows, columns) is needed.")
    _insist_finite(array)
    return Dot(array, _two(array.shape))


def _two(shape: tuple[int, ...]) -> tuple[int, int]:
    return int(shape[0]), int(shape[1])


def _sparse_rows(design: Any) -> SparseRows:
    _insist_real(design)
    try:
        matrix = design.tocsr().astype(np.float64)
        matrix.check_format(full_check=True)  # or a column that is not there is looked for in other people's memory
    except Exception as error:
        raise ValueError(f"design: is no sparse matrix that can be read: {error}.") from error
    matrix.sum_duplicates()
    _insist_finite(matrix.data)
    counts = np.diff(matrix.indptr)
    n, most = matrix.shape[0], max(int(counts.max(initial=0)), 1)
    columns, values = np.zeros((n, most), int), np.zeros((n, most))
    rows = np.repeat(np.arange(n), counts)
    place = np.arange(len(rows)) - np.repeat(matrix.indptr[:-1], counts)
    columns[rows, place], values[rows, place] = matrix.indices, matrix.data
    # A column that fills up is one of the row's own, so that the row sees no other parameter.
    filling = np.arange(most) >= counts[:, None]
    columns = np.where(filling, columns[:, :1], columns)
    return SparseRows(columns, values)


def _insist_real(design: Any) -> None:
    if np.dtype(design.dtype).kind == "c":
        raise ValueError("design: is complex, and its imaginary part would be lost; give real numbers.")


def _insist_finite(values: np.ndarray) -> None:
    if not np.isfinite(extremes(values)).all():
        wrong = ~np.isfinite(values)
        raise ValueError(f"design: has {int(wrong.sum())} entries that are not finite; remove or impute them first.")


def read_index(leaf: str, index: Any) -> np.ndarray:
    """Whole numbers, (rows,) or (rows, several).

    Raises
    ------
    ValueError
        For anything else: numbers that are not whole or negative, masks, rows that see different numbers of entries.
    """
    if hasattr(index, "cat") or hasattr(index, "codes"):
        raise ValueError(
            f"sees: the index of {leaf!r} is categorical; give its codes, index.cat.codes (or index.codes), which count from 0."
        )
    array = _rows_of_places(leaf, index)
    if array.dtype.kind not in "iu":
        hint = _HINTS.get(array.dtype.kind, "")
        raise ValueError(
            f"sees: {leaf!r} has dtype {array.dtype}; give whole numbers, one per row (or several), quenched.dot(design), "
            f"quenched.each_entry or quenched.whole{hint}."
        )
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(f"sees: the index of {leaf!r} has shape {array.shape}; give (rows,) or (rows, several).")
    if array.min() < 0:
        row = int(np.argwhere(array < 0)[0][0])
        raise ValueError(
            f"sees: the index of {leaf!r} is {array.min()} in row {row}; entries are counted from 0, and none from the end."
        )
    return array.astype(np.int64)


def _rows_of_places(leaf: str, index: Any) -> np.ndarray:
    """An index, or a tuple of them beside each other, as one array, which may hold anything."""
    several = isinstance(index, tuple) and len(index) > 0 and all(np.ndim(part) == 1 for part in index)
    if any(map(np.ma.is_masked, index if several else (index,))):
        raise ValueError(f"sees: the index of {leaf!r} has masked values; leave such rows out.")
    lengths = sorted({np.size(part) for part in index}) if several else []
    if len(lengths) > 1:
        raise ValueError(
            f"sees: the indices of {leaf!r} have lengths {lengths}; each of a tuple of indices needs one number per row."
        )
    try:
        array = np.stack([np.asarray(part) for part in index], axis=1) if several else np.asarray(index)
    except ValueError:
        array = np.zeros(0, object)  # rows that differ in length
    except Exception as error:  # of whatever it is, when it is made an array
        raise ValueError(f"sees: the index of {leaf!r}, {shown(index)}, is not an array: {error}.") from error
    if array.dtype.kind != "O" or not (isinstance(index, (list, tuple)) or np.ndim(index) > 0):
        return array
    if all(isinstance(row, str) for row in index):
        return np.asarray(index, dtype=str)
    counts = sorted({int(np.size(row)) for row in index})
    raise ValueError(
        f"sees: the rows of {leaf!r} differ in how many entries they see ({', '.join(map(str, counts))}); all rows of "
        "an `each` see as many: write one `each` for every number of them."
    )
