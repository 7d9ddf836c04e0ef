"""What a fit knows of the rows of its data: their log likelihood at samples, and what was observed."""

from typing import Any

import jax
import numpy as np

from quenched.compiling import compiled
from quenched.precision import in_double
from quenched.results import Fit
from quenched.text import dotted

_AT_A_TIME = 64  # samples


def log_likelihood_of(fit: Fit, samples: Any) -> dict[str, np.ndarray] | None:
    """That of every row at every sample, by name; None where the fit does not know its rows."""
    if fit.model is not None and fit.model.log_likelihood is not None:
        return fit.model.log_likelihood(samples)
    if fit.origin is None or fit.origin.problem.target.terms is None:
        return None
    problem, terms = fit.origin.problem, fit.origin.problem.target.terms
    hyper = None if problem.hyper_like is None else _own_hyper(fit)

    def of_rows(parameters: Any, data: Any) -> tuple[Any, ...]:
        return terms.log_densities(parameters, data, hyper)

    names = _names(terms)
    with in_double():
        each = compiled(lambda chosen, data: jax.lax.map(lambda one: of_rows(one, data), chosen, batch_size=_AT_A_TIME))
        found = each(samples, problem.data)
    kept = {name: np.asarray(values) for name, values in zip(names, found, strict=True) if name}
    return kept or None


def observed_of(fit: Fit) -> dict[str, Any]:
    """What was observed, by name: of a model, or the rows of the terms of a sum."""
    if fit.model is not None and fit.model.observed is not None:
        return dict(fit.model.observed)
    if fit.origin is None or fit.origin.problem.target.terms is None:
        return {}
    terms, (held, _) = fit.origin.problem.target.terms, fit.origin.problem.data
    observed = {}
    for name, own in zip(_names(terms), held, strict=True):
        for path, value in jax.tree_util.tree_flatten_with_path(own.rows)[0] if name else ():
            inner = dotted(path)
            observed[f"{name}.{inner}" if inner else f"{name}.data"] = np.asarray(value)
    return observed


def _names(terms: Any) -> list[str]:
    """Of the terms that have data, by their functions; empty for the others, which are the prior."""
    names: list[str] = []
    for place, term in enumerate(terms.terms):
        name = getattr(term.function, "__name__", "rows").strip("<>") if term.has_rows else ""
        names.append(f"{name}_{place}" if name and name in names else name)
    return names


def _own_hyper(fit: Fit) -> Any:
    """Hyperparameters as the log density was given them."""
    known = fit.hyper
    return known["hyper"] if isinstance(known, dict) and "hyper" in known else known
