"""Counting gradients inside the log density, however a method comes by them.

A gradient at one point counts as one, a column of a Hessian (or a product with it) as two, as in the library's own count;
values alone are counted apart. Counted runs are never timed: the count is kept on the host, which takes time.
"""

import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir


class Counter(logging.Handler):
    """What has been evaluated so far.

    A handler of a logger, since the library takes a logger for something that changes no number: else every new count
    would be something that the log density sees and that has changed.
    """

    def __init__(self):
        super().__init__()
        self.counts = {"value": 0, "gradient": 0, "column": 0}
        self.logger = logging.Logger("evaluations")
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        kind, n = record.args
        self.counts[kind] += n

    @property
    def gradients(self) -> int:
        return self.counts["gradient"] + 2 * self.counts["column"]

    @property
    def values(self) -> int:
        return self.counts["value"]


def _tell(kind: str, note: logging.Logger, points: Any) -> np.ndarray:
    shape = np.shape(points)[:-1]
    note.info("%s %d", kind, int(np.prod(shape, dtype=int)))
    return np.zeros(shape, np.result_type(points))


def _tick(point: Any, *, kind: str, note: logging.Logger) -> Any:
    """Zero; on the way to it the host is told of as many points as `vmap` has put side by side."""
    shape = jax.ShapeDtypeStruct(point.shape[:-1], point.dtype)
    return jax.pure_callback(lambda points: _tell(kind, note, points), shape, point)


# A column of a Hessian is linear in its direction, and a program may be turned round in it: hence a primitive.
_column = Primitive("tick_column")
_column.def_impl(_tick)
_column.def_abstract_eval(lambda point, **_: jax.core.ShapedArray(point.shape[:-1], point.dtype))
mlir.register_lowering(_column, mlir.lower_fun(_tick, multiple_results=False))


def _turned(along: Any, point: Any, **settings: Any) -> list[Any]:
    told = _column.bind(along[..., None], **settings)
    return [jnp.zeros(point.aval.shape, point.aval.dtype) + told[..., None]]


def _side_by_side(points: tuple, axes: tuple, **settings: Any) -> tuple[Any, int]:
    return _column.bind(jnp.moveaxis(points[0], axes[0], 0), **settings), 0


ad.deflinear2(_column, _turned)
batching.primitive_batchers[_column] = _side_by_side


def _one(point: Any) -> Any:
    """Ones, of which `vmap` does not know that they are the same for every point: directions usually are."""
    return jnp.where(point == point, jnp.ones_like(point), jnp.ones_like(point))


def passing(point: Any, counter: Counter) -> Any:
    """The point itself; derivatives on their way through it, forwards or backwards, are counted as gradients.

    For methods that are not given a log density but the model inside it: a gradient passes once, a product with their
    metric twice.
    """

    @jax.custom_jvp
    def identity(point):
        return point

    @identity.defjvp
    def through(points, tangents):
        tangent = _one(points[0]) * tangents[0]
        return identity(points[0]), tangent + _column.bind(tangent, kind="gradient", note=counter.logger)

    return identity(point)


def counted(log_density: Callable[[Any], Any], counter: Counter) -> Callable[[Any], Any]:
    """The same log density, which tells the counter of its evaluations."""
    note = counter.logger

    def tick(kind: str, point: Any) -> Any:
        shape = jax.ShapeDtypeStruct((), point.dtype)
        return jax.pure_callback(lambda points: _tell(kind, note, points), shape, point, vmap_method="broadcast_all")

    @jax.custom_jvp
    def tick_gradient(point):
        return tick("gradient", point)

    @tick_gradient.defjvp
    def column(points, tangents):
        return tick_gradient(points[0]), _column.bind(_one(points[0]) * tangents[0], kind="column", note=note)

    @jax.custom_vjp
    def told(point):
        return log_density(point) + tick("value", jax.lax.stop_gradient(point))

    def forward(point):
        value, gradient = jax.value_and_grad(log_density)(point)
        return value, gradient + tick_gradient(point)

    told.defvjp(forward, lambda gradient, along: (along * gradient,))
    told.counter = counter  # for methods that take the model inside it instead
    return told
