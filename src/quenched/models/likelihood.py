"""log p(Y | X) of the latent-variable model, a few columns at a time.

Only one chunk of columns is in memory, for the value and for the gradient alike: each chunk is computed anew on the way
back. What is left in memory between chunks has the size of the coefficients, not of residuals times draws.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.models.noise import Noise

_CHUNK = 2**14  # residuals per draw and chunk: with a few draws they stay in the cache
_WIDTH_STEP = 16  # widths are multiples of it, so that few shapes need compiling


class Columns(NamedTuple):
    """Data cut into chunks of columns, the last one filled up with columns that do not count."""

    values: np.ndarray  # (chunks, N, width)
    count: np.ndarray  # (chunks, width), False for the filling


def cut_columns(data: np.ndarray) -> Columns:
    """Chunks of about equal width, chosen so that a chunk holds about as many entries whatever the shape."""
    n_rows, n_columns = data.shape
    n_chunks = -(-n_columns // max(1, _CHUNK // n_rows))
    width = -(-n_columns // (n_chunks * _WIDTH_STEP)) * _WIDTH_STEP
    return Columns(
        np.moveaxis(cut_rows(data.T, width), 2, 1),
        cut_rows(np.ones(n_columns, dtype=bool), width),
    )


def cut_rows(array: np.ndarray, width: int) -> np.ndarray:
    """(n, ...) to (chunks, width, ...), filled up with zeros."""
    n_chunks = -(-len(array) // width)
    fill = [(0, n_chunks * width - len(array))] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, fill).reshape(n_chunks, width, *array.shape[1:])


def log_likelihood(noise: Noise, latent: Array, coefficients: Array, log_scale: Array, columns: Columns) -> Array:
    """Σ log p(y | x) over all entries.

    Parameters
    ----------
    noise
        Log density of a residual in units of the scale.
    latent
        (N, q).
    coefficients
        Loadings and, last, the offset, of every column: (chunks, width, q + 1).
    log_scale
        Logarithm of the scale of the noise.
    columns
        The data.
    """

    @jax.checkpoint
    def add(total, chunk):
        values, count, coefficient = chunk
        residuals = (values - latent @ coefficient[:, :-1].T - coefficient[:, -1]) * jnp.exp(-log_scale)
        return total + jnp.sum(jnp.where(count, noise(residuals) - log_scale, 0.0)), None

    return jax.lax.scan(add, jnp.zeros((), latent.dtype), (columns.values, columns.count, coefficients))[0]
