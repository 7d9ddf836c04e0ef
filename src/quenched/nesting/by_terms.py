"""The inner problem of a sum of terms: each term is averaged over the few numbers that its rows see."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.nesting.algebra import Dense, Inverse
from quenched.nesting.bordered import Bordered
from quenched.nesting.few import insist_few_inside
from quenched.nesting.newton import Expected, Inner
from quenched.nesting.pattern import arrange
from quenched.nesting.rows import RowArrays, Rows, read_rows, seen_by
from quenched.nesting.split import Split
from quenched.targets import Target, local_terms


class TermArrays(NamedTuple):
    """Of all terms, and what was given as `data`."""

    terms: tuple[RowArrays, ...]
    given: Any


@dataclass(frozen=True)
class ByTerms(Inner):
    """A sum of terms with some parameters outside."""

    algebra: Dense | Bordered
    rows: tuple[Rows, ...]

    def expected(self, thetas: Array, mean: Array, inverse: Inverse, arrays: TermArrays) -> Expected:
        value, gradient, precision = jnp.zeros(len(thetas)), jnp.zeros_like(mean), jnp.zeros_like(inverse.covariance)
        for rows, own in zip(self.rows, arrays.terms, strict=True):
            means, covariances = own.maps.means(mean), own.maps.covariances(inverse.covariance)
            of_rows, slopes, curvature = slopes_of(rows, thetas, means, covariances, own, arrays.given)
            value = value + of_rows
            gradient = own.maps.add_gradient(gradient, slopes)
            precision = own.maps.add_curvature(precision, curvature)
        return Expected(value, gradient, precision)

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
    rows: Rows, thetas: Array, means: Array, covariances: Array, arrays: RowArrays, given: Any
) -> tuple[Array, Array, Array]:
    """Of the rows of a term: the sum of their mean log densities (lanes,), its slope in the means (rows, size, lanes), and
    −2 times that in the covariances: on these points exactly, and not only in expectation, the curvature of the rows.
    """
    factors, pull = jax.vjp(_cholesky, covariances)
    size = means.shape[1]
    with_slopes = jax.value_and_grad(lambda seen, theta, own: rows.log_density(seen, theta, own, given))
    of_row = jax.vmap(jax.vmap(with_slopes, in_axes=(1, 0, None), out_axes=(0, 1)), in_axes=(0, None, 0))

    def at_point(totals, point_and_weight):
        point, weight = point_and_weight
        seen = _placed(means, factors, point, arrays.back)
        values, slopes = of_row(seen, thetas, arrays.own)
        slopes = weight * jnp.einsum("sr,nsl->nrl", arrays.back, slopes)
        by_factor = [[slopes[:, i] * point[j] for j in range(i + 1)] for i in range(size)]
        return jax.tree.map(jnp.add, totals, (weight * jnp.sum(values, axis=0), slopes, by_factor)), None

    nothing = (jnp.zeros(means.shape[-1:]), jnp.zeros_like(means), jax.tree.map(jnp.zeros_like, factors))
    (value, slopes, by_factor), _ = jax.lax.scan(at_point, nothing, (arrays.z, arrays.weights))
    (turn,) = pull(by_factor)
    return value, slopes, -(turn + jnp.swapaxes(turn, 1, 2))


def _over_points(rows: Rows, thetas: Array, means: Array, factors: Any, arrays: RowArrays, given: Any) -> Array:
    """The sum over the rows of their mean log densities, (lanes,)."""
    of_lane = jax.vmap(lambda seen, theta, own: rows.log_density(seen, theta, own, given), in_axes=(1, 0, None))
    of_row = jax.vmap(of_lane, in_axes=(0, None, 0))

    def at_point(total, point_and_weight):
        point, weight = point_and_weight
        seen = _placed(means, factors, point, arrays.back)
        return total + weight * jnp.sum(of_row(seen, thetas, arrays.own), axis=0), None

    return jax.lax.scan(at_point, jnp.zeros(means.shape[-1:]), (arrays.z, arrays.weights))[0]


def _placed(means: Array, factors: Any, point: Array, back: Array) -> Array:
    """The numbers that the rows see at one point, (rows, numbers, lanes)."""
    size = means.shape[1]
    away = [sum(factors[i][j] * point[j] for j in range(i + 1)) for i in range(size)]
    there = means + jnp.stack(away, axis=1) if size else means
    return jnp.einsum("sr,nrl->nsl", back, there)


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
