"""What third derivatives at the mode say of inner marginals: the simplified Laplace approximation.

Along a = Σ eᵢ / σᵢ, the path on which the others follow one inner parameter, its log density is −½ s² + γ₁ s + γ₃ s³ / 6 in units
of its standard deviation (Rue, Martino and Chopin 2009, Eq. 23): γ₃ is the third derivative along the path, and γ₁ = ½ D³[a, Σ − a aᵀ]
comes from the determinant of the others. To first order its mean is γ₁ + γ₃ / 2 = ½ D³[a, Σ], its skewness γ₃, and its variance
stays as it was.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import program
from quenched.nesting.at_mode import AtMode
from quenched.nesting.by_draws import ByDraws
from quenched.nesting.newton import Conditionals
from quenched.nesting.outer import Outer
from quenched.nesting.rows import RowArrays, TermRows
from quenched.precision import in_double

_NUMBERS = 4e6  # held at a time, of rows and inner parameters


class ThirdOrder(NamedTuple):
    """Of every inner parameter in every lane, (dim, lanes)."""

    mean: np.ndarray  # that of the Gaussian, moved
    sd: np.ndarray
    skewness: np.ndarray


def third_order(problem: Outer, thetas: np.ndarray, at: Conditionals) -> ThirdOrder:
    """The first two moments and the skewness of inner marginals, from Laplace's Gaussians at some outer points."""
    inner, arrays, found = problem.inner, problem.handed.arrays, []
    assert isinstance(inner, AtMode)
    with in_double():
        for lane, theta in enumerate(thetas):
            mean = np.asarray(at.mean)[:, lane]
            covariance = np.linalg.inv(inner.algebra.to_dense(np.asarray(at.precision)[:, lane : lane + 1])[0])
            sd = np.sqrt(np.diag(covariance))
            of_one = _of_log_density if isinstance(inner.of, ByDraws) else _of_terms
            pull, skewness = of_one(inner.of, theta, mean, covariance, covariance / sd, arrays)
            found.append((mean + 0.5 * covariance @ pull, sd, skewness))
    return ThirdOrder(*(np.stack(part, axis=1) for part in zip(*found, strict=True)))


def _of_terms(inner: Any, theta: np.ndarray, mean: np.ndarray, covariance: np.ndarray, paths: np.ndarray, arrays: Any):
    """D³[·, Σ] of a sum of terms, and D³[a, a, a] for every path."""
    pull, skewness = np.zeros(len(mean)), np.zeros(len(mean))
    for rows, own in zip(inner.rows, arrays.terms, strict=True):
        size = own.z.shape[1]
        if not size or len(own.z) == 2 * size:  # of the outer ones alone, or quadratic
            continue
        n, few = len(own.maps.values), own.maps.values.shape[2]
        columns = np.broadcast_to(np.asarray(own.maps.columns), (n, few))
        centre = np.asarray(own.maps.means(mean[:, None]))[:, :, 0]
        third = _third_of_rows(rows, own, centre, theta, arrays.given)
        at_a_time = max(1, int(_NUMBERS / (few * len(mean))))
        for first in range(0, n, at_a_time):
            part = slice(first, first + at_a_time)
            values, places, own_third = np.asarray(own.maps.values)[part], columns[part], np.asarray(third)[part]
            block = covariance[places[:, :, None], places[:, None, :]]
            seen = np.einsum("nrk,nkj,nsj->nrs", values, block, values, optimize=True)
            slopes = np.einsum("nabc,nbc->na", own_third, seen)
            np.add.at(pull, places, np.einsum("nrk,nr->nk", values, slopes))
            along = np.einsum("nrk,nki->nri", values, paths[places])
            skewness += np.einsum("nabc,nai,nbi,nci->i", own_third, along, along, along, optimize=True)
    return pull, skewness


@partial(program, of_functions=True, static_argnums=0)
def _third_of_rows(rows: TermRows, arrays: RowArrays, centre: Array, theta: Array, given: Any) -> Array:
    """(rows, size, size, size), in the combinations that rows see."""
    value = lambda v, own: rows.at(v, theta, own, given)
    return jax.vmap(jax.jacfwd(jax.hessian(value)))(centre, arrays.own)


def _of_log_density(inner: Any, theta: Any, mean: Any, covariance: Any, paths: Any, arrays: Any):
    """The same of a log density of which no terms are known."""
    return tuple(np.asarray(part) for part in _third_of_log_density(inner, theta, mean, covariance, paths, arrays.data))


@partial(program, of_functions=True, static_argnums=0)
def _third_of_log_density(inner: ByDraws, theta: Array, mean: Array, covariance: Array, paths: Array, data: Any):
    value = lambda u: inner.log_density(theta, u, data)
    pull = jax.grad(lambda u: jnp.sum(jax.hessian(value)(u) * covariance))(mean)
    third = jax.grad(jax.grad(jax.grad(lambda s, path: value(mean + s * path))))
    return pull, jax.lax.map(lambda path: third(0.0, path), paths.T)
