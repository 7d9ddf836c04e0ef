"""A target on the real line: the user's function, its parameters' space, its data, and a way to evaluate it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from quenched.arrays import Array
from quenched.execute import Execution, Executor, Here, Identified, Living, Programs, Wait, Work, bytes_held, trace
from quenched.numbers import native
from quenched.objective.host_target import host_function, shapes_of
from quenched.targets import Form, Hyper, Model, Target, call, fingerprint, insist_number
from quenched.transforms import Space


class RealLine:
    """f(vector, data, free): the user's function on the real line, log-Jacobian included."""

    def __init__(self, target: Target, space: Space, unravel_hyper: Callable[[Array], Any] | None):
        self.target, self.space, self.unravel_hyper = target, space, unravel_hyper
        self.noise = float(np.finfo(np.float64).eps)  # relative rounding error, corrected when traced

    def __call__(self, vector: Array, data: Any, free: Array) -> Array:
        hyper = None if self.unravel_hyper is None else self.unravel_hyper(free)
        value = self.as_number(call(self.target.function, self.place(vector), data, hyper))
        if not self.target.adds_jacobian or self.target.on_real_line:
            return value.astype(vector.dtype)
        return value.astype(vector.dtype) + self.space.log_jacobian(vector)

    def place(self, vector: Array) -> Any:
        """The parameters as the user's function takes them."""
        return self.space.unravel(vector) if self.target.on_real_line else self.space.to_natural(vector)

    def as_number(self, value: Any) -> Array:
        """Insist on one real number, and note its precision."""
        insist_number(self.target.function, value)
        shape = jnp.shape(value)
        if shape != ():
            raise ValueError(
                f"log_density returned an array of shape {shape}; it must return one number: sum over the data."
            )
        value = jnp.asarray(value)
        if not jnp.issubdtype(value.dtype, jnp.floating):
            raise ValueError(f"log_density returned dtype {value.dtype}; it must return a real number.")
        self.noise = float(jnp.finfo(value.dtype).eps)
        return value


_programs: Living[tuple[Programs, RealLine]] = Living(
    lambda key: (trace(key.thing), key.thing), lambda key: bytes_held(key.thing.target.function)
)


@dataclass(frozen=True, eq=False)
class Problem:
    """What a fit is about."""

    target: Target
    space: Space
    form: Form
    data: Any
    hyper: Hyper  # where the hyperparameters begin
    hyper_like: Any  # the user's own, as they were given; None if there are none
    execution: Execution
    programs: Programs | None  # None for a function on the host
    function: RealLine
    model: Model | None = None  # what a front end knows besides

    @cached_property
    def dim(self) -> int:
        return self.space.dim

    @cached_property
    def n_rows(self) -> int:
        """Of all terms, if it is a sum of them."""
        if self.target.terms is None:
            return 0
        return sum(max((len(array) for array in jax.tree.leaves(held)), default=1) for held in self.data[0])

    @property
    def noise(self) -> float:
        """Relative rounding error of the function."""
        return self.function.noise

    @cached_property
    def work(self) -> Work:
        """What is to be executed."""
        on_host = host_function(self.target, self.space) if self.programs is None else None
        return Work(self.programs, on_host, self.dim, self.data, self.hyper.free)

    @cached_property
    def wait_for_values(self) -> Wait:
        """For the values at many draws."""
        return Wait("the log density at many draws")

    def executor(self, n_draws: int) -> Executor:
        """The executor for this many draws."""
        return self.execution.executor(self.work, n_draws)

    def describe_hyper(self, hyper: Hyper) -> Any:
        """Hyperparameters as the user wrote them; rows of them if these are rows."""
        precisions = {name: np.array(getattr(hyper, name)) for name in self.target.reports}
        if self.hyper_like is None:
            return precisions or None
        own, free = _unraveled(self.hyper_like, np.asarray(hyper.free)), bool(precisions)
        return {**precisions, "hyper": own} if free else own

    def read_hyper(self, described: Any, n: int) -> Hyper:
        """Rows of hyperparameters from what `describe_hyper` made of them."""
        of_all = lambda leaf: np.repeat(np.asarray(leaf)[None], n, axis=0)
        rows = Hyper(*map(of_all, self.hyper))._replace(**{name: described[name] for name in self.target.reports})
        if self.hyper_like is None:
            return rows
        own = described["hyper"] if self.target.reports else described
        return rows._replace(free=np.concatenate([np.reshape(leaf, (n, -1)) for leaf in jax.tree.leaves(own)], axis=1))


