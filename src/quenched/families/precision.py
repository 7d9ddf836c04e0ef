"""From a negative Hessian to the scale of a Gaussian, when the Hessian may be anything."""

import numpy as np
import scipy.linalg


def positive_definite(precision: np.ndarray, *, floor: float = 1e-10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, eigenvectors and scaling of a precision made positive definite.

    The matrix is first scaled to a unit diagonal, which makes the answer independent of the units of the parameters
    (standard deviations from 1e-4 to 1e5 in one model are no harder than equal ones). Negative curvature is replaced by
    its size and eigenvalues below `floor` are raised to it.

    Returns
    -------
    eigenvalues, eigenvectors, spread
        With D = diag(1 / spread): precision ≈ D V diag(eigenvalues) Vᵀ D.
    """
    diagonal = np.abs(np.diag(precision))
    smallest = np.max(diagonal, initial=0.0)
    spread = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, smallest if smallest > 0 else 1.0))
    scaled = precision * spread * spread[:, None]
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    return np.maximum(np.abs(values), floor), vectors, spread


def factor_of_inverse(precision: np.ndarray) -> np.ndarray:
    """Lower-triangular L with L Lᵀ = precision⁻¹, the precision made positive definite."""
    values, vectors, spread = positive_definite(precision)
    factor = spread[:, None] * vectors / np.sqrt(values)
    lower = scipy.linalg.qr(factor.T, mode="r")[0].T
    return lower * np.sign(np.diag(lower))
