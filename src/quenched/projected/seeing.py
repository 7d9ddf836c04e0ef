"""From a covariance to what the rows of a term see of it, and from the curvature of the rows back to a precision.

A row sees v = A w. Its covariance A Σ Aᵀ needs no more of Σ than the entries at pairs of coordinates that the row sees; and
Aᵀ H A adds to a precision at no other entries. Both are looked up at places that are worked out once for a pattern.
"""

from collections.abc import Iterator

import numpy as np

from quenched.families import Factor, Pattern
from quenched.projected.pieces import Looked, Multiplied, pair_of, seen
from quenched.targets import LocalTerm


class Sight:
    """What the rows of one term see of a Gaussian whose precision has a pattern."""

    def __init__(self, term: LocalTerm, pattern: Pattern | None = None):
        self.term, self.n, self.size = term, term.n, term.size
        self.pieces = [seen(piece) for piece in term.pieces]
        self.begins = np.cumsum([0, *(piece.size for piece in self.pieces)])
        if pattern is not None:
            self.met = {(a, b): pair_of(self.pieces[a], self.pieces[b], pattern) for a, b in self._blocks()}

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
        for (a, b), pair in self.met.items():
            block = pair.covariance(precision)
            rows, columns = self._slice(a), self._slice(b)
            found[:, rows, columns] = block
            if a != b:
                found[:, columns, rows] = np.swapaxes(np.broadcast_to(block, (self.n, *block.shape[1:])), 1, 2)
        return found

    def add_curvature(self, values: np.ndarray, curvature: np.ndarray) -> None:
        """Add Σ Aᵀ H A over the rows to the values of a precision, for symmetric H (n, size, size)."""
        for (a, b), pair in self.met.items():
            pair.add(values, curvature[:, self._slice(a), self._slice(b)])
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
