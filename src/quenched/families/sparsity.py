"""Which entries of a sparse symmetric matrix differ from zero, and where each stands."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy  # whose parts are imported when they are first asked for: they take as long as all of ours


class Eliminated(NamedTuple):
    """Unknowns that are eliminated together, each with as many neighbours; places are those of entries in `values`."""

    nodes: np.ndarray  # (e,)
    neighbours: np.ndarray  # (e, d); where there are fewer, one past the last unknown
    diagonal: np.ndarray  # (e,)
    column: np.ndarray  # (e, d)
    clique: np.ndarray  # (e, d, d)


class Border(NamedTuple):
    """Independent unknowns in front of the dense rest, with which they are coupled densely too."""

    nodes: np.ndarray
    diagonal: np.ndarray
    block: int  # place of the first of (nodes, root) entries, row by row


@dataclass(frozen=True, eq=False)
class Pattern:
    """Which entries of a symmetric matrix may differ from zero, and the order of elimination.

    Made by `make_pattern` from pairs of unknowns. `values` of a matrix are one number for every entry of the filled lower
    triangle, then the border and the root row by row, and a last one that is never read.
    """

    dim: int
    rows: np.ndarray = field(repr=False)  # the pairs it was made of: how it is written to a file
    columns: np.ndarray = field(repr=False)
    dense: tuple[int, ...] = field(repr=False)  # unknowns that stay in the root
    batches: tuple[Eliminated, ...] = field(repr=False)
    border: Border | None = field(repr=False)
    root: np.ndarray = field(repr=False)  # unknowns that remain
    keys: np.ndarray = field(repr=False)  # of the entries outside border and root: larger * dim + smaller, sorted
    place: np.ndarray = field(repr=False)  # of an unknown, in border or root; -1 for others
    digest: bytes = field(repr=False)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Pattern) and self.digest == other.digest)

    @cached_property
    def in_root(self) -> np.ndarray:
        """Which unknowns remain."""
        found = np.zeros(self.dim, bool)
        found[self.root] = True
        return found

    @property
    def all_root(self) -> bool:
        """Nothing is eliminated: LAPACK has it all, in its own order."""
        return len(self.root) == self.dim

    @cached_property
    def root_at(self) -> int:
        """Place of the first entry of the root."""
        return len(self.keys) + (0 if self.border is None else len(self.border.nodes) * len(self.root))

    @cached_property
    def size(self) -> int:
        """Numbers in `values`."""
        return self.root_at + len(self.root) ** 2 + 1

    @property
    def n_entries(self) -> int:
        """Entries of the factor."""
        r = len(self.root)
        return self.root_at + r * (r + 1) // 2

    def places(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Where the entry (i, j) stands in `values`; for what is not in the pattern, at the last place."""
        i, j = np.broadcast_arrays(np.asarray(i), np.asarray(j))
        low, high = np.minimum(i, j), np.maximum(i, j)
        r, root = len(self.root), self.in_root
        key = high.astype(np.int64) * self.dim + low
        found = np.searchsorted(self.keys, key)
        found = (
            np.where(self.keys[np.minimum(found, len(self.keys) - 1)] == key, found, self.size - 1)
            if len(self.keys)
            else np.full(key.shape, self.size - 1)
        )
        both, one = root[i] & root[j], root[i] ^ root[j]
        first, second = self.place[i], self.place[j]
        if r:
            inside = self.root_at + np.maximum(first, second) * r + np.minimum(first, second)
            found = np.where(both, inside, found)
        if self.border is not None:
            outer, inner = np.where(root[i], second, first), np.where(root[i], first, second)
            found = np.where(one & (outer >= 0), self.border.block + outer * r + inner, found)
        return found

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Places of the diagonal."""
        every = np.arange(self.dim)
        return self.places(every, every)

    def from_dense(self, matrix: np.ndarray) -> np.ndarray:
        """The values of a dense matrix with this pattern."""
        values = np.zeros(self.size)
        i, j = self.entries
        values[self.entry_places] = matrix[i, j]
        values[-1] = 0.0
        return values

    @cached_property
    def entry_places(self) -> np.ndarray:
        """Places of `entries`."""
        return self.places(*self.entries)

    @cached_property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of every entry of the lower triangle, those that are filled in included."""
        rows, columns = [self.keys // self.dim], [self.keys % self.dim]
        r = len(self.root)
        if self.border is not None:
            rows.append(np.repeat(self.border.nodes, r))
            columns.append(np.tile(self.root, len(self.border.nodes)))
        a, b = np.tril_indices(r)
        rows.append(self.root[a])
        columns.append(self.root[b])
        return np.concatenate(rows), np.concatenate(columns)

    def to_matrix(self, values: np.ndarray) -> "scipy.sparse.csr_array":
        """As a sparse matrix, both triangles."""
        return self._matrix(values, len(self.entry_places))

    def _matrix(self, values: np.ndarray, n: int) -> "scipy.sparse.csr_array":
        """With the first entries alone."""
        i, j = (part[:n] for part in self.entries)
        entries = values[self.entry_places[:n]]
        off = i != j
        rows, columns = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
        return scipy.sparse.csr_array((np.concatenate([entries, entries[off]]), (rows, columns)), (self.dim, self.dim))

    def multiply(self, values: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Matrix times vector(s): what is sparse as such, the root by BLAS."""
        r, own = len(self.root), self.root
        # BLAS reads one triangle: the lower one, which is the upper one to those who count by columns.
        columns = values[self.root_at : self.root_at + r * r].reshape(r, r).T
        (multiply,) = scipy.linalg.get_blas_funcs(("symm",), (columns,))
        inside = multiply(1.0, columns, vector[own], lower=0) if r else vector[own]
        if self.all_root:
            found = np.empty_like(inside)
            found[own] = inside
            return found
        found = self._matrix(values, self.root_at) @ vector
        found[own] += inside
        return found
