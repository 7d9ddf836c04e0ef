# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""PyMC models, and Bambi's, which are PyMC models: through PyMC's own JAX graph."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.compiling import compiled
from quenched.frontends.packages import need
from quenched.frontends.recognising import transforms_of
from quenched.frontends.seeing_through import see_through
from quenched.precision import in_double
from quenched.targets import Model, Target
from quenched.text import shown

Arrays = dict[str, Any]


def from_pymc(model: Any) -> Model:
    """A PyMC model, or a Bambi one.

    `fit(from_pymc(model))` fits all free variables, imputed missing values included. `fit.sample(n)` has the names of
    `pm.sample`, deterministics included; `fit.predict(n)` is PyMC's own posterior predictive; dims and coords are kept.
    Large models are seen through as in `from_numpyro`.
    What the model holds as `pm.Data` is its `data`: `fit_many(model, data={"x": ..., "y": ...})` fits it to many.

    Parameters
    ----------
    model
        A `pymc.Model`, or a `bambi.Model`.

    Raises
    ------
    ValueError
        When a free variable is discrete, or nothing is free.
    ImportError
        Without PyMC; the message names the extra.

    Examples
    --------
    >>> import pymc
    >>> with pymc.Model() as model:
    ...     mu = pymc.Normal("mu", 0.0, 10.0)
    ...     y = pymc.Normal("y", mu, 1.0, observed=np.array([1.0, 3.0]))
    >>> float(qd.fit(qd.from_pymc(model)).mean["mu"].round(1))
    2.0
    """
    pymc = need("pymc", "pymc")
    if type(model).__module__.partition(".")[0] == "bambi":
        model = _of_bambi(model)
    if not isinstance(model, pymc.Model):
        raise ValueError(f"model={shown(model)} is a {type(model).__name__}; give a pymc.Model or a bambi.Model.")
    _refuse_what_cannot_be_fitted(model)
    with in_double():
        return _read(model)


def _of_bambi(model: Any) -> Any:
    if not model.built:
        model.build()
    return model.backend.model


def _refuse_what_cannot_be_fitted(model: Any) -> None:
    if not model.free_RVs:
        raise ValueError("model: it has no free variable, so there is nothing to infer.")
    discrete = [variable.name for variable in model.free_RVs if variable.dtype.startswith(("int", "uint", "bool"))]
    if discrete:
        raise ValueError(
            f"model: {', '.join(discrete)} {'is' if len(discrete) == 1 else 'are'} discrete; sum over such variables in "
            "the model (a mixture likelihood, or marginalize of pymc-extras), or replace them by continuous ones."
        )
    _refuse_minibatches(model)


def _refuse_minibatches(model: Any) -> None:
    from pymc.data import MinibatchOp
    from pytensor.graph import ancestors

    seen = [*model.rvs_to_values.values(), *model.basic_RVs, *model.potentials]
    if any(isinstance(getattr(node.owner, "op", None), MinibatchOp) for node in ancestors(seen)):
        raise ValueError(
            "model: pm.Minibatch takes some of its rows at random, and draws that are frozen need all of them; give the "
            "arrays themselves, and leave out total_size."
        )


@dataclass(frozen=True, eq=False)
class _Graph:
    """Some quantities of a model as a JAX function of its values on the real line and its data."""

    names: tuple[str, ...]  # of the free variables, in the order of the model's own
    data: tuple[str, ...]
    function: Callable[..., Any]

    def __call__(self, parameters: Mapping[str, Any], data: Mapping[str, Any] | None) -> tuple:
        shared = () if not self.data else tuple((data or {})[name] for name in self.data)
        return self.function(*map(jnp.asarray, (*(parameters[name] for name in self.names), *shared)))


