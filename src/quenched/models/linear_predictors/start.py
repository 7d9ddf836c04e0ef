"""Where the rounds begin: at zero; or, with many rows for every weight, near the mode, which is then near the mean.

A round takes a factorisation and the variances of all predictors, a step towards the mode two products with the rows.
"""

from typing import NamedTuple

import numpy as np

from quenched.models.linear_predictors.arguments import Array
from quenched.models.linear_predictors.design import Design
from quenched.models.linear_predictors.likelihoods import Likelihood
from quenched.models.linear_predictors.sites import LinearProblem
from quenched.optimise import LBFGS

_ROWS_PER_WEIGHT = 20
_STEPS = 30
_ALPHA_STEPS = 8
_GRADIENT = 0.4  # at the mode, in nats per posterior sd: the rounds do the rest


class Start(NamedTuple):
    """Means and variances of the predictors, and the log prior precision."""

    means: Array
    variances: Array
    log_alpha: float


def first_guess(problem: LinearProblem, likelihood: Likelihood) -> Start:
    """A start for the rounds."""
    design, shape, log_alpha = problem.design, likelihood.site_shape, problem.start_log_alpha()
    zero = np.zeros(shape[:-1] if len(shape) == 3 else shape)
    n_predictors = 1 if zero.ndim == 1 else shape[1]
    at_zero = Start(zero, np.zeros(shape), log_alpha)
    if design.gram is None or len(design) < _ROWS_PER_WEIGHT * n_predictors * design.view.n_coordinates:
        return at_zero
    rank = design.view.rank
    values, vectors = np.linalg.eigh(design.gram[:rank, :rank])
    values = np.maximum(values, 0.0)
    vector = np.zeros((n_predictors, design.view.n_coordinates))
    few, places = design.some()
    heard = likelihood.some(places)
    curvature = _mean_curvature(heard, zero[places], few.counts)
    # A first look at some of the rows, and then at all.
    for rows, said in ((few, heard), (design, likelihood)):
        prior = problem.prior(problem.alpha(log_alpha))
        # The spread of the posterior under the mean curvature, taken for that of every predictor; intercepts go their own way.
        scale = np.diag(1.0 / np.sqrt(curvature * np.diag(design.gram) + prior))
        scale[:rank, :rank] = vectors / np.sqrt(curvature * values + prior[0])
        vector = _towards_mode(rows, said, prior, scale, vector)
        means = rows.times(vector[0] if zero.ndim == 1 else vector.T)
        seen = means if rows is few else means[places]
        curvature = _mean_curvature(heard, seen, few.counts)
        if problem.prior_precision is None:
            log_alpha = _next_log_alpha(problem, curvature * values, vector[:, :rank] @ vectors, log_alpha)
    # The mean variance of a predictor stands for that of each. Under it the mean is further out than the mode: along the same
    # ray, for it is there that the data say least.
    unsure = float(np.sum(values / (curvature * values + problem.alpha(log_alpha))))
    variance = (unsure + (design.view.centre is not None) / curvature) / float(np.sum(design.counts))
    variances = np.full(shape, variance) if len(shape) == 1 else np.broadcast_to(variance * np.eye(shape[1]), shape)
    found = likelihood.expectations(means, variances)
    held = float(np.sum(prior * vector**2))
    slope = float(np.sum(design.counted(found.push * means))) - held
    bend = (
        means * means * found.curvature if means.ndim == 1 else np.einsum("nj,njk,nk->n", means, found.curvature, means)
    )
    further = 1.0 + slope / (float(np.sum(design.counted(bend))) + held) if held > 0 else 1.0
    if problem.prior_precision is None:
        log_alpha = _next_log_alpha(problem, curvature * values, further * (vector[:, :rank] @ vectors), log_alpha)
    return Start(further * means, variances, log_alpha)


def _next_log_alpha(problem: LinearProblem, precision: Array, along: Array, log_alpha: float) -> float:
    """MacKay's equation solved, the weights following.

    `precision` is that of the data along each eigenvector, `along` the weights of each predictor on them: found under one
    prior, they are shrunk otherwise under another.
    """
    alpha = problem.alpha(log_alpha)
    pulled = along * (precision + alpha)
    for _ in range(_ALPHA_STEPS):
        determined = len(along) * float(np.sum(precision / (precision + alpha)))
        squared = float(np.sum((pulled / (precision + alpha)) ** 2))
        alpha = problem.alpha(float(np.log(max(determined, 1e-3) / max(squared, 1e-300))))
    return float(np.log(alpha))


def _mean_curvature(likelihood: Likelihood, means: Array, counts: Array) -> float:
    """Of one predictor of one item, on average."""
    found = likelihood.expectations(means, np.zeros(likelihood.site_shape)).curvature
    own = found if found.ndim == 1 else np.trace(found, axis1=1, axis2=2) / found.shape[1]
    return float(counts @ own / np.sum(counts))


def _towards_mode(design: Design, likelihood: Likelihood, prior: Array, scale: Array, start: Array) -> Array:
    """L-BFGS from coordinates (d, r), in coordinates in which the curvature is about one."""
    shape = start.shape
    one = len(likelihood.site_shape) == 1

    def loss(whitened: Array) -> tuple[float, Array]:
        vector = start + whitened.reshape(shape) @ scale.T
        values, push = likelihood.at(design.times(vector[0] if one else vector.T))
        gradient = np.atleast_2d(design.transposed_times(design.counted(push)).T) - prior * vector
        raised = float(design.counts @ values) - 0.5 * float(np.sum(prior * vector**2))
        slope = (gradient @ scale).ravel()
        return (-raised, -slope) if np.isfinite(raised) else (np.inf, np.zeros_like(slope))

    minimiser = LBFGS(first_step=np.inf)  # where the curvature is one, minus the gradient is the step
    state = minimiser.init(np.zeros(start.size))
    for _ in range(_STEPS):
        state = minimiser.step(state, *loss(state.trial))
        if state.stalled or np.max(np.abs(state.gradient)) <= _GRADIENT:
            break
    return start + state.position.reshape(shape) @ scale.T
