"""What a row sees, piece by piece, and of two pieces their covariance and what their curvature adds to a precision.

A piece is looked up (a few coordinates of each row) or multiplied (a dense design times coordinates that all rows share). Of a
piece with itself, one triangle stands for both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from quenched.families import Factor, Pattern
from quenched.targets import Piece, SparseRows


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


def seen(piece: Piece) -> Looked | Multiplied:
    """A piece of a term as it is seen."""
    design = piece.design
    if isinstance(design, SparseRows):
        return Looked(piece.positions[design.columns].swapaxes(1, 2), design.values)
    if design is not None:
        return Multiplied(np.asarray(design), piece.positions)
    return Looked((piece.positions[None] if piece.shared else piece.positions)[:, :, None])


@dataclass(frozen=True, eq=False)
class LookedPair:
    """Two pieces that are looked up; `places` (rows, size * k of one, size * k of the other)."""

    one: Looked
    other: Looked
    places: np.ndarray

    @cached_property
    def _twice(self) -> np.ndarray | None:
        """Where two entries of a row are the same coordinate: they meet at one place, from both sides."""
        same = self.one.flat[:, :, None] == self.other.flat[:, None, :]
        if self.one is self.other:
            lower, upper = np.tril_indices(same.shape[1])
            same = same[:, lower, upper] & (lower != upper)
        return np.where(same, 2.0, 1.0) if same.any() else None

    def covariance(self, precision: Factor) -> np.ndarray:
        """(rows, size of one, size of the other)."""
        one, other = self.one, self.other
        if one is other and one.flat.shape[1] == 1:
            found = precision.variances[one.flat]
            return (found if one.coefficients is None else found * one.coefficients**2)[:, :, None]
        block = precision.inverse[self.places].reshape(-1, one.size, one.k, other.size, other.k)
        if one.coefficients is not None:
            block = np.einsum("nskto,nk->nsto", block, one.coefficients)[:, :, None]
        if other.coefficients is not None:
            block = np.einsum("nskto,no->nskt", block, other.coefficients)[..., None]
        return block[:, :, 0, :, 0]

    def add(self, values: np.ndarray, curvature: np.ndarray) -> None:
        """To the values of a precision."""
        one, other, places = self.one, self.other, self.places
        if len(places) < len(curvature):  # all rows see the same
            curvature = curvature.sum(axis=0, keepdims=True)
        weights = curvature[:, :, None, :, None]
        if one.coefficients is not None:
            weights = weights * one.coefficients[:, None, :, None, None]
        if other.coefficients is not None:
            weights = weights * other.coefficients[:, None, None, None, :]
        weights = weights.reshape(len(weights), one.size * one.k, other.size * other.k)
        if one is other:
            lower, upper = np.tril_indices(weights.shape[1])
            weights, places = weights[:, lower, upper], places[:, lower, upper]
        _scatter(values, places, weights if self._twice is None else weights * self._twice)


@dataclass(frozen=True, eq=False)
class MultipliedPair:
    """Two pieces behind dense designs; `places` (columns of one, its size, columns of the other, its size)."""

    one: Multiplied
    other: Multiplied
    places: np.ndarray
    whole: bool  # a piece with itself that sees all coordinates

    def _numbers(self):
        """Pairs of numbers of which the other triangle is known."""
        for s in range(self.one.size):
            for t in range(s + 1 if self.one is self.other else self.other.size):
                yield s, t

    @cached_property
    def _lower(self) -> np.ndarray:
        n = len(self.one.positions)
        return np.ravel_multi_index(np.tril_indices(n), (n, n))

    def covariance(self, precision: Factor) -> np.ndarray:
        one, other = self.one, self.other
        if self.whole:
            half = precision.half(one.design).T  # no inverse is needed
            return np.einsum("nm,nm->n", half, half)[:, None, None]
        block, found = precision.inverse[self.places], np.empty((len(one.design), one.size, other.size))
        for s, t in self._numbers():
            found[:, s, t] = np.einsum("nm,nm->n", one.design @ block[:, s, :, t], other.design)
            if one is other:
                found[:, t, s] = found[:, s, t]
        return found

    def add(self, values: np.ndarray, curvature: np.ndarray) -> None:
        one, other = self.one, self.other
        if self.whole:  # above its diagonal nobody looks
            values[:-1] += _square(one.design, curvature[:, 0, 0]).ravel()
            return
        for s, t in self._numbers():
            places = self.places[:, s, :, t]
            if one is other and s == t:
                product = _square(one.design, curvature[:, s, s])
                _scatter(values, places.ravel()[self._lower], product.ravel()[self._lower])
            else:
                _scatter(values, places, one.design.T @ (curvature[:, s, t, None] * other.design))


@dataclass(frozen=True, eq=False)
class MixedPair:
    """A dense design, and what is looked up: `places` (coordinates of the other, columns, size of one).

    `at` says which of those coordinates the other sees, (rows, its size * k).
    """

    one: Multiplied
    other: Looked
    places: np.ndarray
    at: np.ndarray

    def covariance(self, precision: Factor) -> np.ndarray:
        one, other, at = self.one, self.other, self.at
        across = precision.inverse[self.places]
        found = np.empty((len(one.design), one.size, other.size))
        for s in range(one.size):
            of_each = [self._across(across[:, :, s], at[:, j]) for j in range(at.shape[1])]
            seen = np.stack(of_each, axis=1).reshape(-1, other.size, other.k)
            found[:, s] = (
                seen[:, :, 0] if other.coefficients is None else np.einsum("ntk,nk->nt", seen, other.coefficients)
            )
        return found

    def _across(self, across: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Of each row of the design with one coordinate, which is the same for all rows or one for each."""
        design = self.one.design
        return np.sum(design * across[at], axis=1) if len(at) > 1 else design @ across[at[0]]

    def add(self, values: np.ndarray, curvature: np.ndarray) -> None:
        design, other, at = self.one.design, self.other, self.at
        for s in range(self.one.size):
            for j in range(at.shape[1]):
                t, k = divmod(j, other.k)
                weights = curvature[:, s, t]
                if other.coefficients is not None:
                    weights = weights * other.coefficients[:, k]
                if len(at) == 1:
                    _scatter(values, self.places[at[0, j], :, s], design.T @ weights)
                    continue
                rows = np.arange(len(design))
                chosen = scipy.sparse.csr_array((weights, (at[:, j], rows)), (len(self.places), len(design)))
                _scatter(values, self.places[:, :, s], chosen @ design)


Pair = LookedPair | MultipliedPair | MixedPair


def pair_of(one: Looked | Multiplied, other: Looked | Multiplied, pattern: Pattern) -> Pair:
    """Two pieces, or one with itself; a dense design comes first."""
    places: Callable[..., np.ndarray] = pattern.places
    if isinstance(one, Looked):
        assert isinstance(other, Looked)
        return LookedPair(one, other, places(one.flat[:, :, None], other.flat[:, None, :]))
    if isinstance(other, Multiplied):
        found = places(one.positions[:, :, None, None], other.positions[None, None])
        return MultipliedPair(one, other, found, one is other and one.sees_all(pattern))
    unique, at = np.unique(other.flat, return_inverse=True)
    return MixedPair(one, other, places(unique[:, None, None], one.positions[None]), at.reshape(other.flat.shape))


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