def _graph(model: Any, outputs: list[Any], data: tuple[str, ...]) -> _Graph:
    from pymc.sampling.jax import get_jaxified_graph
    from pytensor.graph.replace import clone_replace

    shared = [model[name] for name in data]
    free = [variable.type(variable.name) for variable in shared]
    outputs = clone_replace(outputs, dict(zip(shared, free, strict=True)))  # pyright: ignore
    function = get_jaxified_graph(inputs=[*model.value_vars, *free], outputs=outputs)
    return _Graph(_names(model), data, function)


def _names(model: Any) -> tuple[str, ...]:
    """The free variables in the order of `value_vars`, which need not be that of `free_RVs`."""
    return tuple(model.values_to_rvs[value].name for value in model.value_vars)


def _read(model: Any) -> Model:
    names = _names(model)
    first = model.initial_point()
    start = {
        name: np.asarray(first[value.name], np.float64) for name, value in zip(names, model.value_vars, strict=True)
    }
    shared = _shared_data(model)
    data = _traceable(model, start, shared)
    density = _graph(model, [model.logp()], tuple(data))
    free = _graph(model, model.replace_rvs_by_values([model[name] for name in names]), ())

    def log_density(parameters: Arrays, data: Arrays | None = None) -> Any:
        return density(parameters, data)[0]

    def to_natural(parameters: Arrays) -> Arrays:
        return dict(zip(names, free(parameters, None), strict=True))

    natural = {name: np.asarray(value) for name, value in to_natural(start).items()}
    one = Target(log_density, data=data or None, on_real_line=True)
    reading = see_through(lambda parameters: log_density(parameters, data), start)
    known = Model(
        one if reading.target is None else reading.target,
        natural,
        transforms_of(to_natural, lambda parameters: _to_real(model, parameters), start),
        name=model.name or "model",
        dims={name: tuple(map(str, dims)) for name, dims in model.named_vars_to_dims.items()},
        coords={name: np.asarray(labels) for name, labels in model.coords.items() if labels is not None},
        whole=one,
        remark=reading.says,
    )
    everything = _everything(model, tuple(data))

    def with_data(other: Arrays | None) -> Model:
        other = other if data and other is not None else None
        return replace(known, **_described(model, everything, other or data, other), with_data=with_data)

    return with_data(None)


def _described(model: Any, everything: tuple, arrays: Arrays, other: Arrays | None) -> dict[str, Any]:
    """All that depends on the data besides the log density; `other` data are set for a moment where PyMC needs them."""
    names, graph = everything
    observed = [variable.name for variable in model.observed_RVs]

    def values(parameters: Arrays, seed: int) -> dict[str, np.ndarray]:
        with in_double():
            found = compiled(jax.vmap(lambda one: graph(one, arrays)))(parameters)
            return {name: np.asarray(value) for name, value in zip(names, found, strict=True)}

    def predict(samples: Arrays, seed: int) -> dict[str, np.ndarray]:
        with _holding(model, other):
            return _predict(model, samples, seed, observed)

    def log_likelihood(samples: Arrays) -> dict[str, np.ndarray]:
        with _holding(model, other):
            return _log_likelihood(model, samples)

    with _holding(model, other):
        seen = {variable.name: np.asarray(model.rvs_to_values[variable].eval()) for variable in model.observed_RVs}
    return {
        "values": values,
        "observed": seen,
        "predict": predict if observed else None,
        "log_likelihood": log_likelihood if observed else None,
    }


def _everything(model: Any, data: tuple[str, ...]) -> tuple[tuple[str, ...], _Graph]:
    """All that `pm.sample` records: the free variables in natural units, and the deterministics."""
    from pymc.util import get_default_varnames

    recorded = list(get_default_varnames(model.unobserved_value_vars, include_transformed=False))
    return tuple(variable.name for variable in recorded), _graph(model, recorded, data)


# Data.


def _shared_data(model: Any) -> dict[str, np.ndarray]:
    """What was given as `pm.Data`, if it is numbers without gaps."""
    found = {variable.name: np.asarray(variable.get_value()) for variable in model.data_vars}
    sound = lambda array: array.dtype.kind in "iub" or (array.dtype.kind == "f" and np.isfinite(array).all())
    return found if all(map(sound, found.values())) else {}


