"""JAX functions: traced once, compiled for one chunk of points, kept for the next fit."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import calls_lapack, divided, let_go_with_functions, points_together
from quenched.execute.effort import Effort, Program
from quenched.execute.executor import Evaluation, Executor
from quenched.execute.living import Weakly
from quenched.execute.memory import bytes_per_point
from quenched.execute.waiting import Wait
from quenched.interrupts import obey_interrupts

_HESSIAN_BATCH = 64  # columns at a time, memory permitting


class Traceable(NamedTuple):
    """What is asked of a function f(vector, data, free), as functions that JAX can trace."""

    evaluate: Callable[..., Evaluation]
    values: Callable[..., Array]
    second_order: Callable[..., tuple[Array, Array, Array]]


class Programs(NamedTuple):
    """The compiled faces of one function. Build once per function and keep."""

    evaluate: Program
    values: Program
    second_order: Program
    gradient_of_one: Callable[..., Any]
    inside: Traceable  # the same as parts of larger programs, which are made with `compiled`


def trace(function: Callable[[Array, Any, Array], Array]) -> Programs:
    """Wrap a function for batches. The inner `jit` makes Python run it once, whatever is built from it."""
    once = jax.jit(function)
    gradient_of_one = jax.grad(once, argnums=(0, 2))

    def together(of_one, points, data, free) -> int:
        """How many of these points to evaluate side by side."""
        point = jax.ShapeDtypeStruct(points.shape[1:], points.dtype)
        if not calls_lapack(once, point, data, free):
            return len(points)
        return divided(len(points), points_together(of_one, point, data, free))

    @jax.jit
    def values(points, data, free):
        return _in_turn(lambda point: once(point, data, free), points, together(once, points, data, free))

    def counted(points, counts, data, free):
        values = jax.vmap(once, in_axes=(0, None, None))(points, data, free)
        return jnp.sum(jnp.where(counts > 0, values, 0.0)), values

    @jax.jit
    def evaluate(points, counts, data, free):
        some = together(gradient_of_one, points, data, free)
        if not free.size:  # nothing to count: the plain batched gradient
            of_one = lambda point: jax.value_and_grad(once)(point, data, free)
            values, gradients = _in_turn(of_one, points, some)
            return Evaluation(values, gradients, jnp.zeros_like(free))
        if some < len(points):
            of_one = lambda point: jax.value_and_grad(once, argnums=(0, 2))(point, data, free)
            values, (gradients, of_free) = _in_turn(of_one, points, some)
            return Evaluation(values, gradients, jnp.sum(jnp.where(counts[:, None] > 0, of_free, 0.0), axis=0))
        (_, values), (gradients, of_free) = jax.value_and_grad(counted, argnums=(0, 3), has_aux=True)(
            points, counts, data, free
        )
        return Evaluation(values, gradients, of_free)

    @partial(jax.jit, static_argnums=3)
    def second_order(point, data, free, batch):
        of_point = lambda vector: jax.value_and_grad(once)(vector, data, free)
        column = lambda direction: jax.jvp(lambda vector: of_point(vector)[1], (point,), (direction,))[1]
        basis = jnp.eye(point.size, dtype=point.dtype)
        return *of_point(point), jax.lax.map(column, basis, batch_size=batch)

    return Programs(
        Program(evaluate),
        Program(values),
        Program(second_order, static_argnums=3),
        gradient_of_one,
        Traceable(Weakly(evaluate), Weakly(values), Weakly(second_order)),
    )


def _in_turn(function: Callable, points: Array, together: int) -> Any:
    """The function at every point, `together` of them side by side."""
    if together == len(points):
        return jax.vmap(function)(points)
    return jax.lax.map(function, points, batch_size=together if together > 1 else None)


class Traced(Executor):
    """Runs a traced function on this device, `chunk` points at a time."""

    def __init__(self, programs: Programs, chunk: int, most: int, effort: Effort, values_chunk: int = 64):
        self.programs, self.effort, self.values_chunk = programs, effort, values_chunk
        self.chunk = min(chunk, most)
        self.most = most  # points that memory holds at a time
        self.traced, self.traced_values = programs.inside.evaluate, programs.inside.values
        self._wait = Wait("the second derivatives of the log density")

    def evaluate(self, points, counts, data, free):
        obey_interrupts()
        return self.programs.evaluate(self.effort, points, counts, data, free)

    def values(self, points, data, free):
        obey_interrupts()
        return self.programs.values(self.effort, points, data, free)

    def second_order(self, point, spread, data, free):
        obey_interrupts()
        batch = min(_HESSIAN_BATCH, len(point), max(self.most // 3, 1))
        value, gradient, hessian = self._wait(self.programs.second_order(self.effort, point, data, free, batch))
        return float(value), np.asarray(gradient), np.asarray(hessian)

    def second_order_cost(self, dim):
        return 1 + 2 * dim  # a Hessian-vector product is about two gradients


def bytes_of_a_point(programs: Programs, dim: int, data: Any, free: Array) -> int:
    """At the most, for value and gradient at one point."""
    leaves, structure = jax.tree.flatten((np.zeros(dim), data, free))
    shapes = tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves)
    return _bytes(programs.gradient_of_one, structure, shapes) + 3 * 8 * dim


@lru_cache(maxsize=256)
def _bytes(function: Callable, structure: Any, shapes: tuple[jax.ShapeDtypeStruct, ...]) -> int:
    return bytes_per_point(function, *jax.tree.unflatten(structure, shapes))


let_go_with_functions(_bytes.cache_clear)


def points_that_fit(one: int, memory: float) -> int:
    """How many points, of so many bytes each, may be evaluated at a time so that they stay below `memory` bytes.

    Raises
    ------
    ValueError
        When not even one fits.
    """
    if memory < one:
        raise ValueError(
            f"memory: one draw needs up to {one:.3g} bytes besides the optimiser's arrays, and {max(0.0, memory):.3g} are left; "
            "allow more, or evaluate fewer data at a time."
        )
    return int(memory // one)
