"""Targets: what is approximated.

A target is a function of the parameters in natural units and the form in which its mean enters the bound.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quenched.numbers import given_function, yes_or_no
from quenched.targets.form import EntropyForm, Form


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
