"""Terms and what they hold: which leaves a row sees, and the log density of every row.

A `Terms` is structure alone and holds no array, so that compiled programs are found again; the arrays (rows of data, indices,
designs) are its data, `Held` by each term, and are handed over with every call.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenched.arrays import Array
from quenched.targets.explaining import explaining
from quenched.targets.terms.sees import SparseRows

_BESIDES = ("data", "hyper")  # what a function may ask for by name


class Part(NamedTuple):
    """How a term sees one leaf."""

    leaf: str
    kind: str  # "index", "dot", "each_entry" or "whole"
    size: int = 0  # entries that the leaf must have: as many as a design has columns, at least one more than an index


class Held(NamedTuple):
    """The arrays of one term, with the rows along their first axis."""

    rows: Any  # data; None if there are none
    seen: tuple[Any, ...]  # by part: the index, the design, or None


class Given(NamedTuple):
    """What `fit` was given besides, and hands to the functions that ask for it by name."""

    data: Any = None
    hyper: Any = None


@dataclass(frozen=True)
class Term:
    """Terms of one kind.

    Attributes
    ----------
    function
        function(seen, row[, data][, hyper]) -> log density of one row.
    parts
        What it sees, leaf by leaf.
    n
        Number of rows; None for as many as the leaves have entries, or for one.
    has_rows
        Whether there are data.
    """

    function: Callable[..., Any]
    parts: tuple[Part, ...]
    n: int | None
    has_rows: bool

    @cached_property
    def signature(self) -> inspect.Signature | None:
        """Of its function, where it can be read."""
        try:
            return inspect.signature(self.function)
        except (TypeError, ValueError):
            return None

    @cached_property
    def asks(self) -> tuple[str, ...]:
        """What its function is to be given besides, of `data` and `hyper`."""
        if self.signature is None:
            return ()
        free = list(self.signature.parameters.values())[1 + self.has_rows :]
        return tuple(each.name for each in free if each.name in _BESIDES and each.kind != each.VAR_KEYWORD)

    def insist_on_arguments(self) -> None:
        """Refuse a function that does not take what it will be given.

        Raises
        ------
        ValueError
            When it takes no row although there are data, wants one although there are none, or wants anything else.
        """
        if self.signature is None:
            return
        given = ("seen", "row")[: 1 + self.has_rows]
        try:
            self.signature.bind(*given, **dict.fromkeys(self.asks))
        except TypeError as error:
            called = ", ".join([*given, *(f"{name}={name}" for name in self.asks)])
            data = "there are data" if self.has_rows else "there are no data"
            raise ValueError(
                f"function: a term that sees {', '.join(part.leaf for part in self.parts)} is called as function({called}), since "
                f"{data} in its quenched.each, but takes {self.signature}: {error}."
            ) from error

    def n_rows(self, first_axes: dict[str, int]) -> int:
        """How many rows there are, by the lengths of the leaves."""
        if self.n is not None:
            return self.n
        return next((first_axes[part.leaf] for part in self.parts if part.kind == "each_entry"), 1)

    def of_row(self, seen: dict[str, Any], row: Any, given: Given) -> Array:
        """The log density of one row, given what it sees in natural units."""
        besides = {name: getattr(given, name) for name in self.asks}
        arguments = (seen, row) if self.has_rows else (seen,)
        return self._as_number(explaining("function", self.function, *arguments, **besides))

    def _as_number(self, value: Any) -> Array:
        shape = getattr(value, "shape", None if not isinstance(value, (int, float)) else ())
        if shape is None:
            raise ValueError(f"function: a term returned {type(value).__name__}; it must return one number.")
        if shape != ():
            raise ValueError(
                f"function: a term that sees {', '.join(part.leaf for part in self.parts)} returned an array of shape "
                f"{tuple(shape)} for one row; it must return one number: sum over it."
            )
        return jnp.asarray(value)


def see(part: Part, leaf: Array, own: Any) -> Array:
    """What one row sees of a leaf in natural units; `own` is its index, its row of the design, or its own number."""
    if part.kind == "whole":
        return leaf
    if part.kind != "dot":
        return leaf[own]
    if isinstance(own, SparseRows):
        return jnp.tensordot(own.values, leaf[own.columns], 1)
    return jnp.tensordot(own, leaf, 1)


@dataclass(frozen=True)
class Terms:
    """A sum of terms: a log density of the parameters in natural units, and its parts.

    `data` is always (held, given): the `Held` arrays of every term (`target.data`), and what `fit` was given as `data`.
    With `on_real_line` its functions see the parameters there, and the log-Jacobian is among its terms.
    """

    terms: tuple[Term, ...]
    on_real_line: bool = False

    def __call__(self, parameters: Any, data: tuple[tuple[Held, ...], Any], hyper: Any = None) -> Array:
        """The sum over all terms and rows."""
        return sum(jnp.sum(values) for values in self.log_densities(parameters, data, hyper))  # pyright: ignore

    def log_densities(
        self, parameters: Any, data: tuple[tuple[Held, ...], Any], hyper: Any = None
    ) -> tuple[Array, ...]:
        """The log density of every row, one array for each term.

        Parameters
        ----------
        parameters
            In natural units.
        data
            (held, given).
        hyper
            As `fit` was given them.
        """
        leaves = dict(zip(parameter_names(parameters), map(jnp.asarray, jax.tree.leaves(parameters)), strict=True))
        given = Given(data[1], hyper)
        return tuple(_of_rows(term, leaves, held, given) for term, held in zip(self.terms, data[0], strict=True))


def _of_rows(term: Term, leaves: dict[str, Any], held: Held, given: Given) -> Array:
    arrays = jax.tree.leaves(held)  # as many as there are, which may be a part of all
    n = (
        len(arrays[0])
        if arrays
        else term.n_rows({k: jnp.shape(leaf)[0] for k, leaf in leaves.items() if jnp.ndim(leaf)})
    )

    def of_row(number: Array, own: Held) -> Array:
        seen = {
            part.leaf: see(part, leaves[part.leaf], number if part.kind == "each_entry" else what)
            for part, what in zip(term.parts, own.seen, strict=True)
        }
        return term.of_row(seen, own.rows, given)

    return jax.vmap(of_row)(jnp.arange(n), held)


def parameter_names(parameters: Any) -> list[str]:
    """The name of every leaf, as `sees` names it."""
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(parameters)[0]]
    return [jax.tree_util.keystr(path, simple=True, separator=".") or "parameters" for path in paths]