def _traceable(model: Any, start: Arrays, shared: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The data that can be arguments of the log density; those on whose values shapes depend cannot."""
    if not shared:
        return {}
    try:
        jax.eval_shape(_graph(model, [model.logp()], tuple(shared)), start, shared)
    except Exception:
        return {}
    return shared


@contextmanager
def _holding(model: Any, data: Arrays | None) -> Iterator[None]:
    """The model with other data, which it gives back."""
    before = {} if data is None else {name: model[name].get_value() for name in data}
    try:
        for name in before:
            model[name].set_value(np.asarray(data[name], before[name].dtype))  # pyright: ignore
        yield
    finally:
        for name, value in before.items():
            model[name].set_value(value)


@contextmanager
def _forgetting_first_values(model: Any) -> Iterator[None]:
    """The model without the `initval` of its variables: PyMC gives no log likelihood of rows of a model that has one."""
    before = dict(model.rvs_to_initial_values)
    try:
        model.rvs_to_initial_values.update(dict.fromkeys(before))
        yield
    finally:
        model.rvs_to_initial_values.update(before)


def _to_real(model: Any, parameters: Arrays) -> Arrays:
    from pymc.initial_point import make_initial_point_fn

    overrides: Any = {model[name]: np.asarray(value) for name, value in parameters.items()}
    point = make_initial_point_fn(model=model, overrides=overrides, jitter_rvs=set(), return_transformed=True)(0)
    values = zip(_names(model), model.value_vars, strict=True)
    return {name: np.asarray(point[value.name]) for name, value in values}


# Predictions.


def _chain(model: Any, samples: Arrays) -> Any:
    """Samples as one chain, which is what PyMC's functions take.

    With coordinates and data: PyMC draws anew from its prior whatever may depend on others than it was fitted to.
    """
    import arviz
    import xarray

    coords = {name: list(labels) for name, labels in model.coords.items() if labels is not None}

    def dataset(arrays: Mapping[str, Any], leading: tuple[str, ...]) -> Any:
        shaped = {}
        for name, value in arrays.items():
            own = model.named_vars_to_dims.get(name) or [
                f"{name}_dim_{i}" for i in range(np.ndim(value) - len(leading))
            ]
            shaped[name] = ((*leading, *own), value)
        used = {name for dims, _ in shaped.values() for name in dims}
        return xarray.Dataset(shaped, {name: labels for name, labels in coords.items() if name in used})

    free = {variable.name for variable in model.free_RVs}
    chain = {name: np.asarray(value)[None] for name, value in samples.items() if name in free}
    constant = {variable.name: np.asarray(variable.get_value()) for variable in model.data_vars}
    groups = {"posterior": dataset(chain, ("chain", "draw"))}
    return arviz.InferenceData(**groups, **({"constant_data": dataset(constant, ())} if constant else {}))


def _predict(model: Any, samples: Arrays, seed: int, names: list[str]) -> dict[str, np.ndarray]:
    import pymc

    options: dict[str, Any] = {"var_names": names, "random_seed": seed, "progressbar": False}
    logging.getLogger("pymc.sampling.forward").setLevel(logging.WARNING)  # or it announces what is asked for anyway
    found = pymc.sample_posterior_predictive(_chain(model, samples), model=model, return_inferencedata=False, **options)
    return {name: np.asarray(found[name])[0] for name in names}


def _log_likelihood(model: Any, samples: Arrays) -> dict[str, np.ndarray]:
    import pymc

    with _forgetting_first_values(model):
        found = pymc.compute_log_likelihood(
            _chain(model, samples), model=model, extend_inferencedata=False, progressbar=False
        )
    return {str(name): np.asarray(value)[0] for name, value in found.items()}
