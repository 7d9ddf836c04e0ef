"""What each row sees on the real line: a few numbers that are linear in the raveled vector w.

Row n of a term sees v_n = A_n w, `size` numbers: coordinates of w that an index names, coordinates that all rows share, and
linear predictors. So a Gaussian over w is, for the row, the Gaussian N(A_n m, A_n Σ A_nᵀ) over v_n; and the log density of
the row is `log_density(v_n, ...)`, transforms included. The log-Jacobian of the transforms is a sum of terms of its own.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.targets.terms.sees import SparseRows
from quenched.targets.terms.terms import Given, Held, Part, Term, Terms, see

if TYPE_CHECKING:
    from quenched.transforms import Leaf, Space


class Piece(NamedTuple):
    """Some of the numbers that a row sees, on the host.

    Attributes
    ----------
    positions
        Coordinates of w: (rows, size) if every row sees its own; (size,) if all rows see the same; and (columns, size) for
        linear predictors, the columns that the design multiplies.
    design
        (rows, columns) or `SparseRows`; None for what is seen as it is.
    shared
        All rows see the same coordinates.
    """

    positions: np.ndarray
    design: Any = None
    shared: bool = False

    @property
    def linear(self) -> bool:
        """Whether it is a linear predictor, rather than coordinates of w themselves."""
        return self.design is not None

    @property
    def size(self) -> int:
        """Numbers that a row sees."""
        return self.positions.shape[-1]

    def gather(self, vector: np.ndarray) -> np.ndarray:
        """The numbers of all rows, (rows, size); (size,) if all rows see the same."""
        if isinstance(self.design, SparseRows):
            return np.einsum("nk,nks->ns", self.design.values, vector[self.positions[self.design.columns]])
        return vector[self.positions] if self.design is None else self.design @ vector[self.positions]

    def coordinates(self) -> np.ndarray:
        """The coordinates of w that some row sees."""
        if isinstance(self.design, SparseRows):
            return np.unique(self.positions[np.unique(self.design.columns[self.design.values != 0.0])])
        if self.design is not None:
            return np.unique(self.positions[np.any([self.design.max(axis=0), self.design.min(axis=0)], axis=0)])
        return np.unique(self.positions)

    def add_gram(self, gram: np.ndarray, where: np.ndarray) -> None:
        """Add Σ_n x_n x_nᵀ of the design, for each of its numbers; `where` places coordinates in the matrix, -1 outside."""
        dense = self.design
        if isinstance(dense, SparseRows):
            dense = np.zeros((len(self.design.values), len(self.positions)))
            np.add.at(dense, (np.arange(len(dense))[:, None], self.design.columns), self.design.values)
        for column in self.positions.T:
            inside = where[column] >= 0
            own = dense[:, inside]
            gram[np.ix_(where[column][inside], where[column][inside])] += own.T @ own


class SeenLeaf(NamedTuple):
    """How the numbers of one piece become what the function sees of a leaf."""

    part: Part
    leaf: "Leaf"
    kind: str  # "entries" of the leaf, "all" of it, or "linear" predictors
    size: int


@dataclass(frozen=True)
class LocalTerm:
    """A term on the real line. `n` rows see `size` numbers each.

    Attributes
    ----------
    term
        None for the log-Jacobian of a leaf.
    sights
        What becomes of the numbers, piece by piece.
    pieces
        Which numbers they are.
    held
        The arrays of the term, with an index for every part that has entries.
    """

    term: Term | None
    sights: tuple[SeenLeaf, ...]
    pieces: tuple[Piece, ...]
    held: Held
    n: int

    @property
    def size(self) -> int:
        """Numbers that a row sees."""
        return sum(piece.size for piece in self.pieces)

    def gather(self, vector: np.ndarray) -> np.ndarray:
        """A_n w for every row, (n, size), on the host."""
        found = [np.broadcast_to(piece.gather(vector), (self.n, piece.size)) for piece in self.pieces]
        return np.concatenate(found, axis=1)

    def log_density(self, numbers: Array, own: Held, data: Any = None, hyper: Any = None) -> Array:
        """The log density of one row at the numbers it sees, (size,); `own` are its arrays (`held` of that row).

        JAX can trace and map it: over rows along the first axis of `numbers` and `own`, and over draws of the numbers.
        """
        return log_density_of(self.term, self.sights, numbers, own, data, hyper)


def log_density_of(
    term: Term | None, sights: tuple[SeenLeaf, ...], numbers: Array, own: Held, data: Any = None, hyper: Any = None
) -> Array:
    """What `LocalTerm.log_density` is, of structure alone."""
    ends = np.cumsum([sight.size for sight in sights])[:-1]
    pieces = jnp.split(numbers, ends)
    if term is None:
        sight, piece = sights[0], pieces[0]
        return sight.leaf.transform.log_jacobian(piece.reshape(_entry_shape(sight.leaf, (), 1)))
    seen = {
        sight.part.leaf: _natural(sight, piece, what)
        for sight, piece, what in zip(sights, pieces, own.seen, strict=True)
    }
    return term.of_row(seen, own.rows, Given(data, hyper)).astype(numbers.dtype)


def local_terms(
    terms: Terms, held: tuple[Held, ...], space: "Space", *, jacobian: bool = True
) -> tuple[LocalTerm, ...]:
    """All terms on the real line; with the log-Jacobians of constrained leaves as terms of their own."""
    leaves = leaves_seen(terms, space)
    named = {leaf.name: (leaf, positions) for leaf, positions in zip(leaves, _positions(space), strict=True)}
    found = [_local(term, own, named) for term, own in zip(terms.terms, held, strict=True)]
    if jacobian and not terms.on_real_line:
        found += [_jacobian(leaf, positions) for leaf, positions in named.values() if _constrained(leaf)]
    return tuple(found)


def leaves_seen(terms: Terms, space: "Space") -> "tuple[Leaf, ...]":
    """The leaves as the functions of a sum see them: in natural units, or on the real line."""
    return space.real_leaves if terms.on_real_line else space.leaves


def _positions(space: "Space") -> list[np.ndarray]:
    """The coordinates of every leaf, in its shape on the real line."""
    begins = np.cumsum([0, *space.sizes])
    return [np.arange(begins[i], begins[i + 1]).reshape(leaf.real_shape) for i, leaf in enumerate(space.leaves)]


def _constrained(leaf: "Leaf") -> bool:
    return type(leaf.transform).__name__ != "Real"


def _goes_by_entries(leaf: "Leaf") -> bool:
    """Entries along the first axis do not depend on each other."""
    return len(leaf.shape) > leaf.transform.axes


def _local(term: Term, held: Held, named: dict[str, tuple["Leaf", np.ndarray]]) -> LocalTerm:
    n = term.n_rows({name: leaf.shape[0] for name, (leaf, _) in named.items() if leaf.shape})
    sights, pieces, seen = [], [], []
    for part, own in zip(term.parts, held.seen, strict=True):
        leaf, positions = named[part.leaf]
        own = np.arange(n) if part.kind == "each_entry" else own
        if part.kind == "dot" and not _constrained(leaf):
            piece, kind = Piece(positions.reshape(len(positions), -1), design=own), "linear"
        elif part.kind in ("index", "each_entry") and _goes_by_entries(leaf):
            piece, kind = Piece(positions[own].reshape(n, -1)), "entries"
        else:
            piece, kind = Piece(positions.reshape(-1), shared=True), "all"
        sights.append(SeenLeaf(part, leaf, kind, piece.size))
        pieces.append(piece)
        seen.append(None if kind == "linear" else own)
    return LocalTerm(term, tuple(sights), tuple(pieces), Held(held.rows, tuple(seen)), n)


def _jacobian(leaf: "Leaf", positions: np.ndarray) -> LocalTerm:
    """One row for every group of entries that depend on each other."""
    own = max(leaf.transform.axes, 0)
    groups = positions.reshape(int(np.prod(leaf.shape[: len(leaf.shape) - own])), -1)
    part, piece = Part(leaf.name, "each_entry"), Piece(groups)
    return LocalTerm(None, (SeenLeaf(part, leaf, "entries", piece.size),), (piece,), Held(None, (None,)), len(groups))


def _natural(sight: SeenLeaf, numbers: Array, own: Any) -> Array:
    leaf = sight.leaf
    if sight.kind == "linear":
        return numbers.reshape(leaf.shape[1:])
    if sight.kind == "all":
        return see(sight.part, leaf.transform.to_natural(numbers.reshape(leaf.real_shape)), own)
    entries = jnp.shape(own)
    real = numbers.reshape(_entry_shape(leaf, entries, 0))
    return leaf.transform.entries_to_natural(real, leaf.shape, own)


def _entry_shape(leaf: "Leaf", entries: tuple[int, ...], whole: int) -> tuple[int, ...]:
    """On the real line: of some entries along the first axis; or, with `whole`, of a group that depends on itself."""
    if whole:
        axes = leaf.transform.axes
        return leaf.real_shape[len(leaf.shape) - axes :] if axes else ()
    return (*entries, *leaf.real_shape[1:])
