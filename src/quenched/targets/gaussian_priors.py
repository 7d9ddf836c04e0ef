"""Targets whose prior is Gaussian, and known as such: a likelihood with one, and the paper's regression."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.numbers import finite_number, given_function, positive_number, read_data, real_array
from quenched.targets.explaining import ShapeError, explained
from quenched.targets.form import DensePrior, ExactKLForm, GaussianPriorForm
from quenched.targets.target import Target
from quenched.text import harmless, shown

_SYMMETRIC = 1e-8  # differences of a covariance from its transpose that are rounding, in units of its diagonal
_LEARNED_FROM = 0.1  # where learned precisions begin, as in Algorithm 1 of the paper


def with_gaussian_prior(
    log_likelihood: Callable[..., Any],
    *,
    prior_precision: float | None = None,
    prior_mean: Any = None,
    prior_covariance: Any = None,
) -> Target:
    """A log likelihood and a Gaussian prior on the real line, whose KL is exact.

    Parameters
    ----------
    log_likelihood
        log p(Y | w), called as `log_likelihood(parameters[, data][, hyper])`.
    prior_precision
        Of the isotropic prior N(0, I / prior_precision); None learns it by its closed form (paper, Eq. 13).
    prior_mean, prior_covariance
        Instead: a general Gaussian prior over the raveled parameters.

    Examples
    --------
    >>> likelihood = lambda w: -0.5 * jnp.sum((w - 2.0) ** 2)
    >>> fit = qd.fit(qd.with_gaussian_prior(likelihood, prior_precision=1.0), np.zeros(2))
    >>> fit.mean.round(3)
    array([1., 1.])
    """
    given_function("log_likelihood", log_likelihood, "log_likelihood(parameters)")
    if prior_covariance is not None or prior_mean is not None:
        if prior_precision is not None:
            raise ValueError("prior_precision: give either it or prior_mean and prior_covariance, not both.")
        mean = None if prior_mean is None else real_array("prior_mean", prior_mean).flatten()
        covariance = None if prior_covariance is None else _covariance("prior_covariance", prior_covariance)
        # Made once: its inverse and determinant are not cheap. The arrays are our own copies.
        make_form = lru_cache(maxsize=1)(lambda dim: _general_prior(dim, mean, covariance))
        return Target(log_likelihood, make_form=make_form, adds_jacobian=False)
    learned = prior_precision is None
    start = _LEARNED_FROM if prior_precision is None else _positive("prior_precision", prior_precision)
    return Target(
        log_likelihood,
        make_form=lambda dim: ExactKLForm(dim, learned),
        adds_jacobian=False,
        initial_precisions=(start, 1.0),
        reports=("prior_precision",),
    )


def regression(
    f: Callable[..., Any],
    X: Any,
    y: Any,
    *,
    prior_precision: float | None = None,
    noise_precision: float | None = None,
) -> Target:
    """The paper's model: y = f(X; w) + Gaussian noise, w ~ N(0, I / prior_precision).

    Parameters
    ----------
    f
        Model outputs for all inputs, called as f(parameters, X); one written in the paper's order, f(X, parameters),
        is recognised by the shape of what it returns.
    X, y
        Inputs (any pytree; of a DataFrame f sees the columns by name) and targets (an array shaped like the outputs
        of f).
    prior_precision, noise_precision
        Fixed values; None learns them by their closed forms (paper, Eqs. 13 and 14).

    Examples
    --------
    >>> inputs = np.linspace(0.0, 1.0, 30)
    >>> outputs = 1.0 + 2.0 * inputs + 0.1 * np.cos(40.0 * inputs)
    >>> fit = qd.fit(qd.regression(lambda w, x: w[0] + w[1] * x, inputs, outputs), np.zeros(2))
    >>> fit.mean.round(1), sorted(fit.hyper)
    (array([1., 2.]), ['noise_precision', 'prior_precision'])
    """
    given_function("f", f, "f(parameters, X)")
    X, y = read_data("X", X), read_data("y", y)
    targets = real_array("y", y)
    if not targets.size:
        raise ValueError("y: is empty; there is nothing to fit.")
    for path, leaf in jax.tree_util.tree_flatten_with_path(X)[0]:
        real_array("X" + harmless(jax.tree_util.keystr(path)), leaf)
    start_prior = _LEARNED_FROM if prior_precision is None else _positive("prior_precision", prior_precision)
    start_noise = _LEARNED_FROM if noise_precision is None else _positive("noise_precision", noise_precision)
    return Target(
        HalfSquares(f, targets.shape),
        data=(X, targets),
        make_form=lambda dim: ExactKLForm(dim, prior_precision is None, targets.size, noise_precision is None),
        adds_jacobian=False,
        initial_precisions=(start_prior, start_noise),
        reports=("prior_precision", "noise_precision"),
    )


@dataclass(frozen=True)
class HalfSquares:
    """Minus half the sum of squared residuals: what the noise precision multiplies."""

    f: Callable[..., Any]
    shape: tuple[int, ...]

    def __call__(self, parameters, data):
        inputs, targets = data
        return -0.5 * jnp.sum((targets - self._outputs(parameters, inputs)) ** 2)

    def _outputs(self, parameters, inputs):
        returned, first_error = [], None
        for arguments in ((parameters, inputs), (inputs, parameters)):
            try:
                outputs = jax.eval_shape(self.f, *arguments)
            except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
                first_error = first_error or error
                continue
            shape = getattr(outputs, "shape", None)
            if shape == self.shape:
                return self.f(*arguments)
            returned.append(type(outputs).__name__ if shape is None else f"shape {shape}")
        told = None if returned or first_error is None else explained(first_error, "f", parameters, inputs)
        if told is not None and not isinstance(told, ShapeError):
            raise told from first_error
        found = (
            f"returned {returned[0]}" if returned else f"failed with: {str(told or first_error).removeprefix('f: ')}"
        )
        raise ValueError(f"f: f(parameters, X) {found}; it must return the shape of y, {self.shape}.")


def _positive(name: str, value: Any) -> float:
    try:
        return finite_number(name, positive_number(name, value.item() if hasattr(value, "item") else value))
    except Exception as error:  # of whatever it is, when it is looked at
        raise ValueError(f"{name}={shown(value)}: a precision must be a positive number.") from error


def _covariance(name: str, value: Any) -> np.ndarray:
    array = real_array(name, value)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} has shape {array.shape}; a square matrix is needed.")
    spread = np.sqrt(np.abs(np.diag(array)))
    away = np.abs(array - array.T)
    if np.any(away > _SYMMETRIC * np.outer(spread, spread)):
        i, j = np.unravel_index(np.argmax(away), away.shape)
        raise ValueError(
            f"{name}: is not symmetric; its entries at ({i}, {j}) and ({j}, {i}) are {array[i, j]:.6g} and "
            f"{array[j, i]:.6g}, {away[i, j]:.3g} apart."
        )
    return 0.5 * (array + array.T)


def _general_prior(dim: int, mean: np.ndarray | None, covariance: np.ndarray | None) -> GaussianPriorForm:
    centre = np.zeros(dim) if mean is None else mean
    spread = np.eye(dim) if covariance is None else covariance
    if centre.shape != (dim,) or spread.shape != (dim, dim):
        raise ValueError(
            f"prior_mean has shape {centre.shape} and prior_covariance {spread.shape}; "
            f"the parameters need ({dim},) and ({dim}, {dim})."
        )
    try:
        return GaussianPriorForm(DensePrior(centre, spread))
    except np.linalg.LinAlgError as error:
        raise ValueError("prior_covariance: is not positive definite.") from error
