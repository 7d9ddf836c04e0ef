"""Probabilistic principal component analysis by its closed form (Tipping and Bishop 1999), the yardstick of Sec. 3.5.

y = Wx + μ + ε with x ~ N(0, I) and ε ~ N(0, σ²I). With λ_i and u_i the eigenvalues and eigenvectors of the sample
covariance (divisor N), the likelihood is highest at W = U (Λ − σ²I)^½ and σ² = Σ_{i>q} λ_i / (d − q). Both come from
one singular value decomposition of the centred rows, so rows may be fewer than columns and no d × d matrix is made.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class PPCASolution:
    """Maximum likelihood of the model: W (d × q, largest column first), μ, σ², and the log likelihood of the rows."""

    loadings: np.ndarray
    mean: np.ndarray
    noise_variance: float
    log_likelihood: float

    @property
    def _gram(self) -> np.ndarray:
        """M = WᵀW + σ²I."""
        return self.loadings.T @ self.loadings + self.noise_variance * np.eye(self.loadings.shape[1])

    def posterior_means(self, rows: np.ndarray) -> np.ndarray:
        """E[x | y] = M⁻¹Wᵀ(y − μ) for every row."""
        return np.linalg.solve(self._gram, self.loadings.T @ (rows - self.mean).T).T

    def log_likelihoods(self, rows: np.ndarray) -> np.ndarray:
        """log N(y | μ, WWᵀ + σ²I) of every row, by way of q × q matrices."""
        n_columns, n_components = self.loadings.shape
        away = rows - self.mean
        projected = away @ self.loadings
        explained = np.sum(projected * np.linalg.solve(self._gram, projected.T).T, axis=1)
        squares = (np.sum(away**2, axis=1) - explained) / self.noise_variance
        _, log_gram = np.linalg.slogdet(self._gram)
        log_determinant = (n_columns - n_components) * np.log(self.noise_variance) + log_gram
        return -0.5 * (n_columns * np.log(2.0 * np.pi) + log_determinant + squares)


def fit_ppca(rows: ArrayLike, n_components: int) -> PPCASolution:
    """The maximum likelihood in closed form.

    Parameters
    ----------
    rows
        Matrix (N, d) without missing values.
    n_components
        q, at least 1, below d and below the rank of the centred rows: otherwise nothing is left for the noise.

    Raises
    ------
    ValueError
        If q does not leave a positive noise variance.
    """
    matrix = np.asarray(rows, dtype=np.float64)
    n_rows, n_columns = matrix.shape
    mean = matrix.mean(axis=0)
    _, singular, directions = np.linalg.svd(matrix - mean, full_matrices=False)
    eigenvalues = singular**2 / n_rows
    left = float(eigenvalues[n_components:].sum())
    if n_components >= n_columns or left <= 1e-12 * float(eigenvalues.sum()):
        raise ValueError(
            f"n_components={n_components}: the centred data, n_samples={n_rows} by n_features={n_columns}, leave no "
            "variance for the noise; use fewer components, or more rows."
        )
    noise_variance = left / (n_columns - n_components)
    # Beyond the last eigenvalue above σ² a column of W is zero.
    strength = np.sqrt(np.maximum(eigenvalues[:n_components] - noise_variance, 0.0))
    loadings = fixed_signs(directions[:n_components].T) * strength
    found = PPCASolution(loadings, mean, noise_variance, np.nan)
    return PPCASolution(loadings, mean, noise_variance, float(found.log_likelihoods(matrix).sum()))


def fixed_signs(columns: np.ndarray) -> np.ndarray:
    """Columns turned so that the entry of largest size is positive: signs are arbitrary, answers should not be."""
    largest = np.take_along_axis(columns, np.argmax(np.abs(columns), axis=0)[None], axis=0)
    return columns * np.where(largest < 0, -1.0, 1.0)
