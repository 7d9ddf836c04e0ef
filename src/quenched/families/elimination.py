"""Sparse symmetric matrices by elimination: what is mutually independent given the rest is eliminated together.

Unknowns that meet in no entry can be eliminated at the same time. So a graph is taken apart in rounds: each takes an
independent set of unknowns with few neighbours (minimum degree, many at a time), until what remains is dense enough for
LAPACK. Groups and students go in one round, a chain in as many as its length has bits (cyclic reduction), a map about as
under nested dissection. Every step is arithmetic on arrays of indices that are made once for a pattern, in NumPy.

Of the inverse only the entries on the filled pattern are computed (Takahashi, Fagan and Chen 1973): those are all that a
sum of terms needs of a covariance.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy  # whose parts are imported when they are first asked for: they take as long as all of ours

from quenched.families.sparsity import Border, Pattern
from quenched.threads import in_one_thread

_SMALL = 256  # unknowns of a triangle that is inverted at once


class FactoredBorder(NamedTuple):
    """The last batch before the root: its unknowns, pivots and multipliers."""

    of: Border
    pivot: np.ndarray
    multiplier: np.ndarray


@dataclass(frozen=True, eq=False)
class Factor:
    """A positive definite matrix, factored: pivots and multipliers of every batch, and the Cholesky factor of the root."""

    pattern: Pattern
    pivots: tuple[np.ndarray, ...]
    multipliers: tuple[np.ndarray, ...]  # column / pivot
    border: FactoredBorder | None
    root: np.ndarray  # lower triangular

    @cached_property
    def log_determinant(self) -> float:
        """Of the matrix."""
        pivots = [*self.pivots, *(() if self.border is None else (self.border.pivot,))]
        return float(sum(np.sum(np.log(pivot)) for pivot in pivots) + 2.0 * np.sum(np.log(np.diag(self.root))))

    def solve(self, vector: np.ndarray) -> np.ndarray:
        """Matrix⁻¹ vector, for one vector (dim,) or several (dim, n)."""
        x = _padded(vector)
        self._forward(x)
        for batch, pivot in zip(self.pattern.batches, self.pivots, strict=True):
            x[batch.nodes] /= pivot[:, None]
        if self.border is not None:
            x[self.border.of.nodes] /= self.border.pivot[:, None]
        root = self.pattern.root
        if len(root):
            x[root] = scipy.linalg.cho_solve((self.root, True), x[root], check_finite=False)
        self._backward(x)
        return x[:-1].reshape(np.shape(vector))

    def spread(self, z: np.ndarray) -> np.ndarray:
        """U z with U Uᵀ = matrix⁻¹: standard-normal draws (dim, n) to draws of that covariance."""
        if self.pattern.all_root:
            return _multiply(self.root_inverse, z.reshape(len(z), -1), trans_a=1).reshape(np.shape(z))
        x = _padded(z)
        for batch, pivot in zip(self.pattern.batches, self.pivots, strict=True):
            x[batch.nodes] /= np.sqrt(pivot)[:, None]
        if self.border is not None:
            x[self.border.of.nodes] /= np.sqrt(self.border.pivot)[:, None]
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
        root, border = self.pattern.root, self.border
        if border is not None:
            x[border.of.nodes] = np.sqrt(border.pivot)[:, None] * (y[border.of.nodes] + border.multiplier @ y[root])
        if len(root):
            x[root] = self.root.T @ y[root]
        return x[:-1].reshape(np.shape(points))

    def _forward(self, x: np.ndarray) -> None:
        for batch, multiplier in zip(self.pattern.batches, self.multipliers, strict=True):
            for column in range(x.shape[1]):
                change = multiplier * x[batch.nodes, column][:, None]
                x[:, column] -= np.bincount(batch.neighbours.ravel(), change.ravel(), len(x))
            x[-1] = 0.0
        if self.border is not None:
            x[self.pattern.root] -= self.border.multiplier.T @ x[self.border.of.nodes]

    def _backward(self, x: np.ndarray) -> None:
        if self.border is not None:
            x[self.border.of.nodes] -= self.border.multiplier @ x[self.pattern.root]
        for batch, multiplier in zip(self.pattern.batches[::-1], self.multipliers[::-1], strict=True):
            x[batch.nodes] -= np.einsum("ed,edn->en", multiplier, x[batch.neighbours])

    def half(self, design: np.ndarray) -> np.ndarray:
        """L⁻¹ of the root times the transpose of a design (rows, root): squares of columns are variances of the rows."""
        return _multiply(self.root_inverse, design.T)

    @cached_property
    @in_one_thread
    def root_inverse(self) -> np.ndarray:
        """L⁻¹ for the root L Lᵀ, lower triangular."""
        return _inverted(self.root) if len(self.root) else self.root

    @cached_property
    def variances(self) -> np.ndarray:
        """The diagonal of the inverse."""
        if self.pattern.all_root:
            return np.einsum("ij,ij->j", self.root_inverse, self.root_inverse)
        return self.inverse[self.pattern.diagonal]

    @cached_property
    @in_one_thread
    def inverse(self) -> np.ndarray:
        """The values of the inverse on the filled pattern."""
        pattern, r = self.pattern, len(self.pattern.root)
        values = np.zeros(pattern.size)
        inverse = np.zeros((0, 0))
        if r:
            (square,) = scipy.linalg.get_lapack_funcs(("lauum",), (self.root,))
            lower, _ = square(self.root_inverse, lower=1)  # a third of the work of solving for the identity
            inverse = lower + lower.T  # above its diagonal the factor is zero, and LAPACK leaves it so
            inverse[np.diag_indices(r)] *= 0.5
            values[pattern.root_at : pattern.root_at + r * r] = inverse.ravel()
        if self.border is not None:
            of, pivot, multiplier = self.border
            block = -multiplier @ inverse
            values[of.block : pattern.root_at] = block.ravel()
            values[of.diagonal] = 1.0 / pivot - np.sum(block * multiplier, axis=1)
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
        border = FactoredBorder(pattern.border, pivot, multiplier)
    try:
        root = scipy.linalg.cholesky(matrix, lower=True, check_finite=True) if r else np.zeros((0, 0))
    except (np.linalg.LinAlgError, ValueError):
        return None
    return Factor(pattern, tuple(pivots), tuple(multipliers), border, root)


def _inverted(triangle: np.ndarray) -> np.ndarray:
    """Of a lower triangle, by halves: products are what BLAS does best, and OpenBLAS inverts at a third of their speed."""
    n = len(triangle)
    if n <= _SMALL:
        (invert,) = scipy.linalg.get_lapack_funcs(("trtri",), (triangle,))
        return invert(triangle, lower=1)[0]
    h, found = n // 2, np.zeros((n, n), order="F")
    found[:h, :h], found[h:, h:] = _inverted(triangle[:h, :h]), _inverted(triangle[h:, h:])
    right = _multiply(found[:h, :h], triangle[h:, :h].T, trans_a=1).T
    found[h:, :h] = -_multiply(found[h:, h:], right)
    return found


@in_one_thread
def _multiply(triangle: np.ndarray, columns: np.ndarray, trans_a: int = 0) -> np.ndarray:
    """A lower triangle times columns, or its transpose: half the work of a product of matrices."""
    (multiply,) = scipy.linalg.get_blas_funcs(("trmm",), (triangle,))
    return multiply(1.0, triangle, columns, lower=1, trans_a=trans_a)


def _padded(vector: np.ndarray) -> np.ndarray:
    """Columns with a zero after the last unknown, for neighbours that are none."""
    columns = np.asarray(vector, np.float64).reshape(len(vector), -1)
    return np.concatenate([columns, np.zeros((1, columns.shape[1]))])
