"""From a covariance to what the rows of a term see of it, and from the curvature of the rows back to a precision.

A row sees v = A w. Its covariance A Σ Aᵀ needs no more of Σ than the entries at pairs of coordinates that the row sees; and
Aᵀ H A adds to a precision at no other entries. Both are looked up at places that are worked out once for a pattern.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy

from quenched.families import Factor, Pattern
from quenched.targets import LocalTerm, Piece, SparseRows


@dataclass(frozen=True, eq=False)
class Looked:
    """Numbers that are few coordinates of w, or a few of them times coefficients.

    `positions` (rows, size, k); `coefficients` (rows, k) or None where k is one. One row stands for all if all are alike.
    """

    positions: np.ndarray
    coefficients: np.ndarray | None = None

    @property
    def size(self) -> int:
        return self.positions.shape[1]

    @property
    def flat(self) -> np.ndarray:
        """Positions as (rows, size * k)."""
        return self.positions.reshape(len(self.positions), -1)

    @property
    def k(self) -> int:
        return self.positions.shape[2]

    def means(self, vector: np.ndarray) -> np.ndarray:
        found = vector[self.positions]
        return found[:, :, 0] if self.coefficients is None else np.einsum("nsk,nk->ns", found, self.coefficients)


@dataclass(frozen=True, eq=False)
class Multiplied:
    """Numbers that are the rows of a dense design times coordinates: `positions` (columns, size)."""

    design: np.ndarray
    positions: np.ndarray

    @property
    def size(self) -> int:
        return self.positions.shape[1]

    def means(self, vector: np.ndarray) -> np.ndarray:
        return self.design @ vector[self.positions]

    def sees_all(self, pattern: Pattern) -> bool:
        """One number a row, of all coordinates in their order, of which none is eliminated."""
        return pattern.all_root and self.size == 1 and np.array_equal(self.positions[:, 0], np.arange(pattern.dim))


def _seen(piece: Piece) -> Looked | Multiplied:
    design = piece.design
    if isinstance(design, SparseRows):
        return Looked(piece.positions[design.columns].swapaxes(1, 2), design.values)
    if design is not None:
        return Multiplied(np.asarray(design), piece.positions)
    return Looked((piece.positions[None] if piece.shared else piece.positions)[:, :, None])


class Sight:
    """What the rows of one term see of a Gaussian whose precision has a pattern."""

    def __init__(self, term: LocalTerm, pattern: Pattern | None = None):
        self.term, self.n, self.size = term, term.n, term.size
        self.pieces = [_seen(piece) for piece in term.pieces]
        self.begins = np.cumsum([0, *(piece.size for piece in self.pieces)])
        if pattern is not None:
            self.pattern = pattern
            self.places = dict(self._places())

    def pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs of coordinates that meet in some row."""
        for a, b in self._blocks():
            one, other = self.pieces[a], self.pieces[b]
            if isinstance(one, Looked) and isinstance(other, Looked):
                i, j = np.broadcast_arrays(one.flat[:, :, None], other.flat[:, None, :])
            else:
                i, j = np.broadcast_arrays(self._coordinates(one)[:, None], self._coordinates(other)[None, :])
            yield i.ravel(), j.ravel()

    def hubs(self) -> np.ndarray:
        """Coordinates that all rows see, while they differ in others."""
        alike = [isinstance(piece, Multiplied) or len(piece.positions) == 1 < self.n for piece in self.pieces]
        found = [self._coordinates(piece) for piece, one in zip(self.pieces, alike, strict=True) if one]
        return np.concatenate([np.zeros(0, int), *found])

    def single(self, chosen: np.ndarray) -> np.ndarray:
        """Which of the numbers are coordinates as they stand, of those that are chosen, (size,)."""
        alone = [
            isinstance(piece, Looked) and piece.coefficients is None and bool(chosen[piece.positions].any())
            for piece in self.pieces
        ]
        return np.repeat(alone, np.diff(self.begins))

    def combined(self) -> np.ndarray:
        """Coordinates that are seen through a design."""
        found = [piece for piece in self.pieces if isinstance(piece, Multiplied) or piece.coefficients is not None]
        return np.concatenate([np.zeros(0, int), *map(self._coordinates, found)])

    @property
    def n_weights(self) -> int:
        """Coordinates behind dense designs."""
        return sum(piece.positions.size for piece in self.pieces if isinstance(piece, Multiplied))

    def means(self, vector: np.ndarray) -> np.ndarray:
        """(n, size)."""
        found = [np.broadcast_to(piece.means(vector), (self.n, piece.size)) for piece in self.pieces]
        return np.concatenate(found, axis=1)

    def gradient(self, slopes: np.ndarray, dim: int) -> np.ndarray:
        """Σ Aᵀ slope over the rows, (dim,)."""
        total = np.zeros(dim)
        for piece, first in zip(self.pieces, self.begins, strict=False):
            own = slopes[:, first : first + piece.size]
            if isinstance(piece, Multiplied):
                np.add.at(total, piece.positions, piece.design.T @ own)
                continue
            if len(piece.positions) < len(own) and piece.coefficients is None:
                own = own.sum(axis=0, keepdims=True)
            weights = own[:, :, None] if piece.coefficients is None else own[:, :, None] * piece.coefficients[:, None]
            where = np.broadcast_to(piece.positions, weights.shape)
            total += np.bincount(where.ravel(), weights.ravel(), dim)
        return total

    def covariances(self, precision: Factor) -> np.ndarray:
        """(n, size, size), from a precision that is factored."""
        found = np.empty((self.n, self.size, self.size))
        for a, b in self._blocks():
            block = self._covariance(a, b, precision)
            rows, columns = self._slice(a), self._slice(b)
            found[:, rows, columns] = block
            if a != b:
                found[:, columns, rows] = np.swapaxes(np.broadcast_to(block, (self.n, *block.shape[1:])), 1, 2)
        return found

    def add_curvature(self, values: np.ndarray, curvature: np.ndarray) -> None:
        """Add Σ Aᵀ H A over the rows to the values of a precision, for symmetric H (n, size, size)."""
        for a, b in self._blocks():
            self._add(a, b, values, curvature[:, self._slice(a), self._slice(b)])
        values[-1] = 0.0

    # Pairs of pieces.

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """The later piece first; dense designs before what is looked up."""
        for a in range(len(self.pieces)):
            for b in range(a + 1):
                swap = isinstance(self.pieces[b], Multiplied) and not isinstance(self.pieces[a], Multiplied)
                yield (b, a) if swap else (a, b)

    def _slice(self, piece: int) -> slice:
        return slice(int(self.begins[piece]), int(self.begins[piece + 1]))

    @staticmethod
    def _coordinates(piece: Looked | Multiplied) -> np.ndarray:
        return np.unique(piece.positions)

    def _places(self) -> Iterator[tuple[tuple[int, int], tuple]]:
        places = self.pattern.places
        for a, b in self._blocks():
            one, other = self.pieces[a], self.pieces[b]
            if isinstance(one, Looked) and isinstance(other, Looked):
                found = places(one.flat[:, :, None], other.flat[:, None, :])
                doubled = one.flat[:, :, None] == other.flat[:, None, :]
                twice = np.where(doubled, 2.0, 1.0) if a != b and doubled.any() else None
                if a == b:
                    lower, upper = np.tril_indices(found.shape[1])
                    same = one.flat[:, lower] == one.flat[:, upper]
                    twice = np.where(same & (lower != upper), 2.0, 1.0) if (same & (lower != upper)).any() else None
                yield (a, b), (found, twice)
            elif isinstance(one, Multiplied) and isinstance(other, Multiplied):
                found = places(one.positions[:, :, None, None], other.positions[None, None])
                lower = np.ravel_multi_index(np.tril_indices(len(one.positions)), 2 * (len(one.positions),))
                yield (a, b), (found, lower)
            elif isinstance(one, Multiplied) and isinstance(other, Looked):
                unique, at = np.unique(other.flat, return_inverse=True)
                at = at.reshape(other.flat.shape)
                yield (a, b), (places(unique[:, None, None], one.positions[None]), at)

    def _covariance(self, a: int, b: int, precision: Factor) -> np.ndarray:
        one, other, known = self.pieces[a], self.pieces[b], self.places[a, b]
        if isinstance(one, Looked) and a == b and one.flat.shape[1] == 1:
            found = precision.variances[one.flat]
            return (found if one.coefficients is None else found * one.coefficients**2)[:, :, None]
        if isinstance(one, Multiplied) and a == b and one.sees_all(self.pattern):
            half = precision.half(one.design).T  # no inverse is needed
            return np.einsum("nm,nm->n", half, half)[:, None, None]
        values = precision.inverse
        if isinstance(one, Looked) and isinstance(other, Looked):
            block = values[known[0]].reshape(-1, one.size, one.k, other.size, other.k)
            if one.coefficients is not None:
                block = np.einsum("nskto,nk->nsto", block, one.coefficients)[:, :, None]
            if other.coefficients is not None:
                block = np.einsum("nskto,no->nskt", block, other.coefficients)[..., None]
            return block[:, :, 0, :, 0]
        assert isinstance(one, Multiplied)
        if isinstance(other, Multiplied):
            block, found = values[known[0]], np.empty((self.n, one.size, other.size))
            for s in range(one.size):
                for t in range(s + 1 if a == b else other.size):
                    found[:, s, t] = np.einsum("nm,nm->n", one.design @ block[:, s, :, t], other.design)
                    if a == b:
                        found[:, t, s] = found[:, s, t]
            return found
        places, at = known
        across = values[places]  # (unique, columns, size)
        found = np.empty((self.n, one.size, other.size))
        for s in range(one.size):
            by_atom = [
                np.sum(one.design * across[at[:, j], :, s], axis=1)
                if len(at) > 1
                else one.design @ across[at[0, j], :, s]
                for j in range(at.shape[1])
            ]
            atoms = np.stack(by_atom, axis=1).reshape(self.n, other.size, other.k)
            found[:, s] = (
                atoms[:, :, 0] if other.coefficients is None else np.einsum("ntk,nk->nt", atoms, other.coefficients)
            )
        return found

    def _add(self, a: int, b: int, values: np.ndarray, block: np.ndarray) -> None:
        one, other, known = self.pieces[a], self.pieces[b], self.places[a, b]
        if isinstance(one, Looked) and isinstance(other, Looked):
            places, twice = known
            if len(places) < len(block):  # all rows see the same
                block = block.sum(axis=0, keepdims=True)
            weights = block[:, :, None, :, None]
            if one.coefficients is not None:
                weights = weights * one.coefficients[:, None, :, None, None]
            if other.coefficients is not None:
                weights = weights * other.coefficients[:, None, None, None, :]
            weights = weights.reshape(len(weights), one.size * one.k, other.size * other.k)
            if a == b:
                lower, upper = np.tril_indices(weights.shape[1])
                weights, places = weights[:, lower, upper], places[:, lower, upper]
            _scatter(values, places, weights if twice is None else weights * twice)
            return
        assert isinstance(one, Multiplied)
        for s in range(one.size):
            if isinstance(other, Multiplied):
                for t in range(other.size if a != b else s + 1):
                    places = known[0][:, s, :, t]
                    if a == b and one.sees_all(self.pattern):  # above its diagonal nobody looks
                        values[:-1] += _square(one.design, block[:, 0, 0]).ravel()
                    elif a == b and s == t:  # one triangle stands for both
                        product, places = _square(one.design, block[:, s, s]), places.ravel()[known[1]]
                        _scatter(values, places, product.ravel()[known[1]])
                    else:
                        _scatter(values, places, one.design.T @ (block[:, s, t, None] * other.design))
                continue
            places, at = known
            for j in range(at.shape[1]):
                t, k = divmod(j, other.k)
                weights = block[:, s, t] if other.coefficients is None else block[:, s, t] * other.coefficients[:, k]
                if len(at) == 1:
                    _scatter(values, places[at[0, j], :, s], one.design.T @ weights)
                    continue
                chosen = scipy.sparse.csr_array((weights, (at[:, j], np.arange(self.n))), (len(places), self.n))
                _scatter(values, places[:, :, s], chosen @ one.design)


def _square(design: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """designᵀ diag(weights) design; half the work where no weight is negative, for BLAS knows a square."""
    if weights.min() < 0.0:
        return design.T @ (weights[:, None] * design)
    half = np.sqrt(weights)[:, None] * design
    return half.T @ half


def _scatter(values: np.ndarray, places: np.ndarray, weights: np.ndarray) -> None:
    if 4 * places.size > len(values):
        values += np.bincount(places.ravel(), weights.ravel(), len(values))
    else:
        np.add.at(values, places, weights)
