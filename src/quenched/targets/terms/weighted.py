"""A sum of terms of which some rows were taken: each kind of term with a weight of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.numbers import mapped
from quenched.targets.terms.in_files import let_go
from quenched.targets.terms.terms import Held, Terms


@dataclass(frozen=True)
class Weighted:
    """The estimate of a sum over all rows by the sum over some; `data` is (held, given, weights)."""

    terms: Terms

    def __call__(self, parameters: Any, data: tuple[tuple[Held, ...], Any, Array], hyper: Any = None) -> Array:
        held, given, weights = data
        sums = [jnp.sum(values) for values in self.terms.log_densities(parameters, (held, given), hyper)]
        return sum(weight * value for weight, value in zip(weights, sums, strict=True))  # pyright: ignore


def of_some_rows(terms: Terms, places: Sequence[np.ndarray | None]) -> Weighted:
    """The sum over as many rows of each kind of term as are taken."""
    sizes = [term.n if some is None else len(some) for term, some in zip(terms.terms, places, strict=True)]
    return Weighted(Terms(tuple(replace(term, n=n) for term, n in zip(terms.terms, sizes, strict=True))))


def numbers_of_rows(terms: Terms) -> tuple[int, ...]:
    """Rows of every kind of term that may be taken apart; none of those that go by the entries of a leaf, or that are one."""
    by_entry = lambda term: any(part.kind == "each_entry" for part in term.parts)
    return tuple(0 if by_entry(term) else term.n or 0 for term in terms.terms)


def some_rows(held: Sequence[Held], places: Sequence[np.ndarray | None]) -> tuple[Held, ...]:
    """The arrays of some rows of each kind of term, read from wherever they are; None takes all."""
    take = lambda one, rows: one if rows is None else jax.tree.map(lambda array: _read(array, rows), one)
    return tuple(take(one, rows) for one, rows in zip(held, places, strict=True))


def rows_between(terms: Terms, data: tuple[Sequence[Held], Any], first: int, last: int) -> tuple[tuple[Held, ...], Any]:
    """The data of a sum with some rows of each kind of term alone; those that cannot be taken apart have all of theirs.

    So the sum over all rows is the sum over the blocks, less what the blocks have in common: the sum over no rows.
    """
    held, given = data
    places = [slice(first, last) if n else None for n in numbers_of_rows(terms)]
    return some_rows(held, places), given  # pyright: ignore


def in_files(held: Any) -> bool:
    """Whether some arrays are in a file."""
    return any(mapped(array) is not None for array in jax.tree.leaves(held))


def _read(array: Any, rows: Any) -> np.ndarray:
    found = np.array(array[rows])
    let_go(array)
    return found
