"""Numbers that a person gives: read, or refused with a message that names the argument and the value."""

from collections import OrderedDict
from typing import Any

import jax
import numpy as np

_PLAIN = (int, float, np.integer, np.floating)
_YES_OR_NO = (bool, np.bool_)


def whole_number(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}={value!r}: a whole number of at least {least} is needed.")
    return int(value)


def positive_number(name: str, value: Any) -> float:
    """A positive number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value > 0:
        raise ValueError(f"{name}={value!r}: a positive number is needed.")
    return float(value)


def is_list_of_numbers(value: Any) -> bool:
    """Whether this is an array as people write it down: a list of plain numbers, or of such lists of one shape."""
    return _shape_of_numbers(value) is not None


def _shape_of_numbers(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(each, _PLAIN) and not isinstance(each, _YES_OR_NO) for each in value):
        return (len(value),)
    first, *others = map(_shape_of_numbers, value)
    return None if first is None or any(other != first for other in others) else (len(value), *first)


def read_arrays(name: str, tree: Any) -> Any:
    """A pytree of arrays from what a person gives: lists of numbers, and tables with their columns by name.

    Lists of plain numbers and Series become arrays; a DataFrame, known by its `columns`, becomes a mapping of them in
    their order, without its index. Everything else is left as it is.

    Raises
    ------
    ValueError
        For columns that hold no numbers.
    """

    def read(path: tuple, leaf: Any) -> Any:
        inner = jax.tree_util.keystr(path, simple=True, separator=".")
        if hasattr(leaf, "columns") and hasattr(leaf, "__getitem__"):
            return _columns(f"{name}: ", f"{inner}." if inner else "", leaf)
        if hasattr(leaf, "to_numpy") and hasattr(leaf, "dtype"):
            return _column(f"{name}: {inner or name}", leaf)
        return np.asarray(leaf) if isinstance(leaf, list) else leaf

    return jax.tree_util.tree_map_with_path(read, tree, is_leaf=is_list_of_numbers)


def _columns(where: str, inside: str, table: Any) -> OrderedDict[Any, np.ndarray]:
    """Ordered, because JAX sorts the keys of a plain dict."""
    names = list(table.columns)
    twice = sorted({str(each) for each in names if names.count(each) > 1})
    if twice:
        raise ValueError(f"{where}two columns are called {inside}{twice[0]}; rename one, or leave it out.")
    return OrderedDict((each, _column(f"{where}column {inside}{each}", table[each])) for each in names)


def _column(name: str, column: Any) -> np.ndarray:
    kind = getattr(column.dtype, "kind", None) or np.asarray(column).dtype.kind
    if kind not in "fiub":
        raise ValueError(
            f"{name} has dtype {column.dtype}, and a log density takes numbers alone; encode it, e.g. by "
            ".astype('category').cat.codes, or leave it out."
        )
    array = np.asarray(column)
    if array.dtype.kind == "O":  # numbers of pandas' own, which may be missing
        array = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return array.astype(np.int64) if kind in "iu" and not np.isnan(array).any() else array
    return array.astype(np.float64) if kind == "b" else array
