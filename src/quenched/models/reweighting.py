"""Where to begin: variational EM with reweighted rows and columns.

Every residual is given the Gaussian that touches its noise from below (half-quadratic, or iteratively reweighted, least
squares); with weights fixed, posteriors of rows and coefficients of columns are in closed form. For Gaussian noise this
is the EM algorithm of PPCA. For others it comes near the optimum of the bound, from where gradients take over.
"""

from typing import NamedTuple

import numpy as np

from quenched.families import Blocks, BlocksGaussian, factor_of_inverse
from quenched.models.closed_form_ppca import fit_ppca
from quenched.models.noise import Noise, pull
from quenched.precision import in_double

_RIDGE = 1e-10  # relative, for columns that fewer rows determine than they have coefficients
_FIRST_SWEEPS, _SWEEPS = 6, 12
_CLIP = 3.0  # median deviations


class Parameters(NamedTuple):
    """What all rows share: y = loadings x + offset + scale · noise."""

    loadings: np.ndarray  # (d, q)
    offset: np.ndarray  # (d,)
    scale: float


class RowPosteriors(NamedTuple):
    """A Gaussian for the latent variables of each row."""

    means: np.ndarray  # (N, q)
    precisions: np.ndarray  # (N, q, q)

    @property
    def covariances(self) -> np.ndarray:
        return np.linalg.inv(self.precisions)

    def as_blocks(self) -> BlocksGaussian:
        """One Gaussian over the latent variables of all rows, with a block for each."""
        n_rows, q = self.means.shape
        scales = factor_of_inverse(self.precisions)
        return Blocks([q] * n_rows).with_scales(self.means.reshape(-1), scales, (n_rows * q,))


def first_guess(noise: Noise, data: np.ndarray, n_components: int) -> tuple[Parameters, RowPosteriors]:
    """Parameters and posteriors to begin with: the better of an ordinary and a robust first guess."""
    tried = []
    for guess in (_ordinary(data, n_components), _robust(data, n_components)):
        pair = sweep(noise, data, guess, infer(noise, data, guess, n_sweeps=5), _FIRST_SWEEPS)
        tried.append((_log_density(noise, data, *pair), pair))
    parameters, rows = max(tried, key=lambda entry: entry[0])[1]
    return sweep(noise, data, parameters, rows, _SWEEPS)


def infer(noise: Noise, data: np.ndarray, parameters: Parameters, *, n_sweeps: int) -> RowPosteriors:
    """Posteriors of rows, the parameters being known."""
    q = parameters.loadings.shape[1]
    rows = RowPosteriors(np.zeros((len(data), q)), np.tile(np.eye(q), (len(data), 1, 1)))
    for _ in range(n_sweeps):
        rows = _posteriors(pulls_of_entries(noise, data, parameters, rows), data, parameters)
    return rows


def sweep(
    noise: Noise, data: np.ndarray, parameters: Parameters, rows: RowPosteriors, n: int
) -> tuple[Parameters, RowPosteriors]:
    """n rounds of weights and, these fixed, coefficients, posteriors, the scale, and the best units for x."""
    for _ in range(n):
        weights = pulls_of_entries(noise, data, parameters, rows)
        right = (weights * data).T @ _with_one(rows.means)
        coefficients = np.linalg.solve(column_precisions(weights, rows), right[..., None])[..., 0]
        parameters = Parameters(coefficients[:, :-1], coefficients[:, -1], parameters.scale)
        rows = _posteriors(weights, data, parameters)
        ratio = float(np.mean(weights * _expected_squares(data, parameters, rows)))
        parameters = parameters._replace(scale=parameters.scale * np.sqrt(max(ratio, 1e-4)))
        parameters, rows = recentred(parameters, rows)
    return parameters, rows


