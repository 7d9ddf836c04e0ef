"""Loadings, offset and scale raised on the bound by gradient, together with the posteriors of all rows (paper, Sec. 3.5).

The bound is (1/S) Σ_s log p(Y | X_s) − Σ_n KL(q(x_n) ‖ N(0, I)) with one q × q Gaussian per row, and is raised by `fit`
like any other. The parameters are its hyperparameters, in units of their own uncertainty: the coefficients of a column
are multiplied by a factor of the inverse of their curvature at the start, as the latent variables are by the scale of
their posterior. Tens of thousands of parameters then need some sixty evaluations.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.draws import Draws
from quenched.families import Blocks
from quenched.fitting import Joint, Method, fit, fit_from
from quenched.models.likelihood import Columns, cut_columns, cut_rows, log_likelihood
from quenched.models.noise import Noise
from quenched.models.reweighting import Parameters, RowPosteriors, column_precisions, first_guess, pulls_of_entries
from quenched.precision import in_double
from quenched.results import Fit
from quenched.targets import with_gaussian_prior

_MEMORY = 2**30  # bytes for evaluating the likelihood; beyond, the draws come in chunks too


class ParameterFrame(NamedTuple):
    """Where the parameters begin and the units in which they move."""

    coefficients: np.ndarray  # (chunks, width, q + 1)
    factors: np.ndarray  # (chunks, width, q + 1, q + 1)
    log_scale: np.ndarray
    log_scale_unit: np.ndarray

    def read(self, hyper: dict[str, Any]) -> tuple[Any, Any]:
        """Coefficients and log scale."""
        moved = jnp.einsum("kcij,kcj->kci", self.factors, hyper["coefficients"])
        return self.coefficients + moved, self.log_scale + self.log_scale_unit * hyper["log_scale"]


def raise_parameters(
    noise: Noise,
    data: np.ndarray,
    n_components: int,
    *,
    draws: int | Draws,
    seed: int,
    method: Method | None,
    tolerance: float,
    max_evaluations: int,
) -> tuple[Parameters, Fit]:
    """The parameters with the highest bound, and the fit that found them."""
    first, rows = first_guess(noise, data, n_components)
    columns = cut_columns(data)
    origin = _origin(noise, data, first, rows, columns.count.shape[1])
    target = with_gaussian_prior(partial(_of_parameters, noise), prior_precision=1.0)
    options = {
        "data": (columns, origin),
        "hyper": {"coefficients": np.zeros(origin.coefficients.shape), "log_scale": np.zeros(())},
        "family": Blocks([n_components] * len(data)),
        "draws": draws,
        "seed": seed,
        "memory": _MEMORY,
    }
    if method is None:
        joint = Joint(gradient_tolerance=tolerance, max_evaluations=max_evaluations)
        posterior = jax.tree.map(lambda leaf: leaf[None], rows.as_blocks())
        result = fit_from(posterior, target, rows.means, method=joint, **options)[0]
    else:
        result = fit(target, rows.means, method=method, throw=False, progress=False, **options)
    with in_double():
        coefficients, log_scale = jax.tree.map(np.asarray, origin.read(result.hyper["hyper"]))
    table = coefficients.reshape(-1, n_components + 1)[: data.shape[1]]
    return Parameters(table[:, :-1], table[:, -1], float(np.exp(log_scale))), result


def _of_parameters(noise: Noise, latent, data: tuple[Columns, ParameterFrame], hyper):
    columns, origin = data
    return log_likelihood(noise, latent, *origin.read(hyper), columns)


def _origin(noise: Noise, data: np.ndarray, parameters: Parameters, rows: RowPosteriors, width: int) -> ParameterFrame:
    curvature = column_precisions(pulls_of_entries(noise, data, parameters, rows), rows)
    factors = np.linalg.inv(np.linalg.cholesky(curvature)).swapaxes(1, 2)
    table = np.concatenate([parameters.loadings, parameters.offset[:, None]], axis=1)
    return ParameterFrame(
        cut_rows(table, width),
        cut_rows(factors, width),
        np.asarray(np.log(parameters.scale)),
        np.asarray(1.0 / np.sqrt(data.size)),
    )
