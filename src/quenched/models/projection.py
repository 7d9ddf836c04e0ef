"""New rows: the posterior of each, and its bound, with loadings, offset and scale fixed.

Rows are independent then, so every row is a small problem of its own, and all are fitted together. All have the same
draws, and each its own ascent: its answer does not depend on the rows that came with it.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from quenched.draws import Draws
from quenched.families import Full
from quenched.fitting import Joint, fit_from
from quenched.models.likelihood import Columns, cut_columns, cut_rows, log_likelihood
from quenched.models.noise import Noise
from quenched.models.reweighting import Parameters, infer
from quenched.objective import Rows
from quenched.targets import Target, with_gaussian_prior

_SWEEPS = 30
_ASCENT = Joint(gradient_tolerance=1e-6, max_evaluations=200)


class Projection(NamedTuple):
    """Posteriors of rows: means (N, q), covariances (N, q, q), and the bound on log p(y) of each in nats."""

    means: np.ndarray
    covariances: np.ndarray
    bounds: np.ndarray


def project(noise: Noise, data: np.ndarray, parameters: Parameters, draws: Draws) -> Projection:
    """Fit the posterior of every row on the same draws, from where reweighting leads."""
    rows, columns = infer(noise, data, parameters, n_sweeps=_SWEEPS), cut_columns(data)
    table = np.concatenate([parameters.loadings, parameters.offset[:, None]], axis=1)
    shared = (columns.count, cut_rows(table, columns.count.shape[1]), np.asarray(np.log(parameters.scale)))
    own = np.moveaxis(columns.values, 1, 0)  # (N, chunks, width)
    posterior = Full().member(rows.means, rows.precisions, rows.means.shape[1:])
    fits = fit_from(
        posterior,
        _of_one_row(noise),
        np.zeros(rows.means.shape[1]),
        rows=Rows(own, shared),
        draws=draws,
        method=_ASCENT,
        check=2,
    )
    return Projection(fits.mean, fits.covariance, fits.bound)


@lru_cache(maxsize=32)  # the same noise gives the same function, which is then compiled once
def _of_one_row(noise: Noise) -> Target:
    def likelihood(latent, data):
        (count, coefficients, log_scale), values = data
        return log_likelihood(noise, latent[None], coefficients, log_scale, Columns(values[:, None], count))

    return with_gaussian_prior(likelihood, prior_precision=1.0)
