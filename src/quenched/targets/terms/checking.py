"""A sum of terms against the parameters it is to be a density of: everything that structure alone can tell is wrong."""

from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.targets.terms.local import LocalTerm, leaves_seen, local_terms
from quenched.targets.terms.terms import Held, Part, Term, Terms
from quenched.text import did_you_mean

if TYPE_CHECKING:
    from quenched.transforms import Leaf, Space

_MOST_COLUMNS = 2000  # of designs whose rank is looked at


def check_terms(terms: Terms, held: tuple[Held, ...], space: "Space", data: Any = None, hyper: Any = None) -> None:
    """Refuse a sum that does not fit the parameters, or leaves some of them without a density.

    Raises
    ------
    ValueError
        For leaves that do not exist, indices out of range, designs of another size, entries that no term sees, and data or
        hyperparameters that no function asks for.
    """
    leaves = {leaf.name: leaf for leaf in leaves_seen(terms, space)}
    for term in terms.terms:
        for part in term.parts:
            if part.leaf not in leaves:
                hint = did_you_mean(part.leaf, leaves)
                raise ValueError(
                    f"sees: there is no parameter {part.leaf!r}; start has {', '.join(map(repr, leaves))}{hint}"
                )
            _check_part(part, leaves[part.leaf])
        _check_entries(term, leaves)
    for name, value in (("data", data), ("hyper", hyper)):
        if value is None and any(name in term.asks for term in terms.terms):
            raise ValueError(
                f"{name}: is missing; a term's function has an argument called `{name}`, which `fit` is given."
            )
        if value is not None and not any(name in term.asks for term in terms.terms):
            remedy = "rows belong into quenched.each(function, data)" if name == "data" else "leave them out"
            raise ValueError(
                f"{name}: no term's function has an argument called `{name}` after what it sees and its row; add one, or "
                f"{remedy}."
            )
    _check_coverage(terms, held, space)


def _check_part(part: Part, leaf: "Leaf") -> None:
    if part.kind == "whole":
        return
    if not leaf.shape:
        raise ValueError(f"sees: {part.leaf!r} is a single number, without entries; use quenched.whole.")
    n = leaf.shape[0]
    if part.kind == "dot" and part.size != n:
        raise ValueError(
            f"sees: the design of {part.leaf!r} has {part.size} columns, but the leaf has {n} entries along its first axis."
        )
    if part.kind == "index" and part.size > n:
        raise ValueError(
            f"sees: the index of {part.leaf!r} goes up to {part.size - 1}, but the leaf has {n} entries, counted from 0."
        )


def _check_entries(term: Term, leaves: "dict[str, Leaf]") -> None:
    lengths = {part.leaf: leaves[part.leaf].shape[0] for part in term.parts if part.kind == "each_entry"}
    if term.n is not None:
        lengths["its rows"] = term.n
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name}: {n}" for name, n in lengths.items())
        raise ValueError(f"sees: each_entry takes a row for every entry, but they differ in number ({told}).")


def coverage(local: tuple[LocalTerm, ...], dim: int) -> np.ndarray:
    """Which coordinates of the real line some term sees."""
    seen = np.zeros(dim, bool)
    for term in local:
        for piece in term.pieces:
            seen[piece.coordinates()] = True
    return seen


def _check_coverage(terms: Terms, held: tuple[Held, ...], space: "Space") -> None:
    named = {part.leaf for term in terms.terms for part in term.parts}
    unseen = [leaf.name for leaf in space.leaves if leaf.name not in named and int(np.prod(leaf.real_shape))]
    if unseen:
        raise ValueError(
            f"sees: no term sees {', '.join(map(repr, unseen))}, which leaves the posterior improper; give it a prior, e.g. "
            f"quenched.each(prior, sees={{{unseen[0]!r}: quenched.whole}}), or leave it out of start."
        )
    local = local_terms(terms, held, space, jacobian=False)
    missing = np.flatnonzero(~coverage(local, space.dim))
    if len(missing):
        name = space.coordinate_names()[int(missing[0])]
        more = f", and {len(missing) - 1} more," if len(missing) > 1 else ""
        raise ValueError(
            f"sees: no row of any term sees {name}{more} which leaves the posterior improper; give such entries a prior, "
            "e.g. with quenched.each_entry, or leave them out."
        )
    _check_rank(local, space)


def _check_rank(local: tuple[LocalTerm, ...], space: "Space") -> None:
    """Coordinates that are seen through designs alone must be told apart by them."""
    alone = np.ones(space.dim, bool)
    for term in local:
        for piece in term.pieces:
            if not piece.linear:
                alone[piece.coordinates()] = False
    columns = np.flatnonzero(alone)
    if not 0 < len(columns) <= _MOST_COLUMNS:
        return
    gram = np.zeros((len(columns), len(columns)))
    where = np.full(space.dim, -1)
    where[columns] = np.arange(len(columns))
    for term in local:
        for piece in term.pieces:
            if piece.linear:
                piece.add_gram(gram, where)
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    if values[0] < 1e-12 * len(columns):
        direction = vectors[:, 0] / scale
        order = np.argsort(-np.abs(direction))
        order = order[np.abs(direction[order]) > 0.1 * np.abs(direction[order[0]])][:3]
        names = space.coordinate_names()
        raise ValueError(
            f"sees: the designs do not tell {', '.join(names[columns[place]] for place in order)} apart (some combination of "
            "them changes no predictor), which leaves the posterior improper; give them a prior, or drop a column."
        )
