"""The order of elimination: independent unknowns with few neighbours first, until what remains is dense."""

import hashlib

import numpy as np
import scipy  # whose parts are imported when they are first asked for: they take as long as all of ours

from quenched.families.sparsity import Border, Eliminated, Pattern

_DENSE = 0.25  # share of entries from which what remains is treated as dense
_FEW = 48  # unknowns that are treated as dense whatever they are
_GOLDEN = 0.6180339887498949  # its multiples fill the unit interval evenly
_GATHER = 40.0  # cost of an entry that is looked up and scattered, in multiplications by BLAS
# Numbers of neighbours that are told apart: each to the next has an eighth to a quarter more.
_SIZES = (*range(1, 8), *(step * 2**power for power in range(5) for step in (8, 10, 12, 14)), 256, 320, 384, 512)


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
        yield Eliminated(own_nodes, neighbours, pattern.places(own_nodes, own_nodes), column, clique)
