"""The Cholesky factor of a correlation matrix, by canonical partial correlations.

Row i of the factor is a point of the unit sphere: each of its entries before the diagonal takes the share tanh(x) of the
length that those before it have left, and the diagonal takes the rest (Lewandowski, Kurowicka and Joe 2009; as in Stan
and TensorFlow Probability). The identity maps to zero.
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp

from quenched.arrays import Array
from quenched.transforms.transform import Transform


class CorrelationCholesky(Transform):
    """Cholesky factor of a correlation matrix: lower triangular, rows of length one, a positive diagonal.

    A k × k factor has k (k - 1) / 2 coordinates on the real line. The volume element is that of the entries below the
    diagonal, as the density of an LKJ prior for factors is written.

    Examples
    --------
    >>> def lkj(factor):  # LKJ(2), as a density of the factor
    ...     return 2.0 * jnp.log(factor[1, 1])
    >>> fit = qd.fit(lkj, np.eye(2), transforms=qd.correlation_cholesky)
    >>> factor = fit.sample(10)[0]
    >>> bool(np.allclose(np.diag(factor @ factor.T), 1.0))
    True
    """

    axes: ClassVar[int] = 2

    def to_natural(self, real):
        below, log_left, _ = _rows(real)
        return jnp.where(jnp.eye(below.shape[-1], dtype=bool), 1.0, jnp.tanh(below)) * jnp.exp(log_left)

    def to_real(self, natural):
        # The length left after each entry is summed from the end, which keeps short ones exact.
        squares = jnp.flip(jnp.cumsum(jnp.flip(natural**2, -1), axis=-1), -1)
        after = jnp.sqrt(squares[..., 1:])
        rows, columns = jnp.tril_indices(natural.shape[-1], -1)
        return jnp.arcsinh(natural[..., rows, columns] / after[..., rows, columns])

    def log_jacobian(self, real):
        _, log_left, log_share = _rows(real)
        strictly = jnp.tril(jnp.ones(log_left.shape[-2:], bool), -1)
        return jnp.sum(jnp.where(strictly, log_left + 2.0 * log_share, 0.0))

    def describe(self):
        return "that are lower triangular with rows of length 1 and a positive diagonal, in the last two axes"

    def real_shape(self, natural_shape):
        if len(natural_shape) < 2 or natural_shape[-1] != natural_shape[-2] or natural_shape[-1] < 2:
            raise ValueError(
                "correlation_cholesky needs a square matrix of at least two rows in the last two axes, got shape "
                f"{natural_shape}."
            )
        size = natural_shape[-1]
        return (*natural_shape[:-2], size * (size - 1) // 2)


def _rows(real: Array) -> tuple[Array, Array, Array]:
    """The coordinates in the places of their entries; log of the length left to each entry; log of the share it leaves."""
    size = (1 + math.isqrt(1 + 8 * real.shape[-1])) // 2
    rows, columns = jnp.tril_indices(size, -1)
    below = jnp.zeros((*real.shape[:-1], size, size), real.dtype).at[..., rows, columns].set(real)
    log_share = math.log(2.0) - jax.nn.softplus(2.0 * below) + below  # log sech, zero where there is nothing
    log_share = jnp.where(jnp.tril(jnp.ones((size, size), bool), -1), log_share, 0.0)
    return below, jnp.cumsum(log_share, axis=-1) - log_share, log_share


correlation_cholesky = CorrelationCholesky()
