"""In which order inner coordinates are eliminated: which of them make a band, and which the border."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from quenched.families import full_layout
from quenched.nesting.algebra import Dense
from quenched.nesting.bordered import Bordered, bordered
from quenched.nesting.few import MOST_ENTRIES

_TRIED = 12  # sizes of the border
_WORTH = 0.95  # of what dense matrices cost, that structure may cost
# What was measured for 64 lanes, in nanoseconds:
_ENTRY = 3000.0  # all that a search does with each entry that is kept
_CUBED, _SQUARED = 6.0, 1000.0  # LAPACK's inverse, by the dimension
_BESIDE, _ALONG = 60.0, 200.0  # each pivot of a band: the border squared, and what its width is met with


def arrange(dim: int, seen: Sequence[tuple[np.ndarray, np.ndarray]]) -> Dense | Bordered:
    """The cheapest algebra for rows that see these coordinates, (rows, few), where they really do, (rows, few)."""
    graph = _graph(dim, seen)
    best, cost = None, _WORTH * (_whole(dim) + _ENTRY * dim**2)
    if full_layout(dim).n_entries > MOST_ENTRIES:  # a structure may be possible
        cost = np.inf
    for border in _borders(graph):
        inside = np.setdiff1d(np.arange(dim), border)
        own = graph[inside][:, inside].tocsr()
        order = np.asarray(reverse_cuthill_mckee(own, symmetric_mode=True))
        places = np.argsort(order)
        pairs = own.tocoo()
        width = int(np.abs(places[pairs.row] - places[pairs.col]).max(initial=0))
        own_cost = _banded(len(inside), width, len(border))
        if own_cost < cost:
            best, cost = (np.concatenate([inside[order], border]), width, len(border)), own_cost
    return Dense(dim) if best is None else bordered(*best)


def _whole(dim: float) -> float:
    """To invert a matrix without structure."""
    return _CUBED * dim**3 + _SQUARED * dim**2


def _banded(band: float, width: float, border: float) -> float:
    """To invert one with a band and a border, and to keep its entries."""
    pivot = _BESIDE * border**2 + _ALONG * (width + 1.0) * (width + 1.0 + 2.0 * border)
    return band * (pivot + _ENTRY * (2.0 * (width + border) + 1.0)) + _ENTRY * border**2 + _whole(border)


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
