"""Which rows share their frozen draws: by what they hold and whom they meet, never by where they stand.

Rows are dealt to several scrambles. Were that done by their place, the same model with its rows in another order, or its
parameters numbered otherwise, would have other draws and another answer. So rows and coordinates are given colours, as in the test
of graphs by Weisfeiler and Leman (1968): that of a row comes from its data and the colours of what it sees, that of a coordinate
from the colours of the rows that see it, as a sum in which order does not matter; again and again, until no more are told apart.

Rows that stay alike share their draws: two groups with the same content have the same posterior. Only where very many are alike, so
that their errors would add up, are they told apart by their place, one leaf after the other, and what meets them follows. If these may
be swapped for one another with all that hangs on them, another order swaps their answers and changes nothing else. That is not so in
a model as even as a ring with the same data everywhere, nor in a chain that takes more than `_ROUNDS` links to differ.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from quenched.projected.mixing import column_sums, keys, mixed, of_values, row_sums
from quenched.projected.pieces import Looked, Multiplied
from quenched.projected.seeing import Sight

_ROUNDS = 32  # in which coordinates are told apart by what meets them
_ALIKE = (8, 1 / 16)  # so many, and such a share of a leaf, may be alike


class _Met(NamedTuple):
    """Some of what the rows of a term see, in which they differ."""

    piece: Looked | Multiplied
    leaf: str
    number: int  # of its own

    def of_coordinates(self, colours: np.ndarray) -> np.ndarray:
        """To the colour of every row, what it sees."""
        piece, own = self.piece, keys(2 * self.number, self.piece.size)
        if isinstance(piece, Multiplied):
            return row_sums(piece.design, mixed(colours[piece.positions] + own).sum(axis=1))
        seen = mixed(colours[piece.positions] + own[:, None]).sum(axis=1)
        return seen[:, 0] if piece.coefficients is None else (of_values(piece.coefficients) * seen).sum(axis=1)

    def add_rows(self, totals: np.ndarray, rows: np.ndarray) -> None:
        """To every coordinate, the colours of the rows that see it."""
        piece, own = self.piece, keys(2 * self.number + 1, self.piece.size)
        if isinstance(piece, Multiplied):
            np.add.at(totals, piece.positions, mixed(column_sums(piece.design, rows)[:, None] + own))
            return
        for place, key in enumerate(own):
            seen = mixed(rows + key)[:, None]
            seen = seen if piece.coefficients is None else seen * of_values(piece.coefficients)
            np.add.at(totals, piece.positions[:, place].ravel(), seen.ravel())


class _Rows(NamedTuple):
    """The rows of a term."""

    content: np.ndarray
    met: list[_Met]

    def colours(self, colours: np.ndarray) -> np.ndarray:
        """Of the rows, by those of the coordinates."""
        return mixed(sum((one.of_coordinates(colours) for one in self.met), self.content))

    def hands(self, colours: np.ndarray) -> np.ndarray:
        """A number for every row; rows that see the same entry, of what has the most, have numbers that follow each other.

        Rows that are alike have the same; but those that see the very same are told apart, for their sum does not depend on it.
        """
        same = _ranks(self.colours(np.arange(len(colours), dtype=np.uint64)))
        own = mixed(self.colours(colours) + same)
        looked = [one.piece for one in self.met if isinstance(one.piece, Looked) and one.piece.coefficients is None]
        columns = [piece.positions[:, 0, 0] for piece in looked]
        kinds = [np.count_nonzero(np.bincount(column)) for column in columns]
        entry = colours[columns[int(np.argmax(kinds))]] if kinds else np.zeros_like(own)
        order = np.lexsort((own, entry))
        found = np.empty(len(own), int)
        found[order] = np.cumsum(np.r_[False, own[order][1:] != own[order][:-1]])
        return found


def dealing(sights: Sequence[Sight], dim: int) -> tuple[np.ndarray, ...]:
    """For each term a number for every row: rows with the same number share their draws."""
    terms = [_rows_of(sight, place) for place, sight in enumerate(sights)]
    leaf, n_leaves = _leaves(terms, dim)
    sizes = np.bincount(leaf, minlength=n_leaves + 1)
    most = np.maximum(_ALIKE[0], _ALIKE[1] * sizes)[leaf]
    colours = _refined(terms, np.zeros(dim, np.uint64))
    for _ in range(n_leaves):
        ranks = _ranks(colours)
        if not np.any((ranks >= most) & (leaf < n_leaves)):
            break
        alike = np.bincount(leaf[ranks > 0], minlength=n_leaves + 1)[:n_leaves]
        fewest = np.argmin(np.where(alike > 0, alike, dim + 1))
        colours = _refined(terms, np.where(leaf == fewest, mixed(colours + ranks), colours))
    return tuple(rows.hands(colours) for rows in terms)


def in_turn(hands: np.ndarray, sets: int) -> np.ndarray:
    """Rows in an order in which each set of draws has its turn; -1 where a set has fewer rows than others."""
    own = (hands % sets).astype(np.uint8)
    rows = np.argsort(own, kind="stable")
    counts = np.bincount(own, minlength=sets)
    turn = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.full((int(counts.max()), sets), -1)
    found[turn, own[rows]] = rows
    return found.ravel()


def _rows_of(sight: Sight, term: int) -> _Rows:
    met, held, own = [], [sight.term.held.rows], len(sight.pieces)
    for place, (piece, seen) in enumerate(zip(sight.pieces, sight.term.sights, strict=True)):
        if isinstance(piece, Multiplied) or len(piece.positions) == sight.n > 1:
            met.append(_Met(piece, seen.leaf.name, (term << 16) + place))
        elif seen.kind == "all":  # a row may have an index, although its log density depends on all of the leaf
            held.append(sight.term.held.seen[place])
    content = np.broadcast_to(keys((term << 16) + own, 1), (sight.n,))
    for place, array in enumerate(jax.tree.leaves(held)):
        flat = np.asarray(array).reshape(sight.n, -1)
        content = content + row_sums(flat, keys((term << 16) + own + 1 + place, flat.shape[1]))
    return _Rows(content, met)


def _leaves(terms: Sequence[_Rows], dim: int) -> tuple[np.ndarray, int]:
    """The number of the leaf of every coordinate, beyond all where rows do not differ in it; and how many leaves there are."""
    all_met = [one for rows in terms for one in rows.met]
    names = list(dict.fromkeys(one.leaf for one in all_met))
    found = np.full(dim, len(names))
    for one in all_met:
        found[one.piece.positions] = names.index(one.leaf)
    return found, len(names)


def _refined(terms: Sequence[_Rows], colours: np.ndarray) -> np.ndarray:
    """Colours after as many rounds as tell more coordinates apart."""
    known = len(np.unique(colours))
    for _ in range(_ROUNDS):
        totals = colours.copy()
        for rows in terms:
            own = rows.colours(colours)
            for one in rows.met:
                one.add_rows(totals, own)
        colours, last = mixed(totals), known
        known = len(np.unique(colours))
        if known in (last, len(colours)):
            break
    return colours


def _ranks(colours: np.ndarray) -> np.ndarray:
    """Of every coordinate among those of its colour, by place."""
    order = np.argsort(colours, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(colours[order]) != 0])
    found = np.empty(len(colours), np.uint64)
    found[order] = np.arange(len(colours)) - np.repeat(first, np.diff(np.r_[first, len(colours)]))
    return found
