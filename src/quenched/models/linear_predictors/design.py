"""Features as linear predictors see them: centred, in coordinates of their span, and with a one for the intercept.

A predictor is x·w + b. With the features centred, the intercept b (that of the mean of the features) and the weights w have
hardly anything to do with each other, whatever zero means for a feature. Weights outside the span of the rows are not seen by
any data: their posterior is the prior, and the rest is a smaller problem.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, qr

from quenched.models.linear_predictors.arguments import Array

_BLOCK = 1024  # rows at a time: their products stay in the cache, and sparse ones are written out no further
_SOME = 20  # rows per coordinate that a first look takes
_ROUNDING = 4 * np.finfo(float).eps
_SOUND = 1e-4  # smallest over largest entry of a triangular factor, up to which its digits are safe


@dataclass(frozen=True, eq=False)
class View:
    """How rows of features become rows of a problem.

    Attributes
    ----------
    n_weights
        Features, M.
    centre
        Taken off the features; a one is then appended for the intercept. None: neither.
    rotation
        (M, r), orthonormal columns that span the training rows; None: all weights, as they are.
    """

    n_weights: int
    centre: Array | None = None
    rotation: Array | None = None

    @property
    def rank(self) -> int:
        """Coordinates of the weights, r."""
        return self.n_weights if self.rotation is None else self.rotation.shape[1]

    @property
    def n_coordinates(self) -> int:
        """With the intercept, which is the last."""
        return self.rank + (self.centre is not None)

    def rows(self, features: Any) -> Array:
        """Rows of the problem, dense."""
        if self.centre is None or self.rotation is not None:
            return self._finished(self.centred(features))
        dense = features.toarray() if sparse.issparse(features) else features
        filled = np.empty((dense.shape[0], self.n_weights + 1))
        np.subtract(dense, self.centre, out=filled[:, :-1])
        filled[:, -1] = 1.0
        return filled

    def rows_and_rest(self, features: Any) -> tuple[Array, Array]:
        """Rows of the problem, and the squared length of what each has outside the span."""
        centred = self.centred(features)
        rows = self._finished(centred)
        if self.rank == self.n_weights:
            return rows, np.zeros(len(rows))
        outside = centred - self.weights(rows[:, : self.rank])
        rest, whole = np.einsum("nm,nm->n", outside, outside), np.einsum("nm,nm->n", centred, centred)
        # Rounding alone, times the variance of a weak prior, would be taken for ignorance.
        return rows, np.where(rest > (_ROUNDING * self.n_weights) ** 2 * whole, rest, 0.0)

    def weights(self, coordinates: Array) -> Array:
        """Weights of all features, of coordinates (..., r)."""
        return coordinates if self.rotation is None else coordinates @ self.rotation.T

    def centred(self, features: Any) -> Array:
        """The features, dense, less their centre."""
        dense = np.asarray(features.toarray() if sparse.issparse(features) else features, dtype=np.float64)
        return dense if self.centre is None else dense - self.centre

    def _finished(self, centred: Array) -> Array:
        rows = centred if self.rotation is None else centred @ self.rotation
        return rows if self.centre is None else _with_ones(rows)


@dataclass(frozen=True, eq=False)
class Design:
    """The rows of a problem, dense or made when they are needed, and the view that makes them."""

    view: View
    stored: Any  # the rows; or sparse features, to be viewed block by block
    weights: Array | None = None  # how often each row counts; None: once
    gram: Array | None = None  # about rowsᵀ rows, from some of the rows; None where it would lose digits

    def __len__(self) -> int:
        return self.stored.shape[0]

    @cached_property
    def counts(self) -> Array:
        """How often each row counts."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def counted(self, values: Array) -> Array:
        """Values of the rows, (N, ...), as often as each counts."""
        return values if self.weights is None else (values.T * self.weights).T

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Places, and the rows that stand there."""
        for first in range(0, len(self), _BLOCK):
            place = slice(first, first + _BLOCK)
            block = self.stored[place]
            yield place, self.view.rows(block) if sparse.issparse(block) else block

    def some(self) -> tuple["Design", slice]:
        """Every k-th of the rows, enough for a first look, each counted k times, and their places."""
        places = slice(None, None, max(1, len(self) // (_SOME * self.view.n_coordinates)))
        few = self.stored[places]
        few = few if sparse.issparse(few) else np.ascontiguousarray(few)
        share = few.shape[0] / len(self)
        return Design(self.view, few, self.counts[places] / share, self.gram), places

    def transposed_times(self, values: Array) -> Array:
        """rowsᵀ @ values."""
        if not sparse.issparse(self.stored):
            return self.stored.T @ values
        return sum((block.T @ values[place] for place, block in self.blocks()), start=np.zeros(1))

    def times(self, coordinates: Array) -> Array:
        """rows @ coordinates."""
        if not sparse.issparse(self.stored):
            return self.stored @ coordinates
        return np.concatenate([block @ coordinates for _, block in self.blocks()])

    @cached_property
    def squares(self) -> float:
        """Sum of the squared lengths of all rows, without the intercepts; by some of the rows where there are many."""
        rank = self.view.rank
        if self.gram is not None:
            return float(np.trace(self.gram[:rank, :rank]))
        lengths = lambda block: np.einsum("nm,nm->n", block[:, :rank], block[:, :rank])
        return sum(float(self.counts[place] @ lengths(block)) for place, block in self.blocks())


def lay_out(features: Any, *, intercept: bool = False, weights: Array | None = None) -> Design:
    """The problem that rows of features pose.

    Parameters
    ----------
    features
        (N, M), dense or sparse (CSR).
    intercept
        Centre the features and append a one.
    weights
        How often each row counts.
    """
    n_rows, n_weights = features.shape
    centre = _centre(features, weights) if intercept else None
    view = View(n_weights, centre)
    stored = features if sparse.issparse(features) and n_rows > n_weights else view.rows(features)
    if n_rows > n_weights:
        gram = _gram(Design(view, stored, weights))
        if sound_factor(gram) is not None:
            return Design(view, stored, weights, gram)
    # One-sided: pivots by size, so that the rank is the number of pivots above rounding.
    matrix = view.centred(features)
    found: Any = qr(matrix.T, mode="economic", pivoting=True, check_finite=False)
    rotation, triangle, order = found
    sizes = np.abs(np.diag(triangle))
    rank = max(1, int(np.sum(sizes > sizes[0] * max(matrix.shape) * np.finfo(float).eps)))
    rows = np.empty((n_rows, rank))
    rows[order] = triangle[:rank].T
    view = View(n_weights, centre, rotation[:, :rank])
    return Design(view, rows if centre is None else _with_ones(rows), weights)


def _gram(design: Design) -> Array:
    """rowsᵀ rows, each as often as it counts, from every k-th row where there are many: columns that depend do so there too."""
    some, _ = design.some()
    gram = np.zeros((design.view.n_coordinates,) * 2)
    for place, block in some.blocks():
        weighted = block * np.sqrt(some.counts[place])[:, None]
        gram += weighted.T @ weighted
    return gram


def _with_ones(rows: Array) -> Array:
    filled = np.empty((len(rows), rows.shape[1] + 1))
    filled[:, :-1], filled[:, -1] = rows, 1.0
    return filled


def _centre(features: Any, weights: Array | None) -> Array:
    if weights is None:
        return np.asarray(features.mean(axis=0), dtype=np.float64).ravel()
    return np.asarray(features.T @ weights).ravel() / np.sum(weights)


def sound_factor(matrix: Array) -> Array | None:
    """Lower Cholesky factor; None where rounding would spoil it. Coordinates may differ in size."""
    scale = np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    try:
        factor = cholesky(matrix / np.outer(scale, scale), lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    diagonal = np.diag(factor)
    return scale[:, None] * factor if np.min(diagonal) > _SOUND * np.max(diagonal) else None