def _posteriors(weights: np.ndarray, data: np.ndarray, parameters: Parameters) -> RowPosteriors:
    loadings, q = parameters.loadings, parameters.loadings.shape[1]
    precisions = (weights @ _outer(loadings)).reshape(-1, q, q) + np.eye(q)
    means = np.linalg.solve(precisions, ((weights * (data - parameters.offset)) @ loadings)[..., None])[..., 0]
    return RowPosteriors(means, precisions)


def pulls_of_entries(noise: Noise, data: np.ndarray, parameters: Parameters, rows: RowPosteriors) -> np.ndarray:
    """How strongly each entry of the data pulls, in its own units: (N, d)."""
    size = np.sqrt(_expected_squares(data, parameters, rows)) / parameters.scale
    with in_double():
        return np.asarray(pull(noise, size)) / parameters.scale**2


def column_precisions(weights: np.ndarray, rows: RowPosteriors) -> np.ndarray:
    """Σ_n weight E[a aᵀ] with a = (x, 1), for every column: (d, q+1, q+1)."""
    design = _with_one(rows.means)
    moments = design[:, :, None] * design[:, None, :]
    moments[:, :-1, :-1] += rows.covariances
    side = design.shape[1]
    sums = (weights.T @ moments.reshape(len(design), -1)).reshape(-1, side, side)
    size = np.trace(sums, axis1=1, axis2=2)
    return sums + (_RIDGE * size[:, None, None] + 1e-300) * np.eye(side)


def recentred(parameters: Parameters, rows: RowPosteriors) -> tuple[Parameters, RowPosteriors]:
    """The same fit in the units that agree best with x ~ N(0, I), which the likelihood leaves open."""
    centre = rows.means.mean(axis=0)
    away = rows.means - centre
    spread = np.linalg.cholesky(away.T @ away / len(away) + rows.covariances.mean(axis=0))
    means = np.linalg.solve(spread, away.T).T
    offset = parameters.offset + parameters.loadings @ centre
    return (
        Parameters(parameters.loadings @ spread, offset, parameters.scale),
        RowPosteriors(means, spread.T @ rows.precisions @ spread),
    )


def _ordinary(data: np.ndarray, n_components: int) -> Parameters:
    closed = fit_ppca(data, n_components)
    return Parameters(closed.loadings, closed.mean, float(np.sqrt(closed.noise_variance)))


def _robust(data: np.ndarray, n_components: int) -> Parameters:
    """Medians, and the principal components of what is left, clipped."""
    offset = np.median(data, axis=0)
    away = data - offset
    size = float(np.median(np.abs(away))) or float(np.mean(np.abs(away)))
    closed = fit_ppca(np.clip(away, -_CLIP * size, _CLIP * size), n_components)
    return Parameters(closed.loadings, offset + closed.mean, size)


def _expected_squares(data: np.ndarray, parameters: Parameters, rows: RowPosteriors) -> np.ndarray:
    """E[(y − Wx − ξ)²] of every entry."""
    loadings, q = parameters.loadings, parameters.loadings.shape[1]
    spread = rows.covariances.reshape(-1, q * q) @ _outer(loadings).T
    return (data - rows.means @ loadings.T - parameters.offset) ** 2 + spread


def _log_density(noise: Noise, data: np.ndarray, parameters: Parameters, rows: RowPosteriors) -> float:
    residuals = (data - rows.means @ parameters.loadings.T - parameters.offset) / parameters.scale
    with in_double():
        likelihood = float(np.sum(np.asarray(noise(residuals)))) - residuals.size * np.log(parameters.scale)
    return likelihood - 0.5 * float(np.sum(rows.means**2))


def _outer(loadings: np.ndarray) -> np.ndarray:
    """w wᵀ of every row w, raveled."""
    return (loadings[:, :, None] * loadings[:, None, :]).reshape(len(loadings), -1)


def _with_one(means: np.ndarray) -> np.ndarray:
    return np.concatenate([means, np.ones((len(means), 1))], axis=1)
