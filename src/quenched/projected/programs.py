"""The programs of a term: what is asked of its rows, compiled once for all that its function is known to see."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import QUICK, compiled, known
from quenched.execute import Identified
from quenched.families import stretch_around
from quenched.objective import Problem
from quenched.targets import LocalTerm, fingerprint, log_density_of

_UNROLLED = 8  # numbers up to which the Cholesky factor is written out


class TermPrograms(NamedTuple):
    """What is asked of the rows of a term, compiled."""

    slopes: Callable  # of their expectations, in means, covariances, hyperparameters and powers of stretching
    values: Callable  # at points (points, rows, size)
    gradients: Callable


@lru_cache(maxsize=64)
def _kept(key: Identified) -> TermPrograms:
    return key.thing()


def programs_of(term: LocalTerm, problem: Problem) -> TermPrograms:
    """Compiled once for all that the function is known to see; what may change unseen is traced anew."""
    unravel = problem.function.unravel_hyper
    make = lambda: _made(term, unravel)
    seen = None if term.term is None else fingerprint(term.term.function)
    if term.term is not None and seen is None:
        return make()
    shape = None if term.term is None else (term.term.parts, term.term.has_rows)
    like = problem.hyper_like
    hyper = (
        None if like is None else (jax.tree.structure(like), tuple(np.shape(leaf) for leaf in jax.tree.leaves(like)))
    )
    return _kept(Identified((seen, shape, term.sights, hyper), make))


def _made(term: LocalTerm, unravel: Callable | None) -> TermPrograms:
    structure, sights = term.term, term.sights

    def total(means, packed, free, powers, counts, held, z, weights, back, given):
        hyper = None if unravel is None else unravel(free)
        n_sets, _, size = z.shape

        def of_row(mean, factor, own, power, z):
            away = _times(factor, z)
            points = mean + (away if power is None else _stretched(away, factor, power, weights))
            numbers = points if back is None else points @ back.T
            values = jax.vmap(lambda v: log_density_of(structure, sights, v, own, given, hyper))(numbers)
            return weights @ values

        by_set = lambda array: array.reshape(len(array) // n_sets, n_sets, *array.shape[1:])
        factors = jax.tree.map(by_set, _cholesky(packed, size))
        own, powers = jax.tree.map(by_set, (held, powers))
        values = jax.vmap(jax.vmap(of_row), in_axes=(0, 0, 0, 0, None))(by_set(means), factors, own, powers, z)
        return jnp.sum(jnp.where(by_set(counts) > 0, values, 0.0))

    def slopes(means, packed, counts, held, z, weights, back, given, free, powers):
        held_still = (counts, held, z, weights, back, given)
        return jax.value_and_grad(total, argnums=(0, 1, 2, 3))(means, packed, free, powers, *held_still)

    def value(numbers, own, given, free):
        return log_density_of(structure, sights, numbers, own, given, None if unravel is None else unravel(free))

    over = lambda function: compiled(
        jax.vmap(jax.vmap(function, in_axes=(0, 0, None, None)), in_axes=(0, None, None, None))
    )
    return TermPrograms(compiled(slopes, compiler_options=known(QUICK)), over(value), over(jax.grad(value)))


def _stretched(away: Array, factor: Any, powers: Array, weights: Array) -> Array:
    """Points around their mean, of which the first numbers are stretched, each in units of its own sd.

    Their mean stays zero on these very points, and so a Gaussian log density has no slope in the powers where these are zero.
    """
    k = len(powers)
    rows = [jnp.stack(row) for row in factor[:k]] if isinstance(factor, list) else factor[:k]
    sds = jnp.stack([jnp.sqrt(jnp.sum(row**2)) for row in rows])
    return jnp.concatenate([sds * stretch_around(away[:, :k] / sds, powers, weights), away[:, k:]], axis=1)


def _times(factor: Any, z: Array) -> Array:
    if not isinstance(factor, list):
        return z @ factor.T
    return jnp.stack([sum(entry * z[:, j] for j, entry in enumerate(row)) for row in factor], axis=1)


def _cholesky(packed: Array, size: int) -> Any:
    """Lower-triangular factors of many small matrices: written out, as lists of entries, or by LAPACK.

    A number that does not vary at all (a row of zeros in a design) has a factor of zeros, and no slope.
    """
    place = {pair: at for at, pair in enumerate(zip(*map(np.ndarray.tolist, np.tril_indices(size)), strict=True))}
    if size > _UNROLLED:
        i, j = np.tril_indices(size)
        lower = jnp.zeros((len(packed), size, size)).at[:, i, j].set(packed)
        full = lower + jnp.swapaxes(jnp.tril(lower, -1), 1, 2)
        fixed = jnp.diagonal(full, axis1=1, axis2=2) == 0.0
        lower = jnp.linalg.cholesky(full + fixed[:, :, None] * jnp.eye(size), symmetrize_input=False)
        return jnp.where(fixed[:, :, None], 0.0, lower)
    factor: list[list[Array]] = []
    for i in range(size):
        row: list[Array] = []
        for j in range(i + 1):
            rest = packed[:, place[i, j]] - sum(row[k] * (factor[j][k] if j < i else row[k]) for k in range(j))
            pivot = rest if i == j else factor[j][j]
            fixed, some = pivot == 0.0, jnp.where(pivot == 0.0, 1.0, pivot)  # NaN stays NaN
            row.append(jnp.where(fixed, 0.0, jnp.sqrt(some) if i == j else rest / some))
        factor.append(row)
    return factor
