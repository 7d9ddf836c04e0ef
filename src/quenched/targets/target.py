"""Targets: what is approximated.

A target is a function of the parameters in natural units and the form in which its mean enters the bound.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.numbers import finite_number, given_function, positive_number, read_arrays, real_array, yes_or_no
from quenched.targets.explaining import explained
from quenched.targets.form import DensePrior, EntropyForm, ExactKLForm, Form, GaussianPriorForm
from quenched.text import shown

_SYMMETRIC = 1e-8  # differences of a covariance from its transpose that are rounding, in units of its diagonal
_LEARNED_FROM = 0.1  # where learned precisions begin, as in Algorithm 1 of the paper


@dataclass(frozen=True, eq=False)
class Target:
    """A function to be averaged over draws.

    Attributes
    ----------
    function
        Called as `function(parameters[, data][, hyper])`.
    on_host
        The function is NumPy code that returns a value and a gradient; JAX cannot trace it.
    gives_gradient
        False for a function on the host that returns a value alone.
    data
        Data that came with the target; None when they are given to `fit`.
    make_form
        From the number of coordinates on the real line to the form of the bound.
    adds_jacobian
        The function is a density in natural units. A likelihood is not: its Gaussian prior lives on the real line.
    initial_precisions
        Where learned prior and noise precision begin.
    reports
        Which of the two precisions belong to the result.
    terms
        The structure of a sum of terms; None for a function of which nothing is known.
    batched
        A function on the host that takes many parameters in one call.
    on_real_line
        The function takes the parameters on the real line, and is a density there: another package has mapped them.
    up_to_constant
        The function leaves out terms that do not depend on the parameters, and nobody knows how large they are: the
        bound is not comparable with a log evidence.
    """

    function: Callable[..., Any]
    on_host: bool = False
    gives_gradient: bool = True
    data: Any = field(default=None, repr=False)
    make_form: Callable[[int], Form] = field(default=lambda dim: EntropyForm(), repr=False)
    adds_jacobian: bool = True
    initial_precisions: tuple[float, float] = (1.0, 1.0)
    reports: tuple[str, ...] = ()
    batched: bool = False
    on_real_line: bool = False
    up_to_constant: bool = False
    terms: Any = field(default=None, repr=False)

    def handed(self, data: Any) -> Any:
        """What the function is handed as data: those given, or its own; a sum of terms has its rows, and those given."""
        if self.terms is not None:
            return (self.data, data)
        return self.data if data is None else data

    def given(self, handed: Any) -> Any:
        """The data that were given, of those that the function was handed."""
        if self.terms is not None:
            return handed[1]
        return handed if self.data is None else None


def log_density(function: Callable[..., Any]) -> Target:
    """Any unnormalised log density in natural units, JAX-traceable."""
    return Target(function)


def from_value_and_grad(function: Callable[..., Any], *, batched: bool = False) -> Target:
    """A NumPy log density that returns (value, gradient), the gradient shaped like the parameters.

    Called as function(parameters[, data]), with NumPy arrays in natural units, once per draw; or, if it is `batched`, once
    for many draws, which are the leading axis of every array of the parameters, of the values and of the gradient.

    Before a fit it is called six times at and beside the start, where two values at one point, and the gradient and the changes
    of the value along two directions, are compared; more often only where they seem to differ. `fit.n_evaluations` counts these.

    Examples
    --------
    >>> def log_density(p):  # in NumPy, Fortran, C, ...
    ...     return float(-0.5 * np.sum((p - 2.0) ** 2)), 2.0 - p
    >>> qd.fit(qd.from_value_and_grad(log_density), np.zeros(2)).mean.round(3)
    array([2., 2.])
    """
    given_function("fun", function, "fun(parameters) -> (value, gradient)")
    return Target(function, on_host=True, batched=yes_or_no("batched", batched))


def from_value(function: Callable[..., Any]) -> Target:
    """A NumPy log density or simulator that returns its value alone.

    Called as function(parameters[, data]), with NumPy arrays in natural units. Its gradients are differences of values at
    common draws, or a quadratic that is fitted to the values at all draws, whichever takes fewer calls; these are counted
    in `fit.settings["calls"]`. Same parameters, same value: with noise of its own, fix its seed.

    Examples
    --------
    >>> def simulator(p):  # in NumPy, without a gradient
    ...     return float(-0.5 * np.sum((p - 2.0) ** 2))
    >>> fit = qd.fit(qd.from_value(simulator), np.zeros(2))
    >>> fit.mean.round(3)
    array([2., 2.])
    """
    given_function("fun", function, "fun(parameters) -> value")
    return Target(function, on_host=True, gives_gradient=False)


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
    X, y = read_arrays("X", X), read_arrays("y", y)
    targets = real_array("y", y)
    if not targets.size:
        raise ValueError("y: is empty; there is nothing to fit.")
    for path, leaf in jax.tree_util.tree_flatten_with_path(X)[0]:
        real_array("X" + jax.tree_util.keystr(path), leaf)
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
        if told is not None:
            raise told from first_error
        found = f"returned {returned[0]}" if returned else f"failed with: {first_error}"
        raise ValueError(f"f: f(parameters, X) {found}; it must return the shape of y, {self.shape}.")


@dataclass(frozen=True)
class Asking:
    """`call` of one function, which can be sent to another process."""

    function: Callable[..., Any]

    def __call__(self, parameters: Any, data: Any) -> Any:
        return call(self.function, parameters, data, None)


def call(function: Callable[..., Any], parameters: Any, data: Any, hyper: Any) -> Any:
    """`function(parameters[, data][, hyper])`, with what was not given left out.

    Raises
    ------
    ValueError
        When the function does not take them, or does with them what JAX cannot trace.
    """
    given = {name: value for name, value in (("data", data), ("hyper", hyper)) if value is not None}
    signature = _signature(function)
    if signature is None:
        return _explaining(function, (parameters, *given.values()), {})
    named = {p.name for p in signature.parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    positional = [value for name, value in given.items() if name not in named]
    keywords = {name: value for name, value in given.items() if name in named}
    try:
        signature.bind(parameters, *positional, **keywords)
    except TypeError as error:
        wanted = ", ".join(["parameters", *given])
        raise ValueError(
            f"log_density: it is called as log_density({wanted}), but takes {signature}: {error}."
        ) from error
    return _explaining(function, (parameters, *positional), keywords)


def _explaining(function: Callable[..., Any], positional: tuple, keywords: dict[str, Any]) -> Any:
    try:
        return function(*positional, **keywords)
    except Exception as error:
        told = explained(error, "log_density", *positional, *keywords.values())
        if told is None:
            raise
        raise told from error


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


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
