"""A model: a target that brings its own start, transforms, names, dims and predictions, so that `fit` needs nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from quenched.numbers import insist_tree, plain_array, read_arrays, read_data
from quenched.targets.mistaken import refuse_models_of_others
from quenched.targets.target import Target, log_density
from quenched.text import shown


@dataclass(frozen=True, eq=False)
class Model:
    """What a front end returns and `fit` takes alone.

    Attributes
    ----------
    target
        What is approximated: a `Target`, or a log density as `fit` takes it.
    start
        Array or pytree in natural units.
    transforms, data, hyper
        As in `fit`.
    name
        What the model is called.
    dims, coords
        Names of the axes of each parameter, and labels along them: what ArviZ shows.
    values
        values(parameters, seed) -> dict of arrays by name: all that the model names, deterministics included, in natural
        units, for parameters on the real line with a leading axis. Without it, the parameters themselves.
    predict
        predict(samples, seed) -> dict of arrays by name, for samples in natural units with a leading axis.
    log_likelihood
        log_likelihood(samples) -> dict of arrays by name: that of every row of the data, for such samples.
    observed
        The data that the model was conditioned on, by name.
    with_data
        with_data(data) -> the same model for other data; only for models that are given theirs as `data`.
    whole
        Where the target is a sum of terms that was read off the model: the same as one function, which takes other data.
    remark
        What a person should know of how the model was read; it becomes a part of the verdict.

    Examples
    --------
    >>> line = qd.Model(target=lambda p: -0.5 * (p["a"] - 1.0) ** 2, start={"a": 0.0}, name="one number")
    >>> float(qd.fit(line).mean["a"].round(3))
    1.0
    """

    target: Any
    start: Any = field(repr=False)
    transforms: Any = field(default=None, repr=False)
    data: Any = field(default=None, repr=False)
    hyper: Any = field(default=None, repr=False)
    name: str = "model"
    dims: Mapping[str, tuple[str, ...]] | None = field(default=None, repr=False)
    coords: Mapping[str, Any] | None = field(default=None, repr=False)
    values: Callable[[Any, int], dict[str, Any]] | None = field(default=None, repr=False)
    predict: Callable[[Any, int], dict[str, Any]] | None = field(default=None, repr=False)
    log_likelihood: Callable[[Any], dict[str, Any]] | None = field(default=None, repr=False)
    observed: Mapping[str, Any] | None = field(default=None, repr=False)
    with_data: Callable[[Any], "Model"] | None = field(default=None, repr=False)
    whole: Target | None = field(default=None, repr=False)
    remark: str = field(default="", repr=False)

    def __post_init__(self):
        object.__setattr__(self, "target", read_target(self.target))
        _insist_axes(self.dims, self.coords)


def _insist_axes(dims: Any, coords: Any) -> None:
    """Names of axes and labels along them, as ArviZ takes them: lengths are compared when there are samples."""
    for name, given in (("dims", dims), ("coords", coords)):
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"{name}={shown(given)}: give a mapping from names.")
    for name, axes in (dims or {}).items():
        if axes is not None and not (isinstance(axes, (list, tuple)) and all(isinstance(axis, str) for axis in axes)):
            raise ValueError(f"dims: {shown(name)} has {shown(axes)}; give a tuple of names of its axes.")
    for axis, labels in (coords or {}).items():
        if labels is not None and (
            isinstance(labels, str) or not hasattr(labels, "__len__") or not np.iterable(labels)
        ):
            raise ValueError(f"coords: {shown(axis)} has {shown(labels)}; give as many labels as the axis is long.")


def read_target(function: Any) -> Target:
    """A target, or a log density as one."""
    if isinstance(function, Target):
        return function
    if not callable(function):
        raise ValueError(
            f"log_density={shown(function)} is not callable; give a function of the parameters, or a target such as "
            "quenched.regression(f, X, y)."
        )
    return log_density(function)


def read_model(log_density: Any, start: Any, *, transforms: Any = None, data: Any = None, hyper: Any = None) -> Model:
    """What `fit` was given, as a model with arrays for data; what is said besides a model overrules it."""
    refuse_models_of_others(log_density)
    if start is None and not isinstance(log_density, Model):
        raise ValueError("start: is missing; give an array or a pytree of arrays, or a model that brings its own.")
    model = log_density if isinstance(log_density, Model) else Model(log_density, start)
    given = {"start": start, "transforms": transforms, "data": data, "hyper": hyper}
    if transforms is not None and model.target.on_real_line:
        raise ValueError("transforms: the model brings its own; leave them out.")
    if model.target.on_real_line and isinstance(start, dict) and set(start) != set(model.start):
        wrong = sorted(map(str, set(start) ^ set(model.start)))[0]
        raise ValueError(f"start: the model has {', '.join(sorted(model.start))}; {wrong} does not match.")
    if data is not None and model.whole is not None:
        model = replace(model, target=model.whole, remark="")
    model = replace(model, **{name: value for name, value in given.items() if value is not None})
    insist_tree("start", model.start)
    hyper = jax.tree.map(_as_float, read_arrays("hyper", model.hyper))
    return replace(model, data=read_data("data", model.data), hyper=hyper)


def _as_float(leaf: Any) -> Any:
    """Whole numbers as real ones; what is no number is refused later."""
    array = plain_array("hyper", leaf)
    return array.astype(np.float64) if array.dtype.kind in "iu" else leaf
