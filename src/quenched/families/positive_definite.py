"""From a negative Hessian to the scale of a Gaussian, when the Hessian may be anything; or from a stack of them."""

from contextlib import suppress

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.families.triangle import solve_lower

_FLOOR = 1e-10  # of eigenvalues, where the diagonal is one


def positive_definite(precision: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, eigenvectors and scaling of a precision made positive definite.

    The matrix is first scaled to a unit diagonal, which makes the answer independent of the units of the parameters
    (standard deviations from 1e-4 to 1e5 in one model are no harder than equal ones). Negative curvature is replaced by
    its size, and eigenvalues that are nearly zero are raised.

    Returns
    -------
    eigenvalues, eigenvectors, spread
        With D = diag(1 / spread): precision ≈ D V diag(eigenvalues) Vᵀ D.
    """
    spread = natural_units(precision)
    scaled = precision * spread[..., None, :] * spread[..., None]
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.swapaxes(-1, -2)))
    return np.maximum(np.abs(values), _FLOOR), vectors, spread


def natural_units(precision: Array) -> Array:
    """Units in which the precision has a unit diagonal; flat coordinates take the largest curvature."""
    xp = np if isinstance(precision, np.ndarray) else jnp
    diagonal = abs(xp.diagonal(precision, axis1=-2, axis2=-1))
    if xp is np and (diagonal > 0).all():  # nearly always, and in a fifth of the time
        return 1.0 / np.sqrt(diagonal)
    largest = xp.max(diagonal, axis=-1, keepdims=True, initial=0.0)
    return 1.0 / xp.sqrt(xp.where(diagonal > 0, diagonal, xp.where(largest > 0, largest, 1.0)))


def cholesky_or_nan(stack: Array) -> Array:
    """Lower-triangular factors of (..., dim, dim), not finite where a matrix is not positive definite.

    JAX answers so by itself; NumPy raises, and must then be asked for one matrix at a time.
    """
    if not isinstance(stack, np.ndarray):
        return jnp.linalg.cholesky(stack)
    try:
        return np.linalg.cholesky(stack)
    except np.linalg.LinAlgError:
        factors = np.full(stack.shape, np.nan)
        for place in np.ndindex(stack.shape[:-2]):
            with suppress(np.linalg.LinAlgError):
                factors[place] = np.linalg.cholesky(stack[place])
        return factors


def factor_of_inverse(precision: np.ndarray) -> np.ndarray:
    """Lower-triangular L with L Lᵀ = precision⁻¹, of (..., dim, dim); each precision is made positive definite."""
    precision = np.asarray(precision)
    spread = natural_units(precision)
    scaled = precision * spread[..., None, :] * spread[..., None]
    # Factored from the last row up, precision = U Uᵀ with U upper triangular; then L = U⁻ᵀ.
    upper = cholesky_or_nan(scaled[..., ::-1, ::-1])[..., ::-1, ::-1]
    definite = np.isfinite(upper).all(axis=(-2, -1))
    if definite.all():
        return spread[..., None] * _inverse_of_upper(upper).swapaxes(-1, -2)
    factors = np.empty_like(scaled)
    factors[definite] = spread[definite][..., None] * np.linalg.inv(upper[definite]).swapaxes(-1, -2)
    factors[~definite] = _factor_by_eigenvalues(precision[~definite])
    return factors


def _inverse_of_upper(upper: np.ndarray) -> np.ndarray:
    if upper.ndim == 2:
        return solve_lower(upper.T, np.eye(len(upper)), transposed=True)
    return np.linalg.inv(upper)  # elimination finds nothing to do below the diagonal, and does it for a whole stack


def _factor_by_eigenvalues(precision: np.ndarray) -> np.ndarray:
    values, vectors, spread = positive_definite(precision)
    factor = spread[..., None] * vectors / np.sqrt(values)[..., None, :]
    lower = np.asarray(np.linalg.qr(factor.swapaxes(-1, -2), mode="r")).swapaxes(-1, -2)
    return lower * np.sign(np.diagonal(lower, axis1=-2, axis2=-1))[..., None, :]
