"""In which order inner coordinates are eliminated: which of them make a band, and which the border."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from quenched.nesting.algebra import Dense
from quenched.nesting.bordered import Bordered, bordered

_TRIED = 12  # sizes of the border
_WORTH = 0.5  # of the operations on dense matrices, that structure may take
_STEP = 400.0  # operations that one more pivot of a band costs besides its own


def arrange(dim: int, seen: Sequence[tuple[np.ndarray, np.ndarray]]) -> Dense | Bordered:
    """The cheapest algebra for rows that see these coordinates, (rows, few), where they really do, (rows, few)."""
    graph = _graph(dim, seen)
    best, cost = None, _WORTH * float(dim) ** 3
    for border in _borders(graph):
        inside = np.setdiff1d(np.arange(dim), border)
        own = graph[inside][:, inside].tocsr()
        order = np.asarray(reverse_cuthill_mckee(own, symmetric_mode=True))
        places = np.argsort(order)
        pairs = own.tocoo()
        width = int(np.abs(places[pairs.row] - places[pairs.col]).max(initial=0))
        own_cost = len(inside) * ((width + 1.0 + len(border)) ** 2 + _STEP) + float(len(border)) ** 3
        if own_cost < cost:
            best, cost = (np.concatenate([inside[order], border]), width, len(border)), own_cost
    return Dense(dim) if best is None else bordered(*best)


def _graph(dim: int, seen: Sequence[tuple[np.ndarray, np.ndarray]]) -> scipy.sparse.csr_matrix:
    """Which coordinates are seen together."""
    total = scipy.sparse.csr_matrix((dim, dim))
    for columns, real in seen:
        rows = np.broadcast_to(np.arange(len(columns))[:, None], columns.shape)
        sight = scipy.sparse.csr_matrix((np.ones(real.sum()), (rows[real], columns[real])), shape=(len(columns), dim))
        total = total + sight.T @ sight
    total.setdiag(1.0)
    total.data[:] = 1.0
    return total.tocsr()


def _borders(graph: scipy.sparse.csr_matrix) -> list[np.ndarray]:
    """Sets worth trying: those that go with most others, and all outside a set of which no two go together."""
    degrees = np.diff(graph.indptr)
    steps = np.unique(degrees)[::-1]
    if len(steps) > _TRIED:
        steps = steps[np.unique(np.linspace(0, len(steps) - 1, _TRIED).astype(int))]
    found = [np.flatnonzero(degrees > step) for step in steps]
    free, chosen = np.ones(len(degrees), bool), np.zeros(len(degrees), bool)
    for node in np.argsort(degrees, kind="stable"):
        if free[node]:
            chosen[node] = True
            free[graph.indices[graph.indptr[node] : graph.indptr[node + 1]]] = False
    return [*found, np.flatnonzero(~chosen)]
