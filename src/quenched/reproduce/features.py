"""Features and kernels of Secs. 3.2 to 3.4."""

import numpy as np


def radial_basis(inputs: np.ndarray, centres: np.ndarray, width: float) -> np.ndarray:
    """exp(−‖x − c‖² / 2 r²) for every centre, and a one for the bias at the end."""
    return with_bias(np.exp(-squared_distances(inputs, centres) / (2.0 * width**2)))


def squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """‖x − c‖² for every pair of rows."""
    left, right = (np.reshape(side, (len(side), -1)) for side in (left, right))
    return np.sum((left[:, None, :] - right[None, :, :]) ** 2, axis=-1)


def with_bias(features: np.ndarray) -> np.ndarray:
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)


def standardise(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Zero mean and unit variance on the training part; constant columns become zero."""
    mean, spread = train.mean(axis=0), train.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    return (train - mean) / spread, (test - mean) / spread


def kernel(kind: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gaussian of width 1 / (number of features), polynomial of degree two, or linear."""
    if kind == "gaussian":
        return np.exp(-squared_distances(left, right) / left.shape[1])
    product = left @ right.T
    return (1.0 + product) ** 2 if kind == "polynomial" else product


def kernel_features(kind: str, inputs: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Features for a linear model with the kernel's functions, and a bias.

    The linear and the polynomial kernel have few functions, written out; the Gaussian one has one per centre.
    """
    if kind == "gaussian":
        return with_bias(kernel(kind, inputs, centres))
    return with_bias(inputs if kind == "linear" else _monomials(inputs))


def _monomials(inputs: np.ndarray) -> np.ndarray:
    """Coordinates in which the inner product is (1 + x·z)² − 1."""
    first, second = np.triu_indices(inputs.shape[1])
    weights = np.where(first == second, 1.0, np.sqrt(2.0))
    return np.concatenate([np.sqrt(2.0) * inputs, weights * inputs[:, first] * inputs[:, second]], axis=1)