def _unraveled(like: Any, free: np.ndarray) -> Any:
    """Rows (..., size) cut into a pytree."""
    leaves, structure = jax.tree.flatten(like)
    shapes = [np.shape(leaf) for leaf in leaves]
    pieces = np.split(free, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1], axis=-1)
    cut = [np.array(piece).reshape((*free.shape[:-1], *shape)) for piece, shape in zip(pieces, shapes, strict=True)]
    return jax.tree.unflatten(structure, cut)


class Rows(NamedTuple):
    """The data of many problems: along the first axis what each has for itself, and what all share."""

    own: Any
    shared: Any = None

    @property
    def one(self) -> Any:
        """What the log density of one problem is given: its own data, or (shared, own)."""
        return self.own if self.shared is None else (self.shared, self.own)

    def take(self, places: Any) -> "Rows":
        """Those of some problems."""
        return Rows(jax.tree.map(lambda leaf: leaf[places], self.own), self.shared)


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems of one kind and shape that differ in their data.

    Attributes
    ----------
    problem
        One of them, which stands for all.
    data
        Of all; None for a batch of one, whose data the problem has.
    n
        How many.
    """

    problem: Problem
    data: Rows | None
    n: int

    def one(self, index: int) -> Problem:
        """The problem at a place; the last one is kept."""
        if self.data is None:
            return self.problem
        if self._last.get("index") != index:
            self._last.update(index=index, problem=replace(self.problem, data=self.data.take(index).one))
        return self._last["problem"]

    @cached_property
    def _last(self) -> dict[str, Any]:
        return {}

    def some(self, places: np.ndarray) -> "Batch":
        """The problems at some places."""
        return Batch(self.problem, None if self.data is None else self.data.take(places), len(places))


def make_problem(
    target: Target, space: Space, data: Any, hyper: Any, execution: Execution = Here(), model: Model | None = None
) -> Problem:
    """Put a problem together; compiled programs of an earlier fit are found again."""
    return _put_together(target, space, target.handed(data), hyper, execution, model)


def _put_together(
    target: Target, space: Space, data: Any, hyper: Any, execution: Execution, model: Model | None
) -> Problem:
    """With the data that the function is handed."""
    free, unravel = (np.zeros(0), None) if hyper is None else ravel_pytree(jax.tree.map(_promote, hyper))
    prior, noise = (np.asarray(value) for value in target.initial_precisions)
    if target.on_host:
        data = jax.tree.map(lambda leaf: np.asarray(_promote(leaf)), data)
    else:
        data = execution.promoted(data, _promote)
    function = RealLine(target, space, unravel)
    programs = None
    if not target.on_host:
        shapes = None if hyper is None else (jax.tree.structure(hyper), shapes_of(hyper))
        seen = fingerprint(target.function)
        identity = (seen, target.adds_jacobian, target.on_real_line, space, shapes, data is None)
        # What may change unseen is traced for this fit alone.
        key = Identified(identity, function)
        programs, function = _programs.passing(key) if seen is None else _programs(key)
    form, start = target.make_form(space.dim), Hyper(free, prior, noise)
    return Problem(target, space, form, data, start, hyper, execution, programs, function, model)


def make_batch(
    target: Target, space: Space, rows: Rows, hyper: Any, n: int, execution: Execution, model: Model | None = None
) -> Batch:
    """Many problems, put together."""
    rows = Rows(*jax.tree.map(_promote, tuple(rows)))
    return Batch(_put_together(target, space, rows.take(0).one, hyper, execution, model), rows, n)


def _promote(leaf: Any) -> Array:
    array = jnp.asarray(native(leaf))
    return array.astype(jnp.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array
