"""Give a loaded fit its log density back."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from quenched.draws import TermDraws, make, term_draws
from quenched.numbers import check_data, read_data
from quenched.objective import Problem, make_problem, worth
from quenched.precision import in_double
from quenched.projected import ProjectedBound, bound_at
from quenched.results.fit import Fit, Origin
from quenched.targets import Hyper, Model, Target, read_target
from quenched.transforms import Space, describe_space

_SAME = 1e-6  # nats, relative to the size of the bound


def attach(fit: Fit, log_density: Callable[..., Any] | Target | Model, data: Any = None) -> Fit:
    """The same fit, knowing its log density and data, or its model: it can be diagnosed, resampled, and may predict.

    Raises
    ------
    ValueError
        When the bound is not what it was: the log density or the data are not those of the fit.
    """
    model = log_density if isinstance(log_density, Model) else None
    target = read_target(log_density) if model is None else model.target
    with in_double():
        space = fit.space if model is None else _space_of(model, fit.space)
        data = model.data if data is None and model is not None else data
        own = read_data("data", data)
        check_data(target.handed(own))
        problem = make_problem(target, space, own, own_hyper(fit, target), model=model)
        known = fit.hyper if isinstance(fit.hyper, dict) else {}
        hyper = problem.hyper._replace(**{name: np.asarray(known[name]) for name in target.reports if name in known})
        draws = draws_of(fit, problem, hyper)
    return dataclasses.replace(fit, space=space, origin=Origin(problem, hyper, draws))


def draws_of(fit: Fit, problem: Problem, hyper: Hyper) -> Any:
    """The draws that a fit stands on, once its bound on them has been seen to be that of this problem."""
    settings, member = fit.settings, fit.posterior.member
    if settings["draws"] == TermDraws.kind:
        draws = term_draws(fit.n_draws, settings["draws_seed"])
        bound = bound_at(ProjectedBound(problem, draws, skewed=not member.affine), member, hyper)
    else:
        groups = _as_tuples(settings["groups"])
        draws = make(settings["draws"], fit.n_draws, fit.posterior.dim, settings["draws_seed"], groups)
        bound, _ = worth(problem, member, hyper, draws, profile=False)
    if not abs(bound - fit.bound) <= _SAME * max(1.0, abs(fit.bound)):
        raise ValueError(
            f"log_density, data: the bound of this fit is {fit.bound:.6f} nats, but with these it is {bound:.6f}; give "
            "the log density and the data that it was fitted to."
        )
    return draws


def _space_of(model: Model, saved: Space) -> Space:
    """That of the model, which knows more than the file."""
    space, _ = describe_space(model.start, model.transforms)
    if not same_parameters(space, saved):
        shapes = lambda leaves: ", ".join(f"{leaf.name} {leaf.shape}" for leaf in leaves)
        raise ValueError(f"model: it has {shapes(space.leaves)}, but the fit {shapes(saved.leaves)}.")
    return space


def same_parameters(one: Space, other: Space) -> bool:
    """Whether both are of the same numbers, taken to the real line alike."""
    describe = lambda space: [(leaf.name, leaf.shape, leaf.transform) for leaf in space.leaves]
    return describe(one) == describe(other)


def own_hyper(fit: Fit, target: Target) -> Any:
    """The user's own hyperparameters of an earlier fit, without the precisions of its target."""
    if not target.reports:
        return fit.hyper
    return fit.hyper.get("hyper") if isinstance(fit.hyper, dict) else None


def _as_tuples(groups: Any) -> Any:
    return None if groups is None else tuple(tuple(group) for group in groups)
