"""A fit as ArviZ data: posterior, predictions, log likelihood per row, observed data, sample statistics and diagnostics.

ArviZ 0.x has `InferenceData`, ArviZ 1 (and arviz-base) xarray's `DataTree`; the groups and names are the same in both, and the
one that is installed is made. Needs the extra `arviz`.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from quenched.draws import Purpose, generator
from quenched.export.rows import log_likelihood_of, observed_of
from quenched.numbers import seed_number, whole_number
from quenched.objective import log_q, log_ratios
from quenched.precision import in_double
from quenched.results import Fit, insist_fit

if TYPE_CHECKING:
    from xarray import DataTree

_NUMBERS = ("bound", "check_bound", "check_error", "gap", "shortfall", "khat", "evidence", "evidence_error", "seconds")
_COUNTS = ("n_draws", "n_evaluations", "n_rounds")
_DIAGNOSED = ("optimisation_error", "optimisation_distance", "bound_error", "family_gap")


def to_arviz(fit: Fit, n: int = 1000, seed: int = 0) -> "DataTree | Any":
    """Samples of the posterior as ArviZ data with one chain.

    The samples are independent: diagnostics of a Markov chain, such as effective sample size, say nothing about the
    fit. `fit.verdict` does; it is among the attributes of the posterior, as are the bound, its check, k-hat and the evidence,
    and after `fit.diagnose()` what it found.

    The groups `posterior_predictive`, `log_likelihood` and `observed_data` are there where the fit knows its rows: for models
    of front ends and estimators, and for sums of terms, whose terms with data are taken for the likelihood. `sample_stats` has
    the log density `lp` of each sample and `log_weight`, its log importance weight.

    Parameters
    ----------
    fit
        What to sample.
    n
        How many samples.
    seed
        Of the samples.

    Returns
    -------
    xarray.DataTree
        Or `arviz.InferenceData`, where the installed ArviZ is older than 1.

    Raises
    ------
    ImportError
        Without ArviZ; the message names the extra.

    Examples
    --------
    >>> from quenched.export import to_arviz
    >>> fit = qd.fit(lambda p: -0.5 * jnp.sum(p["w"] ** 2), {"w": np.zeros(3)})
    >>> data = to_arviz(fit, n=200)  # as fit.to_arviz(200)
    >>> data["posterior"]["w"].shape  # chain, draw, and its own
    (1, 200, 3)
    """
    insist_fit(fit)
    n, seed = whole_number("n", n, 1), seed_number("seed", seed)
    samples = fit.sample(n, seed)
    groups = {"posterior": _chain(_named(fit, samples))}
    if fit.model is not None and fit.model.predict is not None:
        groups["posterior_predictive"] = _chain(fit.model.predict(samples, seed))
    rows = log_likelihood_of(fit, samples)
    if rows is not None:
        groups["log_likelihood"] = _chain(rows)
    statistics = _statistics(fit, n, seed)
    if statistics:
        groups["sample_stats"] = _chain(statistics)
    observed = observed_of(fit)
    if observed:
        groups["observed_data"] = {name: np.asarray(value) for name, value in observed.items()}
    return _made(groups, *_axes(fit, groups), _attributes(fit, seed))


def _made(
    groups: dict[str, dict[str, np.ndarray]],
    dims: dict[str, list[str]],
    coords: dict[str, Any],
    attributes: dict[str, Any],
) -> Any:
    """With the ArviZ that there is."""
    if _old_arviz():
        import arviz  # pyright: ignore

        made = arviz.from_dict(**groups, dims=dims, coords=coords)  # pyright: ignore
        made["posterior"].attrs.update(attributes)
        return made
    try:
        import arviz_base
    except ImportError as error:
        raise ImportError('Export to ArviZ needs arviz-base: pip install "quenched[arviz]".') from error
    return arviz_base.from_dict(groups, dims=dims, coords=coords, attrs={"posterior": attributes})


def _old_arviz() -> bool:
    """ArviZ before 1 is installed, whose functions want `InferenceData`."""
    try:
        return int(version("arviz").split(".")[0]) < 1
    except PackageNotFoundError:
        return False


def _named(fit: Fit, samples: Any) -> dict[str, Any]:
    """Samples by name: the model's own, or those of the leaves of `start`."""
    if fit.model is not None and fit.model.values is not None:
        return samples
    names = [leaf.name for leaf in fit.space.leaves]
    return dict(zip(names, jax.tree.leaves(samples), strict=True))


def _chain(values: dict[str, Any]) -> dict[str, np.ndarray]:
    """As one chain."""
    return {name: np.asarray(value)[None] for name, value in values.items()}


def _statistics(fit: Fit, n: int, seed: int) -> dict[str, np.ndarray]:
    """The log density of the samples, and their importance weights; not of a simulator, which is dear."""
    if fit.origin is None or (fit.origin.problem.target.on_host and fit.model is None):
        return {}
    problem, hyper, _ = fit.origin
    z = generator(seed, Purpose.SAMPLES).standard_normal((n, fit.posterior.dim))  # those of `fit.sample`
    with in_double():
        ratios = log_ratios(problem, fit.posterior.member, hyper, z)
        own = np.asarray(log_q(fit.posterior.member, z))
    return {"lp": ratios + own, "log_weight": ratios}


def _axes(fit: Fit, groups: dict[str, dict[str, np.ndarray]]) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Names and labels of axes, as far as they fit the arrays."""
    if fit.model is None:
        return {}, {}
    shapes = {name: value.shape[2:] for name, value in groups["posterior"].items()}
    shapes |= {name: value.shape for name, value in groups.get("observed_data", {}).items()}
    dims = {
        name: list(axes)
        for name, axes in (fit.model.dims or {}).items()
        if axes and len(shapes.get(name, ())) == len(axes)
    }
    lengths = {axis: size for name, axes in dims.items() for axis, size in zip(axes, shapes[name], strict=True)}
    labels = {axis: list(known) for axis, known in (fit.model.coords or {}).items() if known is not None}
    return dims, {axis: known for axis, known in labels.items() if lengths.get(axis) == len(known)}


def _attributes(fit: Fit, seed: int) -> dict[str, Any]:
    """Plain numbers and texts, which every file format can hold."""
    found = {
        "inference_library": "quenched",
        "inference_library_version": version("quenched"),
        "status": str(fit.status),
        "verdict": fit.verdict,
        "family": str(fit.settings["family"]),
        "seed": seed,
        **{name: float(getattr(fit, name)) for name in _NUMBERS},
        **{name: int(getattr(fit, name)) for name in _COUNTS},
    }
    if fit.diagnosis is not None:
        found |= {name: float(getattr(fit.diagnosis, name)) for name in _DIAGNOSED}
    return found
