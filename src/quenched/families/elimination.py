"""Sparse symmetric matrices by elimination: what is mutually independent given the rest is eliminated together.

Unknowns that meet in no entry can be eliminated at the same time. So a graph is taken apart in rounds: each takes an
independent set of unknowns with few neighbours (minimum degree, many at a time), until what remains is dense enough for
LAPACK. Groups and students go in one round, a chain in as many as its length has bits (cyclic reduction), a map about as
under nested dissection. Every step is arithmetic on arrays of indices that are made once for a pattern, in NumPy.

Of the inverse only the entries on the filled pattern are computed (Takahashi, Fagan and Chen 1973): those are all that a
sum of terms needs of a covariance.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy  # whose parts are imported when they are first asked for: they take as long as all of ours

from quenched.threads import in_one_thread

_DENSE = 0.25  # share of entries from which what remains is treated as dense
_FEW = 48  # unknowns that are treated as dense whatever they are
_GOLDEN = 0.6180339887498949  # its multiples fill the unit interval evenly
_GATHER = 40.0  # cost of an entry that is looked up and scattered, in multiplications by BLAS
_SIZES = (
    *range(1, 9),
    10,
    12,
    14,
    16,
    20,
    24,
    28,
    32,
    40,
    48,
    56,
    64,
    80,
    96,
    112,
    128,
    160,
    192,
    224,
    256,
    320,
    384,
    512,
)


class Batch(NamedTuple):
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
    batches: tuple[Batch, ...] = field(repr=False)
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
        lower = np.tril(values[self.root_at : self.root_at + r * r].reshape(r, r))
        inside = (lower + np.tril(lower, -1).T) @ vector[own]
        if r == self.dim:
            found = np.empty_like(inside)
            found[own] = inside
            return found
        found = self._matrix(values, self.root_at) @ vector
        found[own] += inside
        return found


@dataclass(frozen=True, eq=False)
class Factor:
    """A positive definite matrix, factored: pivots and multipliers of every batch, and the Cholesky factor of the root."""

    pattern: Pattern
    pivots: tuple[np.ndarray, ...]
    multipliers: tuple[np.ndarray, ...]  # column / pivot
    border: tuple[np.ndarray, np.ndarray] | None
    root: np.ndarray  # lower triangular

    @cached_property
    def log_determinant(self) -> float:
        """Of the matrix."""
        pivots = [*self.pivots, *(() if self.border is None else (self.border[0],))]
        return float(sum(np.sum(np.log(pivot)) for pivot in pivots) + 2.0 * np.sum(np.log(np.diag(self.root))))

    def solve(self, vector: np.ndarray) -> np.ndarray:
        """Matrix⁻¹ vector, for one vector (dim,) or several (dim, n)."""
        x = _padded(vector)
        self._forward(x)
        for batch, pivot in zip(self.pattern.batches, self.pivots, strict=True):
            x[batch.nodes] /= pivot[:, None]
        if self.border is not None and self.pattern.border is not None:
            x[self.pattern.border.nodes] /= self.border[0][:, None]
        root = self.pattern.root
        if len(root):
            x[root] = scipy.linalg.cho_solve((self.root, True), x[root], check_finite=False)
        self._backward(x)
        return x[:-1].reshape(np.shape(vector))

    def spread(self, z: np.ndarray) -> np.ndarray:
        """U z with U Uᵀ = matrix⁻¹: standard-normal draws (dim, n) to draws of that covariance."""
        x = _padded(z)
        for batch, pivot in zip(self.pattern.batches, self.pivots, strict=True):
            x[batch.nodes] /= np.sqrt(pivot)[:, None]
        if self.border is not None and self.pattern.border is not None:
            x[self.pattern.border.nodes] /= np.sqrt(self.border[0])[:, None]
        root = self.pattern.root
        if len(root):
            x[root] = scipy.linalg.solve_triangular(self.root, x[root], lower=True, trans=1, check_finite=False)
        self._backward(x)
        return x[:-1].reshape(np.shape(z))

    def unspread(self, points: np.ndarray) -> np.ndarray:
        """The inverse of `spread`."""
        y = _padded(points)
        x = np.zeros_like(y)
        for batch, pivot, multiplier in zip(self.pattern.batches, self.pivots, self.multipliers, strict=True):
            at = y[batch.nodes] + np.einsum("ed,edn->en", multiplier, y[batch.neighbours])
            x[batch.nodes] = np.sqrt(pivot)[:, None] * at
        root, border = self.pattern.root, self.pattern.border
        if border is not None and self.border is not None:
            x[border.nodes] = np.sqrt(self.border[0])[:, None] * (y[border.nodes] + self.border[1] @ y[root])
        if len(root):
            x[root] = self.root.T @ y[root]
        return x[:-1].reshape(np.shape(points))

    def _forward(self, x: np.ndarray) -> None:
        for batch, multiplier in zip(self.pattern.batches, self.multipliers, strict=True):
            for column in range(x.shape[1]):
                change = multiplier * x[batch.nodes, column][:, None]
                x[:, column] -= np.bincount(batch.neighbours.ravel(), change.ravel(), len(x))
            x[-1] = 0.0
        if self.border is not None and self.pattern.border is not None:
            x[self.pattern.root] -= self.border[1].T @ x[self.pattern.border.nodes]

    def _backward(self, x: np.ndarray) -> None:
        if self.border is not None and self.pattern.border is not None:
            x[self.pattern.border.nodes] -= self.border[1] @ x[self.pattern.root]
        for batch, multiplier in zip(self.pattern.batches[::-1], self.multipliers[::-1], strict=True):
            x[batch.nodes] -= np.einsum("ed,edn->en", multiplier, x[batch.neighbours])

    @cached_property
    @in_one_thread
    def inverse(self) -> np.ndarray:
        """The values of the inverse on the filled pattern."""
        pattern, r = self.pattern, len(self.pattern.root)
        values = np.zeros(pattern.size)
        inverse = np.zeros((0, 0))
        if r:
            (invert,) = scipy.linalg.get_lapack_funcs(("potri",), (self.root,))
            lower, _ = invert(self.root, lower=1)  # a third of the work of solving for the identity
            inverse = np.tril(lower) + np.tril(lower, -1).T
            values[pattern.root_at : pattern.root_at + r * r] = inverse.ravel()
        if pattern.border is not None and self.border is not None:
            pivot, multiplier = self.border
            block = -multiplier @ inverse
            values[pattern.border.block : pattern.root_at] = block.ravel()
            values[pattern.border.diagonal] = 1.0 / pivot - np.sum(block * multiplier, axis=1)
        for batch, pivot, multiplier in zip(
            pattern.batches[::-1], self.pivots[::-1], self.multipliers[::-1], strict=True
        ):
            column = -np.matmul(values[batch.clique], multiplier[:, :, None])[:, :, 0]
            values[batch.column] = column
            values[batch.diagonal] = 1.0 / pivot - np.sum(column * multiplier, axis=1)
            values[-1] = 0.0
        return values


@in_one_thread
def factor(pattern: Pattern, values: np.ndarray) -> Factor | None:
    """Factor a matrix by its values; None if it is not positive definite."""
    values = np.array(values)
    pivots, multipliers, border, r = [], [], None, len(pattern.root)
    for batch in pattern.batches:
        pivot = values[batch.diagonal]
        if not np.all(pivot > 0.0):  # also where it is NaN
            return None
        column = values[batch.column]
        multiplier = column / pivot[:, None]
        d = column.shape[1]
        a, b = np.tril_indices(d)
        change = multiplier[:, a] * column[:, b]
        places = batch.clique[:, a, b].ravel()
        if len(places) * 8 > pattern.size:
            values -= np.bincount(places, change.ravel(), pattern.size)
        else:
            np.subtract.at(values, places, change.ravel())
        values[-1] = 0.0
        pivots.append(pivot)
        multipliers.append(multiplier)
    matrix = values[pattern.root_at : pattern.root_at + r * r].reshape(r, r)
    if pattern.border is not None:
        pivot = values[pattern.border.diagonal]
        if not np.all(pivot > 0.0):
            return None
        block = values[pattern.border.block : pattern.root_at].reshape(len(pivot), r)
        multiplier = block / pivot[:, None]
        matrix = matrix - block.T @ multiplier
        border = (pivot, multiplier)
    try:
        root = scipy.linalg.cholesky(matrix, lower=True, check_finite=True) if r else np.zeros((0, 0))
    except (np.linalg.LinAlgError, ValueError):
        return None
    return Factor(pattern, tuple(pivots), tuple(multipliers), border, root)


def _padded(vector: np.ndarray) -> np.ndarray:
    """Columns with a zero after the last unknown, for neighbours that are none."""
    columns = np.asarray(vector, np.float64).reshape(len(vector), -1)
    return np.concatenate([columns, np.zeros((1, columns.shape[1]))])


# The order of elimination.


def make_pattern(dim: int, rows: np.ndarray, columns: np.ndarray, dense: np.ndarray | tuple[int, ...] = ()) -> Pattern:
    """The pattern with entries at these pairs, at the diagonal, and where elimination fills in.

    `dense` are unknowns that are coupled with nearly all others, and stay to the end.
    """
    low, high = np.minimum(rows, columns).astype(np.int64), np.maximum(rows, columns).astype(np.int64)
    pairs = np.unique(high[low != high] * dim + low[low != high])
    rows, columns = pairs // dim, pairs % dim
    graph = scipy.sparse.csr_array((np.ones(len(pairs), np.int8), (rows, columns)), (dim, dim))
    graph = (graph + graph.T).tocsr()
    kept = np.zeros(dim, bool)
    kept[np.asarray(dense, int)] = True
    stages, border_nodes, active = [], np.zeros(0, int), np.arange(dim)
    turn = 0
    while True:
        degree = np.diff(graph.indptr)
        free = ~kept[active]
        n = len(active)
        if not free.any() or n <= _FEW or graph.nnz + n > _DENSE * n * n:
            break
        turn += 1
        chosen = _independent(graph, degree, free, turn, limit=2 * degree[free].min() + 2)
        everyone = _independent(graph, degree, free, turn, limit=n)
        rest = n - len(everyone)
        dense_cost = len(everyone) * rest**2 + rest**3 / 3
        if dense_cost <= _GATHER * float(np.sum(degree[everyone].astype(float) ** 2)) + rest**3 / 3:
            border_nodes = active[everyone]
            active = np.delete(active, everyone)
            break
        left = np.setdiff1d(np.arange(n), chosen, assume_unique=True)
        across = graph[chosen][:, left].tocsr()
        stages.append((active[chosen], across, active[left]))
        filled = (across.T @ across).tocsr()
        graph = (graph[left][:, left] + filled).tocsr()
        graph.setdiag(0)
        graph.eliminate_zeros()
        graph.data = np.ones(graph.nnz, np.int8)
        active = active[left]
    return _numbered(dim, rows, columns, tuple(np.flatnonzero(kept).tolist()), stages, border_nodes, active)


def _independent(graph, degree, free, turn, limit) -> np.ndarray:
    """A large set of unknowns of which no two are neighbours, of at most this degree, those with few neighbours first."""
    n = len(degree)
    key = degree + np.modf((np.arange(n) + 1) * (2 * turn + 1) * _GOLDEN)[0]  # in no order that a graph might have
    open_, chosen = free & (degree <= limit), np.zeros(n, bool)
    while open_.any():
        rank = np.where(open_, key, np.inf)
        lowest = np.full(n, np.inf)
        filled = degree > 0
        starts = graph.indptr[:-1][filled]
        if len(graph.indices):
            lowest[filled] = np.minimum.reduceat(rank[graph.indices], starts)
        take = open_ & (rank < lowest)
        chosen |= take
        touched = np.zeros(n, bool)
        touched[graph[np.flatnonzero(take)].indices] = True
        open_ &= ~(take | touched)
    return np.flatnonzero(chosen)


def _numbered(dim, rows, columns, dense, stages, border_nodes, root) -> Pattern:
    """Give every entry its place."""
    place = np.full(dim, -1)
    place[root], place[border_nodes] = np.arange(len(root)), np.arange(len(border_nodes))
    keys = [border_nodes.astype(np.int64) * (dim + 1)]
    for nodes, across, left in stages:
        one, other = np.repeat(nodes, np.diff(across.indptr)), left[across.indices]
        keys.append(np.maximum(one, other).astype(np.int64) * dim + np.minimum(one, other))
        keys.append(nodes.astype(np.int64) * (dim + 1))
    keys = np.unique(np.concatenate(keys))
    text = b"".join(
        np.ascontiguousarray(part, np.int64).tobytes()
        for part in (np.array([dim]), rows, columns, np.array(dense, int))
    )
    digest = hashlib.blake2b(text, digest_size=16).digest()
    border = Border(border_nodes, np.zeros(0, int), len(keys)) if len(border_nodes) else None
    bare = Pattern(dim, rows, columns, dense, (), border, np.asarray(root), keys, place, digest)
    batches = tuple(batch for stage in stages for batch in _batches(bare, *stage))
    if border is not None:
        border = border._replace(diagonal=bare.places(border_nodes, border_nodes))
    return Pattern(dim, rows, columns, dense, batches, border, np.asarray(root), keys, place, digest)


def _batches(pattern: Pattern, nodes: np.ndarray, across, left: np.ndarray):
    """The unknowns of one round, by how many neighbours they have."""
    degree = np.diff(across.indptr)
    sizes = np.array([*_SIZES, max(int(degree.max(initial=0)), 1)])
    kinds = np.minimum(sizes[np.searchsorted(sizes[:-1], degree)], sizes[-1])
    for size in np.unique(kinds):
        some = np.flatnonzero(kinds == size)
        neighbours = np.full((len(some), size), pattern.dim)
        own = np.repeat(np.arange(len(some)), degree[some])
        part = across[some]
        at = np.arange(part.nnz) - np.repeat(part.indptr[:-1], np.diff(part.indptr))
        neighbours[own, at] = left[part.indices]
        absent, safe = neighbours == pattern.dim, np.minimum(neighbours, pattern.dim - 1)
        own_nodes, last = nodes[some], pattern.size - 1
        column = np.where(absent, last, pattern.places(own_nodes[:, None], safe))
        clique = pattern.places(safe[:, :, None], safe[:, None, :])
        clique = np.where(absent[:, :, None] | absent[:, None, :], last, clique)
        yield Batch(own_nodes, neighbours, pattern.places(own_nodes, own_nodes), column, clique)
