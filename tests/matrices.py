"""Log densities that JAX hands to LAPACK, as users write them, and others that it does not."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, expm, solve_triangular


def kernel(w: jax.Array, n: int) -> jax.Array:
    """Covariance of a Gaussian process at n places."""
    x = np.linspace(0.0, 3.0, n)
    smooth = jnp.exp(2.0 * w[0] - 0.5 * (x[:, None] - x) ** 2 * jnp.exp(-2.0 * w[1]))
    return smooth + jnp.diag(0.1 + jnp.exp(2.0 * w[2]) + 0.01 * x)


def data(n: int) -> np.ndarray:
    return np.sin(2.0 * np.linspace(0.0, 3.0, n))


def by_solve(cov, y):
    return -0.5 * y @ jnp.linalg.solve(cov, y) - 0.5 * jnp.linalg.slogdet(cov)[1]


def by_inverse(cov, y):
    return -0.5 * y @ jnp.linalg.inv(cov) @ y - 0.5 * jnp.linalg.slogdet(cov)[1]


def by_determinant(cov, y):
    return -0.5 * y @ jnp.linalg.solve(cov, y) - 0.5 * jnp.log(jnp.linalg.det(cov))


def by_cholesky(cov, y):
    lower = jnp.linalg.cholesky(cov)
    half = solve_triangular(lower, y, lower=True)
    return -0.5 * half @ half - jnp.sum(jnp.log(jnp.diagonal(lower)))


def by_cho_solve(cov, y):
    lower = jnp.linalg.cholesky(cov)
    return -0.5 * y @ cho_solve((lower, True), y) - jnp.sum(jnp.log(jnp.diagonal(lower)))


def by_eigenvalues(cov, y):
    values, basis = jnp.linalg.eigh(cov)
    return -0.5 * jnp.sum((basis.T @ y) ** 2 / values) - 0.5 * jnp.sum(jnp.log(values))


def by_singular_values(cov, y):
    left, values, right = jnp.linalg.svd(cov)
    return -0.5 * y @ (right.T @ ((left.T @ y) / values)) - 0.5 * jnp.sum(jnp.log(values))


def by_qr(cov, y):
    q, r = jnp.linalg.qr(cov)
    return -0.5 * y @ solve_triangular(r, q.T @ y) - 0.5 * jnp.sum(jnp.log(jnp.abs(jnp.diagonal(r))))


def by_exponential(cov, y):
    return -0.5 * jnp.sum((expm(-cov / len(y)) @ y - 0.5 * y) ** 2)


FACTORISED: dict[str, Callable[[jax.Array, np.ndarray], jax.Array]] = {
    "solve": by_solve,
    "inverse": by_inverse,
    "determinant": by_determinant,
    "cholesky": by_cholesky,
    "cho_solve": by_cho_solve,
    "eigenvalues": by_eigenvalues,
    "singular values": by_singular_values,
    "qr": by_qr,
    "exponential": by_exponential,
}

PLAIN: dict[str, Callable[[jax.Array, np.ndarray], jax.Array]] = {
    "product": lambda cov, y: -y @ cov @ y,
    "sorted": lambda cov, y: -jnp.sum(jnp.sort(cov @ y) ** 2),
    "recurrence": lambda cov, y: jax.lax.scan(lambda so_far, row: (0.5 * so_far + row @ y, None), 0.0, cov)[0],
}


def log_density(name: str, n: int) -> Callable:
    """One of them as a function of three parameters, as executors take it."""
    value, y = {**FACTORISED, **PLAIN}[name], data(n)
    return lambda w, unused=None, free=None: value(kernel(w, n), y) - 0.5 * w @ w
