"""`sum_of(each(...), ...)`: a log density written as a sum of terms, with what each row sees."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from quenched.numbers import given_function, insist_tree, plain_array, read_data
from quenched.targets.target import Target
from quenched.targets.terms.in_files import extremes, spooled
from quenched.targets.terms.sees import Dot, EachEntry, SparseRows, Whole, read_index
from quenched.targets.terms.terms import Held, Part, Term, Terms
from quenched.text import dotted, harmless, shown


@dataclass(frozen=True, eq=False)
class Each:
    """One kind of term, for all its rows: made by `each`, and put into `sum_of`."""

    term: Term
    held: Held = field(repr=False)


def each(function: Callable[..., Any], data: Any = None, *, sees: Mapping[str, Any]) -> Each:
    """Terms of one kind, a row for each: log densities that see few of the parameters.

    Parameters
    ----------
    function
        function(seen, row) -> number: the log density of one row in JAX, up to no constant. `seen` holds by name what
        `sees` names, in natural units; `row` is the data of the row. Without data it is function(seen). A function with
        an argument called `hyper` or `data` besides is given what `fit` was given under that name.
    data
        Pytree of arrays with the rows along their first axis; a list of numbers is an array, a DataFrame a mapping of
        its columns. `numpy.memmap` and iterators of blocks of rows as in `dot`.
    sees
        What a row sees, by the name of the leaf of the parameters (`a.b` for b in a, `parameters` for a bare array); it
        sees no other. Either whole numbers, one per row: `seen` has that entry of the leaf, along its first axis; or
        several per row, as an array (rows, several) or a tuple of indices: `seen` has those entries, stacked; or
        `dot(design)`, a linear predictor; `each_entry`, a row for every entry; `whole`, all of it.

    Raises
    ------
    ValueError
        When rows do not agree in number, or an index is none.

    Examples
    --------
    >>> group = np.array([0, 0, 1])
    >>> term = qd.each(lambda seen, y: -0.5 * (y - seen["effect"]) ** 2, np.array([1.0, 3.0, 5.0]), sees={"effect": group})
    >>> prior = qd.each(lambda seen: -0.5e-6 * seen["effect"] ** 2, sees={"effect": qd.each_entry})
    >>> qd.fit(qd.sum_of(term, prior), {"effect": np.zeros(2)}).mean["effect"].round(3)
    array([2., 5.])
    """
    given_function("function", function, "function(seen, row) -> number")
    if not isinstance(sees, Mapping) or not sees:
        raise ValueError(
            f"sees={shown(sees)}: give a mapping such as {{'student': index}}; a term that sees no parameter is a constant."
        )
    rows = _read_rows(data)
    parts, seen, lengths = [], [], {}
    for leaf, what in sees.items():
        part, own = _read_part(str(leaf), what)
        parts.append(part)
        seen.append(own)
        if own is not None:
            lengths[f"what it sees of {leaf!r}"] = len(own.values if isinstance(own, SparseRows) else own)
    for path, array in jax.tree_util.tree_flatten_with_path(rows)[0]:
        lengths["data" + harmless(jax.tree_util.keystr(path))] = len(array)
    n = _one_length(lengths)
    term = Term(function, tuple(parts), n, rows is not None)
    term.insist_on_arguments()
    return Each(term, Held(rows, tuple(seen)))


def sum_of(*terms: Each) -> Target:
    """A log density that is a sum of terms, each of which sees few of the parameters.

    It is a target as any other: `fit(sum_of(...), start)` finds what the plain log density written out would. Because it
    is known which parameters meet in a term, a full covariance costs no more than the sum itself (see
    `docs/sums_of_terms.md`): frozen draws live in the few numbers that a term sees, and the precision has the sparsity of the
    model.

    Parameters
    ----------
    terms
        Made by `each`.

    Examples
    --------
    >>> target = qd.sum_of(qd.each(lambda seen: -0.5 * (seen["w"] - 2.0) ** 2, sees={"w": qd.each_entry}))
    >>> fit = qd.fit(target, {"w": np.zeros(3)})
    >>> fit.settings["family"], fit.mean["w"].round(3)
    ('sparse', array([2., 2., 2.]))
    """
    if not terms:
        raise ValueError("terms: there are none; give quenched.each(function, data, sees={...}).")
    for place, one in enumerate(terms):
        if not isinstance(one, Each):
            raise ValueError(f"terms: the one at place {place} is {shown(one)}; make it with quenched.each(...).")
    structure = Terms(tuple(one.term for one in terms))
    return Target(structure, data=tuple(one.held for one in terms), terms=structure)


def _read_part(leaf: str, what: Any) -> tuple[Part, Any]:
    if isinstance(what, Dot):
        return Part(leaf, "dot", what.shape[1]), what.design
    if isinstance(what, (EachEntry, Whole)):
        return Part(leaf, "each_entry" if isinstance(what, EachEntry) else "whole"), None
    if callable(what):
        raise ValueError(f"sees: {leaf!r} is {shown(what)}; was quenched.dot(design) meant, or quenched.whole?")
    index = read_index(leaf, what)
    return Part(leaf, "index", int(index.max()) + 1), index


def _read_rows(data: Any) -> Any:
    insist_tree("data", data)
    is_iterator = lambda leaf: isinstance(leaf, Iterator)
    data = jax.tree.map(lambda leaf: spooled(leaf, "data") if is_iterator(leaf) else leaf, data, is_leaf=is_iterator)
    rows = read_data("data", data)
    for path, leaf in jax.tree_util.tree_flatten_with_path(rows)[0]:
        name, array = dotted(path) or "data", plain_array("data", leaf)
        if array.dtype.kind not in "fiub":
            raise ValueError(f"data: {name} has dtype {array.dtype}; give arrays of numbers.")
        if array.ndim == 0:
            raise ValueError(f"data: {name} is a single number; its first axis must be the rows.")
        if array.dtype.kind == "f" and np.isnan(extremes(array)[0]):
            first = tuple(np.argwhere(np.isnan(array))[0].tolist())
            raise ValueError(
                f"data: {name} has {int(np.isnan(array).sum())} NaN, the first at index {first}; leave such rows out."
            )
    rows = jax.tree.map(np.asarray, rows)
    return rows if jax.tree.leaves(rows) else None


def _one_length(lengths: dict[str, int]) -> int | None:
    """The number of rows; None where the leaf itself tells it."""
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(f"each: {told}; all need one entry for every row.")
    n = next(iter(lengths.values()), None)
    if n == 0:
        raise ValueError("each: there are no rows at all; leave the term out.")
    return n
