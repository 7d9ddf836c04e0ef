# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""NumPyro models. The log density, the supports and the deterministics are NumPyro's own (`initialize_model`)."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from quenched.compiling import compiled
from quenched.draws import Purpose, jax_key
from quenched.frontends.packages import need
from quenched.frontends.recognising import transforms_of
from quenched.frontends.seeing_through import see_through
from quenched.numbers import given_function
from quenched.precision import in_double
from quenched.targets import Model, Target
from quenched.text import shown

Arrays = dict[str, Any]


def from_numpyro(model: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Model:
    """A NumPyro model, called with the arguments that `MCMC.run` would be given.

    `fit(from_numpyro(model, x, y=y))` fits all latent sites. Discrete ones with finitely many values are summed out, as
    NumPyro's samplers do. `fit.sample(n)` has the names and shapes of `mcmc.get_samples()`, `fit.predict(n)` those of the
    observed sites. From 100 parameters on, plates, indices and linear predictors are read off the model and it is fitted as a
    sum of terms, with a sparse precision; where that cannot be done it is fitted whole, and `fit.verdict` says which it was.
    Arguments that are arrays are the model's `data`, under the names of the model's own arguments:
    `fit_many(model, data={"x": ..., "y": ...})` fits it to many.

    Parameters
    ----------
    model
        A function with NumPyro primitives.
    *args, **kwargs
        Its arguments, the data included.

    Raises
    ------
    ValueError
        When a plate is subsampled, a discrete site cannot be summed out, or nothing is latent.
    ImportError
        Without NumPyro; the message names the extra.

    Examples
    --------
    >>> import numpyro
    >>> def model(y):
    ...     mu = numpyro.sample("mu", numpyro.distributions.Normal(0.0, 10.0))
    ...     with numpyro.plate("rows", 2):
    ...         numpyro.sample("y", numpyro.distributions.Normal(mu, 1.0), obs=y)
    >>> fit = qd.fit(qd.from_numpyro(model, np.array([1.0, 3.0])))
    >>> float(fit.mean["mu"].round(1)), fit.predict(50)["y"].shape
    (2.0, (50, 2))
    """
    need("numpyro", "numpyro")
    given_function("model", model, "a function with NumPyro primitives, and its arguments")
    with in_double():
        return _read(_Call.of(model, args, kwargs))


@dataclass(frozen=True, eq=False)
class _Call:
    """A call of a model: its arguments, of which the arrays may be replaced by others of the same shapes."""

    model: Callable[..., Any]
    signature: inspect.Signature
    fixed: Mapping[str, Any]
    arrays: Mapping[str, Any]
    info: Any = None  # NumPyro's own, once it is known

    @classmethod
    def of(cls, model: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> "_Call":
        try:
            signature = inspect.signature(model)
        except ValueError as error:
            raise ValueError(f"model={shown(model)} does not say what it takes; give a function.") from error
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ValueError(
                f"model: it takes {signature}, which does not fit the arguments given: {error}."
            ) from error
        given = {name: _in_double(value) for name, value in given.items()}
        arrays = {name: value for name, value in given.items() if _is_data(value)}
        fixed = {name: value for name, value in given.items() if name not in arrays}
        return cls(model, signature, fixed, arrays)

    def with_arrays(self, arrays: Mapping[str, Any]) -> "_Call":
        return replace(self, arrays=arrays)

    @property
    def arguments(self) -> tuple[tuple, dict[str, Any]]:
        given = {**self.fixed, **self.arrays}
        in_order = {name: given[name] for name in self.signature.parameters if name in given}
        bound = inspect.BoundArguments(self.signature, in_order)  # pyright: ignore
        return bound.args, bound.kwargs

    def sites(self) -> Mapping[str, Any]:
        """All that the model does when it is run; latent sites are not drawn, since some have no sampler."""
        from numpyro.handlers import seed, substitute, trace
        from numpyro.infer import init_to_feasible

        args, kwargs = self.arguments
        with in_double():
            run = substitute(seed(self.model, jax_key(0, Purpose.STARTS)), substitute_fn=init_to_feasible())
            return trace(run).get_trace(*args, **kwargs)


def _info(call: _Call) -> Any:
    """What NumPyro makes of it: a first point, the potential energy and the way to natural units, for any arrays."""
    from numpyro.infer import init_to_feasible, init_to_median, init_to_uniform
    from numpyro.infer.util import initialize_model

    args, kwargs = call.arguments
    options: dict[str, Any] = {"dynamic_args": True, "model_args": args, "model_kwargs": kwargs}
    error: Exception | None = None
    keys = jax_key(0, Purpose.STARTS)[None]  # several at once are one program; for one NumPyro compiles each operation
    for strategy in (init_to_feasible, init_to_median, init_to_uniform):
        try:
            return initialize_model(keys, call.model, init_strategy=strategy, **options)
        except RuntimeError as failed:  # the log density is not finite there
            error = failed
    raise ValueError(f"model: NumPyro finds no point at which its log density is finite ({error}).") from error


def _read(call: _Call) -> Model:
    sites = call.sites()
    _refuse_what_cannot_be_fitted(sites)
    info = _info(call)
    call = replace(call, info=info)
    start = {name: np.asarray(value[0]) for name, value in info.param_info.z.items()}
    if not start:
        raise ValueError("model: it has no latent site, so there is nothing to infer.")
    to_natural = _to_natural(call, tuple(start))
    natural = {name: np.asarray(value) for name, value in compiled(to_natural)(start).items()}
    as_data = bool(call.arrays) and _can_be_traced(call, start)
    target = Target(
        _with_data(call) if as_data else _without_data(call),
        data=dict(call.arrays) if as_data else None,
        on_real_line=True,
    )
    reading = see_through(_without_data(call), start)
    model = Model(
        target if reading.target is None else reading.target,
        natural,
        transforms_of(to_natural, lambda parameters: _to_real(call, parameters), start),
        name=getattr(call.model, "__name__", "model"),
        with_data=lambda data: _described(model, call if data is None else call.with_arrays(data)),
        whole=target,
        remark=" ".join(filter(None, (_of_held(sites), reading.says))),
    )
    return _described(model, call)


def _of_held(sites: Mapping[str, Any]) -> str:
    """What `numpyro.param` names is no latent site: NumPyro's samplers hold it, too."""
    held = [name for name, site in sites.items() if site["type"] == "param"]
    told = (
        f"Held at the first value, since numpyro.param gives no prior: {', '.join(held)}; what is to be inferred needs "
    )
    return f"{told}numpyro.sample." if held else ""


def _described(model: Model, call: _Call) -> Model:
    """The model with all that depends on the data besides the log density."""
    sites = call.sites()
    observed = _observed(sites)
    dims, coords = _dims(sites)
    summed_out = any(_is_latent(site) and site["fn"].support.is_discrete for site in sites.values())
    return replace(
        model,
        dims=dims,
        coords=coords,
        observed=observed,
        values=lambda parameters, seed: _values(call, parameters),
        predict=(lambda samples, seed: _predict(call, samples, seed, list(observed))) if observed else None,
        log_likelihood=(lambda samples: _log_likelihood(call, samples, list(observed)))
        if observed and not summed_out
        else None,
    )


# The log density.


def _with_data(call: _Call) -> Callable[..., Any]:
    def log_density(parameters: Arrays, data: Arrays) -> Any:
        args, kwargs = call.with_arrays(data).arguments
        return -call.info.potential_fn(*args, **kwargs)(parameters)

    return log_density


def _without_data(call: _Call) -> Callable[..., Any]:
    def log_density(parameters: Arrays) -> Any:
        args, kwargs = call.arguments
        return -call.info.potential_fn(*args, **kwargs)(parameters)

    return log_density


def _can_be_traced(call: _Call, start: Arrays) -> bool:
    """Whether the model runs for arrays of which only the shapes are known; some read sizes off their values."""
    try:
        jax.eval_shape(_with_data(call), start, dict(call.arrays))
    except Exception:
        return False
    return True


def _in_double(value: Any) -> Any:
    """Copies of arrays in double precision, whatever the JAX of the user was set to.

    Copies, because JAX remembers arrays that it has met, and would take one that it met in single precision for that.
    """

    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, (np.ndarray, jax.Array)):
            return leaf
        return np.array(leaf, np.float64 if np.issubdtype(leaf.dtype, np.floating) else leaf.dtype)

    return jax.tree.map(convert, value)


def _is_data(value: Any) -> bool:
    leaves = jax.tree.leaves(value)
    arrays = [isinstance(leaf, (np.ndarray, jax.Array)) and leaf.dtype.kind in "fiub" for leaf in leaves]
    return bool(leaves) and all(arrays) and not any(np.isnan(leaf).any() for leaf in leaves)


# Between the real line and natural units.


def _to_natural(call: _Call, names: tuple[str, ...]) -> Callable[[Arrays], Arrays]:
    def to_natural(parameters: Arrays) -> Arrays:
        args, kwargs = call.arguments
        found = call.info.postprocess_fn(*args, **kwargs)(parameters)
        return {name: found[name] for name in names}

    return to_natural


def _to_real(call: _Call, parameters: Arrays) -> Arrays:
    from numpyro.infer.util import unconstrain_fn

    args, kwargs = call.arguments
    with in_double():
        return unconstrain_fn(call.model, args, kwargs, parameters)


def _values(call: _Call, parameters: Arrays) -> dict[str, np.ndarray]:
    args, kwargs = call.arguments
    with in_double():
        found = compiled(jax.vmap(call.info.postprocess_fn(*args, **kwargs)))(parameters)
        return {name: np.asarray(value) for name, value in found.items()}


# Data, and what is predicted of them.


def _observed(sites: Mapping[str, Any]) -> dict[str, np.ndarray]:
    from numpyro.distributions import Unit

    is_data = lambda site: site["type"] == "sample" and site["is_observed"] and not isinstance(site["fn"], Unit)
    return {name: np.asarray(site["value"]) for name, site in sites.items() if is_data(site)}


def _predict(call: _Call, samples: Arrays, seed: int, names: list[str]) -> dict[str, np.ndarray]:
    from numpyro.infer import Predictive

    args, kwargs = call.arguments
    with in_double():
        predictive = Predictive(_replicating(call.model), _latent(call, samples), return_sites=names)
        found = predictive(jax_key(seed, Purpose.NOISE), *args, **kwargs)
        return {name: np.asarray(found[name]) for name in names}


def _replicating(model: Callable[..., Any]) -> Callable[..., Any]:
    """The model with its observed sites drawn anew, each in the shape of what was observed.

    NumPyro's `uncondition` draws in the shape of the distribution: one number where many were observed that share all its
    parameters, unless a plate says how many.
    """
    from numpyro.handlers import uncondition

    class Expanded(uncondition):
        def process_message(self, msg: Any) -> None:
            if msg["type"] == "sample" and msg["is_observed"]:
                shape, own = np.shape(msg["value"]), msg["fn"].batch_shape
                batch = np.broadcast_shapes(shape[: len(shape) - msg["fn"].event_dim], own)
                msg["fn"] = msg["fn"] if batch == own else msg["fn"].expand(batch)
            super().process_message(msg)

    return Expanded(model)


def _log_likelihood(call: _Call, samples: Arrays, names: list[str]) -> dict[str, np.ndarray]:
    from numpyro.infer import log_likelihood

    args, kwargs = call.arguments
    with in_double():
        found = log_likelihood(call.model, _latent(call, samples), *args, **kwargs)
        return {name: np.asarray(found[name]) for name in names}


def _latent(call: _Call, samples: Arrays) -> Arrays:
    return {name: samples[name] for name in call.info.param_info.z}


def _dims(sites: Mapping[str, Any]) -> tuple[dict[str, tuple[str, ...]], dict[str, np.ndarray]]:
    """Plates name the axes of the sites inside them."""
    dims, coords = {}, {}
    for name, site in sites.items():
        if site["type"] not in ("sample", "deterministic") or np.ndim(site["value"]) == 0:
            continue
        rank = np.ndim(site["value"])
        axes = [f"{name}_dim_{axis}" for axis in range(rank)]
        events = getattr(site.get("fn"), "event_dim", 0) if site["type"] == "sample" else 0
        for frame in site.get("cond_indep_stack", ()):
            axis = rank - events + frame.dim
            if 0 <= axis < rank and np.shape(site["value"])[axis] == frame.size:
                axes[axis], coords[frame.name] = frame.name, np.arange(frame.size)
        dims[name] = tuple(axes)
    return dims, coords


# What cannot be fitted.


def _refuse_what_cannot_be_fitted(sites: Mapping[str, Any]) -> None:
    for name, site in sites.items():
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
            size, part = site["args"]
            raise ValueError(
                f"model: plate {name!r} takes {part} of its {size} rows at random, and draws that are frozen need all of "
                "them; leave out subsample_size."
            )
        if _is_latent(site) and site["fn"].support.is_discrete:
            _refuse_endless(name, site)


def _is_latent(site: Mapping[str, Any]) -> bool:
    return site["type"] == "sample" and not site["is_observed"]


def _refuse_endless(name: str, site: Any) -> None:
    """A discrete site is summed out if it has finitely many values."""
    if not site["fn"].has_enumerate_support:
        raise ValueError(
            f"model: site {name!r} is discrete ({type(site['fn']).__name__}) and has no end of values, so it cannot be "
            "summed out; sum over it in the model, or replace it by a continuous one."
        )
    if site["infer"].get("enumerate", "parallel") != "parallel":
        raise ValueError(
            f"model: site {name!r} is discrete and its infer={site['infer']} keeps it from being summed out; use "
            "infer={'enumerate': 'parallel'}."
        )
    need("funsor", "numpyro")
