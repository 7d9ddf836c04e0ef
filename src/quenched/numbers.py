"""Numbers that a person gives: read, or refused with a message that names the argument and the value.

One reader per kind. Each is called where the argument comes in, before anything is computed.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from quenched.text import dotted, harmless, shown

_PLAIN = (int, float, np.integer, np.floating)
_YES_OR_NO = (bool, np.bool_)
_DEEPEST = 100  # containers in each other
_MOST = 2**40  # things that can be counted: more fit into no machine


def whole_number(name: str, value: Any, least: int, most: int | None = _MOST) -> int:
    """A whole number of at least `least`, and no more than anyone can mean."""
    if isinstance(value, _YES_OR_NO) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}={shown(value)}: a whole number of at least {least} is needed.")
    if most is not None and value > most:
        raise ValueError(f"{name}={shown(value)}: is too large; a whole number of at most {most} is needed.")
    return int(value)


def seed_number(name: str, value: Any) -> int:
    """The seed of random numbers: a whole number, however large."""
    return whole_number(name, value, 0, None)


def positive_number(name: str, value: Any) -> float:
    """A positive number, which may be infinite."""
    number = _number(value)
    if not number > 0:
        raise ValueError(f"{name}={shown(value)}: a positive number is needed.")
    return number


def finite_number(name: str, value: Any) -> float:
    """A real number."""
    number = _number(value)
    if not np.isfinite(number):
        raise ValueError(f"{name}={shown(value)}: a finite number is needed.")
    return number


def probability(name: str, value: Any) -> float:
    """A number between 0 and 1, neither of them."""
    number = _number(value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name}={shown(value)}: a probability between 0 and 1 is needed.")
    return number


def _number(value: Any) -> float:
    """NaN for what is none."""
    if isinstance(value, _YES_OR_NO) or not isinstance(value, _PLAIN):
        return float("nan")
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return float("nan")


def yes_or_no(name: str, value: Any) -> bool:
    """True or False."""
    if isinstance(value, _YES_OR_NO) or (isinstance(value, (int, np.integer)) and value in (0, 1)):
        return bool(value)
    raise ValueError(f"{name}={shown(value)}: give True or False.")


def plain_array(name: str, value: Any) -> np.ndarray:
    """Anything as an array, which may hold anything; masked values are refused, since NumPy forgets the mask."""
    try:
        if np.ma.is_masked(value):
            raise ValueError("it has masked values; remove them, or fill them in")
        return np.asarray(value)
    except Exception as error:  # ragged lists; objects of the user's own
        raise ValueError(f"{name} = {shown(value)} is not an array: {error}.") from error


def native(leaf: Any) -> Any:
    """A NumPy array as JAX takes it: of this machine's own byte order, no longer than double precision, and without a mask."""
    if isinstance(leaf, np.ma.MaskedArray):
        leaf = np.asarray(leaf)  # nothing is masked, or it would have been refused
    if not isinstance(leaf, (np.ndarray, np.generic)) or leaf.dtype.kind not in "fiu":
        return leaf
    if leaf.dtype.kind == "f" and leaf.dtype.itemsize > 8:
        return leaf.astype(np.float64)
    return leaf if leaf.dtype.isnative else leaf.astype(leaf.dtype.newbyteorder("="))


def float_array(name: str, value: Any) -> np.ndarray:
    """An array of floats, which may be anything, not a number among them."""
    array = plain_array(name, value)
    if array.dtype.kind == "c":
        raise ValueError(f"{name}: is complex, and its imaginary part would be lost; give real numbers.")
    try:
        if array.dtype.kind not in "fiubO":
            raise TypeError("no numbers")
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: has dtype {array.dtype}; give real numbers.") from error


def real_array(name: str, value: Any) -> np.ndarray:
    """An array of finite floats."""
    array = float_array(name, value)
    for kind, wrong, remedy in (
        ("NaN", np.isnan(array), "remove or impute missing values first"),
        ("infinite values", np.isinf(array), "give finite numbers"),
    ):
        if wrong.any():
            first = tuple(np.argwhere(wrong)[0].tolist())
            raise ValueError(f"{name}: has {int(wrong.sum())} {kind}, the first at index {first}; {remedy}.")
    return array


