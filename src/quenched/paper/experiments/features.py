"""Features and kernels of Secs. 3.2 to 3.4, each with a one for the bias at the end."""

import numpy as np
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

KERNELS = {
    "gaussian": rbf_kernel,  # exp(−‖x − z‖² / number of features)
    "polynomial": lambda left, right: polynomial_kernel(left, right, degree=2, gamma=1.0, coef0=1),
    "linear": linear_kernel,
}


def radial_basis(inputs: np.ndarray, centres: np.ndarray, width: float) -> np.ndarray:
    """exp(−‖x − c‖² / 2 r²) for every centre."""
    inputs, centres = (np.reshape(points, (len(points), -1)) for points in (inputs, centres))
    return with_bias(rbf_kernel(inputs, centres, gamma=0.5 / width**2))


def kernel_features(kind: str, inputs: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Features for a linear model with the kernel's functions.

    The linear and the polynomial kernel have few functions, written out; the Gaussian one has one per centre.
    """
    if kind == "gaussian":
        return with_bias(rbf_kernel(inputs, centres))
    return with_bias(inputs if kind == "linear" else _monomials(inputs))


def with_bias(features: np.ndarray) -> np.ndarray:
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)


def _monomials(inputs: np.ndarray) -> np.ndarray:
    """Coordinates in which the inner product is (1 + x·z)² − 1."""
    first, second = np.triu_indices(inputs.shape[1])
    weights = np.where(first == second, 1.0, np.sqrt(2.0))
    return np.concatenate([np.sqrt(2.0) * inputs, weights * inputs[:, first] * inputs[:, second]], axis=1)
