"""New rows: the posterior of each, and its bound, with loadings, offset and scale fixed.

Rows are independent then, so every row is a small problem of its own. All rows have the same draws, and each its own
ascent: its answer does not depend on the rows that came with it.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from quenched.arrays import Array
from quenched.families import FullGaussian
from quenched.models.likelihood import Columns, cut, cut_rows, log_likelihood
from quenched.models.noise import Noise
from quenched.models.reweighting import Parameters, infer
from quenched.optimise import LBFGS, minimise

_SWEEPS = 30
_MOST_ROWS = 64  # at a time
_GRADIENT_TOLERANCE = 1e-6  # in whitened coordinates
_MAX_EVALUATIONS = 200


class Projection(NamedTuple):
    """Posteriors of rows: means (N, q), covariances (N, q, q), and the bound on log p(y) of each in nats."""

    means: np.ndarray
    covariances: np.ndarray
    bounds: np.ndarray


def project(noise: Noise, data: np.ndarray, parameters: Parameters, draws: np.ndarray) -> Projection:
    """Fit the posterior of every row on the same draws (S, q)."""
    found = [
        _project(noise, data[first : first + _MOST_ROWS], parameters, draws)
        for first in range(0, len(data), _MOST_ROWS)
    ]
    return Projection(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _project(noise: Noise, data: np.ndarray, parameters: Parameters, draws: np.ndarray) -> Projection:
    n_rows = len(data)
    # Powers of two: few shapes to compile, whatever the number of rows.
    data = np.concatenate([data, np.repeat(data[:1], 2 ** int(n_rows - 1).bit_length() - n_rows, axis=0)])
    rows = infer(noise, data, parameters, n_sweeps=_SWEEPS)
    references = rows.as_blocks().stacks[0]
    columns = cut(data)
    table = np.concatenate([parameters.loadings, parameters.offset[:, None]], axis=1)
    coefficients = cut_rows(table, columns.count.shape[1])
    with jax.enable_x64(True):
        answer = _ascend(noise, columns, coefficients, np.log(parameters.scale), draws, references)
        return Projection(*(np.asarray(part)[:n_rows] for part in answer))


@partial(jax.jit, static_argnums=0)
def _ascend(noise: Noise, columns: Columns, coefficients, log_scale, draws, references: FullGaussian):
    """The ascent of every row in the whitened coordinates of its reference, side by side."""

    def one(values: Array, reference: FullGaussian):
        row = Columns(values[:, None, :], columns.count)
        origin, unravel = ravel_pytree(jax.tree.map(jnp.zeros_like, reference))

        def bound(vector: Array) -> Array:
            member = reference.compose(unravel(vector))
            likelihood = jax.vmap(lambda x: log_likelihood(noise, x[None], coefficients, log_scale, row))
            return jnp.mean(likelihood(member.transform(draws))) - member.kl_to_isotropic(1.0)

        state, _ = minimise(
            jax.value_and_grad(lambda vector: -bound(vector)),
            LBFGS(memory=4),  # of the few coordinates of one row; compiles sooner
            origin,
            gradient_tolerance=_GRADIENT_TOLERANCE,
            max_evaluations=_MAX_EVALUATIONS,
        )
        member = reference.compose(unravel(state.position))
        return member.mean, member.covariance, -state.value

    return jax.vmap(one, in_axes=(1, 0))(columns.values, references)