def given_function(name: str, value: Any, wanted: str) -> Callable[..., Any]:
    """Something that can be called, as `wanted` says."""
    if not callable(value):
        raise ValueError(f"{name}={shown(value)} is not callable; give {wanted}.")
    return value


def insist_tree(name: str, tree: Any) -> None:
    """Refuse what JAX cannot take apart: keys that cannot be sorted, and what holds itself."""
    if _is_too_deep(tree):
        raise ValueError(f"{name}: holds itself, or is too deep; give a pytree of arrays.")
    try:
        jax.tree_util.tree_flatten_with_path(tree)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}={shown(tree)}: its keys cannot be sorted; let all of a dict be texts.") from error


def _is_too_deep(tree: Any) -> bool:
    """Whether containers lie in each other without end, as JAX must not see: it takes the stack, and does not give it back."""
    left = [(tree, 0)] if isinstance(tree, (dict, list, tuple)) else []
    while left:
        holder, depth = left.pop()
        if depth > _DEEPEST:
            return True
        inner = holder.values() if isinstance(holder, dict) else holder
        left += [(one, depth + 1) for one in inner if isinstance(one, (dict, list, tuple))]
    return False


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


def mapped(array: Any) -> np.memmap | None:
    """The file behind an array, if there is one."""
    while array is not None:
        if isinstance(array, np.memmap):
            return array
        array = getattr(array, "base", None)
    return None


def check_data(data: Any) -> None:
    """Arrays of numbers without NaN; what is in a file is looked at when it is read."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(data)[0]:
        name = dotted(path) or "data"
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            continue  # parts of it are on other hosts, which have looked at them, or will
        array = plain_array(f"data: {name}", leaf)
        if array.dtype.kind not in "fiub":
            raise ValueError(f"data: {name} has dtype {array.dtype}; give arrays of numbers.")
        if array.dtype.kind == "f" and mapped(leaf) is None and np.isnan(array).any():
            first = tuple(int(i) for i in np.argwhere(np.isnan(array))[0])
            raise ValueError(
                f"data: {name} has {int(np.isnan(array).sum())} NaN, the first at index {first}; "
                "remove or impute missing values first."
            )


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
        inner = dotted(path)
        if hasattr(leaf, "columns") and hasattr(leaf, "__getitem__"):
            return _columns(f"{name}: ", f"{inner}." if inner else "", leaf)
        if hasattr(leaf, "to_numpy") and hasattr(leaf, "dtype"):
            return _column(f"{name}: {inner or name}", leaf)
        return np.asarray(leaf) if isinstance(leaf, list) else leaf

    insist_tree(name, tree)
    return jax.tree_util.tree_map_with_path(read, tree, is_leaf=is_list_of_numbers)


def read_data(name: str, tree: Any) -> Any:
    """The same of data, where a tuple of numbers, or a list of such rows, is one array as well.

    Whole numbers and others together stay what they are: one may count what the others measure.
    """
    rows = tree if isinstance(tree, list) else [tree]
    if rows and all(isinstance(row, tuple) and _are_alike(row) for row in rows) and len({*map(len, rows)}) == 1:
        return np.asarray(tree)
    return read_arrays(name, tree)


def _are_alike(row: tuple) -> bool:
    """Plain numbers, all of one kind; a named tuple means each of its own."""
    if type(row) is not tuple or _shape_of_numbers(list(row)) != (len(row),):
        return False
    return len({isinstance(each, (int, np.integer)) for each in row}) == 1


def _columns(where: str, inside: str, table: Any) -> OrderedDict[Any, np.ndarray]:
    """Ordered, because JAX sorts the keys of a plain dict."""
    names = list(table.columns)
    twice = sorted({str(each) for each in names if names.count(each) > 1})
    if twice:
        raise ValueError(f"{where}two columns are called {inside}{harmless(twice[0])}; rename one, or leave it out.")
    return OrderedDict((each, _column(f"{where}column {inside}{harmless(str(each))}", table[each])) for each in names)


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
