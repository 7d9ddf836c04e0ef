"""The inner problem of a sum of terms: each term is averaged over the few numbers that its rows see."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.nesting.algebra import Dense, Inverse
from quenched.nesting.bordered import Bordered
from quenched.nesting.few import insist_few_inside
from quenched.nesting.newton import Inner, InnerExpected
from quenched.nesting.pattern import arrange
from quenched.nesting.rows import RowArrays, TermRows, read_rows, seen_by
from quenched.nesting.split import Split
from quenched.targets import Target, local_terms

_FORWARD = 3  # combinations of a row up to which slopes are taken along each


class TermArrays(NamedTuple):
    """Of all terms, and what was given as `data`."""

    terms: tuple[RowArrays, ...]
    given: Any


@dataclass(frozen=True)
class ByTerms(Inner):
    """A sum of terms with some parameters outside."""

    algebra: Dense | Bordered
    rows: tuple[TermRows, ...]

    def expected(self, thetas: Array, mean: Array, inverse: Inverse, arrays: TermArrays) -> InnerExpected:
        value, gradient, precision = jnp.zeros(len(thetas)), jnp.zeros_like(mean), jnp.zeros_like(inverse.covariance)
        for rows, own in zip(self.rows, arrays.terms, strict=True):
            means, covariances = own.maps.means(mean), own.maps.covariances(inverse.covariance)
            of_rows, slopes, curvature = slopes_of(rows, thetas, means, covariances, own, arrays.given)
            value = value + of_rows
            gradient = own.maps.add_gradient(gradient, slopes)
            precision = own.maps.add_curvature(precision, curvature)
        return InnerExpected(value, gradient, precision)

    def value(self, thetas: Array, mean: Array, inverse: Inverse, arrays: TermArrays) -> Array:
        total = jnp.zeros(len(thetas))
        for rows, own in zip(self.rows, arrays.terms, strict=True):
            means, covariances = own.maps.means(mean), own.maps.covariances(inverse.covariance)
            total = total + _over_points(rows, thetas, means, _cholesky(covariances), own, arrays.given)
        return total


def read_terms(target: Target, split: Split, point: np.ndarray, data: Any, seed: int) -> tuple[ByTerms, TermArrays]:
    """A sum of terms divided into outer and inner parameters; `point` is a vector of the real line."""
    local = local_terms(target.terms, target.data, split.space)
    algebra = arrange(len(split.inner_places), [seen_by(term, split) for term in local])
    insist_few_inside(algebra)
    found = [read_rows(term, split, algebra, point, data, seed) for term in local]
    return ByTerms(algebra, tuple(rows for rows, _ in found)), TermArrays(tuple(own for _, own in found), data)


def slopes_of(
    rows: TermRows, thetas: Array, means: Array, covariances: Array, arrays: RowArrays, given: Any
) -> tuple[Array, Array, Array]:
    """Of the rows of a term: the sum of their mean log densities (lanes,), its slope in the means (rows, size, lanes), and
    −2 times that in the covariances: on these points exactly, and not only in expectation, the curvature of the rows.
    """
    factors, pull = jax.vjp(_cholesky, covariances)
    size = means.shape[1]
    of_row = _with_slopes(rows, size, given)
    of_row = jax.vmap(jax.vmap(of_row, in_axes=(1, 0, None), out_axes=(0, 1)), in_axes=(0, None, 0))

    def at_point(totals, point_and_weight):
        point, weight = point_and_weight
        values, slopes = of_row(_placed(means, factors, point), thetas, arrays.own)
        slopes = weight * slopes
        by_factor = [[slopes[:, i] * point[j] for j in range(i + 1)] for i in range(size)]
        return jax.tree.map(jnp.add, totals, (weight * jnp.sum(values, axis=0), slopes, by_factor)), None

    nothing = (jnp.zeros(means.shape[-1:]), jnp.zeros_like(means), jax.tree.map(jnp.zeros_like, factors))
    (value, slopes, by_factor), _ = jax.lax.scan(at_point, nothing, (arrays.z, arrays.weights))
    (turn,) = pull(by_factor)
    return value, slopes, -(turn + jnp.swapaxes(turn, 1, 2))


def _over_points(rows: TermRows, thetas: Array, means: Array, factors: Any, arrays: RowArrays, given: Any) -> Array:
    """The sum over the rows of their mean log densities, (lanes,)."""
    of_row = lambda there, theta, own: rows.at(there, theta, own, given)
    of_row = jax.vmap(jax.vmap(of_row, in_axes=(1, 0, None)), in_axes=(0, None, 0))

    def at_point(total, point_and_weight):
        point, weight = point_and_weight
        values = of_row(_placed(means, factors, point), thetas, arrays.own)
        return total + weight * jnp.sum(values, axis=0), None

    return jax.lax.scan(at_point, jnp.zeros(means.shape[-1:]), (arrays.z, arrays.weights))[0]


def _with_slopes(rows: TermRows, size: int, given: Any) -> Callable[[Array, Array, Any], tuple[Array, Array]]:
    """The log density of one row and its slopes: along each combination, where they are few; XLA makes one loop of that."""
    if size > _FORWARD:
        return jax.value_and_grad(lambda there, theta, own: rows.at(there, theta, own, given))

    def along(there: Array, theta: Array, own: Any) -> tuple[Array, Array]:
        value = lambda there: rows.at(there, theta, own, given)
        found = [jax.jvp(value, (there,), (unit,)) for unit in jnp.eye(size)]
        return (found[0][0] if found else value(there)), jnp.array([slope for _, slope in found]).reshape(size)

    return along


def _placed(means: Array, factors: Any, point: Array) -> Array:
    """The combinations at one point, (rows, combinations, lanes)."""
    size = means.shape[1]
    away = [sum(factors[i][j] * point[j] for j in range(i + 1)) for i in range(size)]
    return means + jnp.stack(away, axis=1) if size else means


def _cholesky(matrices: Array) -> list[list[Array]]:
    """Lower-triangular factors of many small matrices (rows, size, size, lanes), entry by entry."""
    factor: list[list[Array]] = []
    for i in range(matrices.shape[1]):
        row: list[Array] = []
        for j in range(i + 1):
            other = row if i == j else factor[j]
            rest = matrices[:, i, j] - sum(row[k] * other[k] for k in range(j))
            row.append(jnp.sqrt(rest) if i == j else rest / factor[j][j])
        factor.append(row)
    return factor
