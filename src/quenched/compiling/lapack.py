"""Calls of LAPACK on the processor, made so that they cannot wait for themselves.

jaxlib from 0.9.1 to 0.11.0 cuts a batch of matrices into pieces, queues these for the threads that run XLA's programs,
and waits where it was called. Called on those threads, as many times at once as there are threads, it waits for ever: on
two cores, two triangular solves in the gradient of one `jnp.linalg.solve` are enough. A batch that is worth less than a
change of threads is not cut; it is worked off by whoever called. So every call is kept that small, and nothing can wait.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import jax
import numpy as np
from jax.core import eval_jaxpr

from quenched.threads import bring_lapack

Equation = Any  # a `JaxprEqn`, whose home, `jax.extend.core`, brings Pallas along and takes a while to import

_OPERATIONS = 200_000  # of floating point: batches worth less are not cut (GetLapackBatchChunkSize in jaxlib)
_PER_ENTRY = {"cholesky": 1, "lu": 1, "triangular_solve": 1}  # operations, times the size of the matrix
_MOST_PER_ENTRY = 10  # of all others
_COMPLEX = 3
_VECTORS = {"tridiagonal_solve"}  # whose matrix comes as three vectors
_OTHERS = {"eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product", "ormqr", "qr", "schur", "svd"}
_NAMES = {*_PER_ENTRY, *_VECTORS, *_OTHERS, "tridiagonal"}


def calls_lapack(function: Callable, *arguments: Any) -> bool:
    """Whether JAX hands parts of a function to LAPACK."""
    return any(True for _ in _calls(jax.make_jaxpr(function)(*arguments).jaxpr))


def points_together(function: Callable, *arguments: Any) -> int:
    """How many points may be evaluated side by side before a call of LAPACK is cut up: at least one.

    The arguments are those of one point. Where it is few, whole points one after the other are also quicker than batches:
    their matrices stay in the cache, and XLA sees which factorisations are the same.
    """
    calls = _calls(jax.make_jaxpr(function)(*arguments).jaxpr)
    return max(1, min((_OPERATIONS // max(1, _batch(call) * _operations(call)) for call in calls), default=_OPERATIONS))


def inner_programs(params: dict) -> Iterator:
    """The bodies of loops, branches and calls."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            program = getattr(item, "jaxpr", item)
            if hasattr(program, "eqns"):
                yield program


def divided(n: int, together: int) -> int:
    """The largest part of n that is not above `together` and leaves no rest, which would be compiled for itself."""
    return next(size for size in range(min(n, together), 0, -1) if n % size == 0)


def compiled(function: Callable, *, static_argnums: int | tuple[int, ...] = (), **settings: Any) -> Callable:
    """`jax.jit` for a program that is called from Python and may call LAPACK, in a user's function or in ours."""
    return jax.jit(in_small_calls(function, static_argnums), static_argnums=static_argnums, **settings)


def in_small_calls(function: Callable, static_argnums: int | tuple[int, ...] = ()) -> Callable:
    """The same function, its batches of matrices worked off in calls too small to be cut up.

    It must be the outermost: what is mapped or differentiated afterwards has batches of its own.
    """
    static = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)

    @wraps(function)
    def call(*inputs):
        if jax.default_backend() != "cpu":
            return function(*inputs)
        # JAX remembers what it has traced for as long as the function lives: this one must not live.
        passing = lambda *given: function(*given)
        program, shapes = jax.make_jaxpr(passing, static_argnums=tuple(static), return_shape=True)(*inputs)
        if any(True for _ in _calls(program.jaxpr)):
            bring_lapack()
        leaves = jax.tree.leaves([leaf for index, leaf in enumerate(inputs) if index not in static])
        small = _rewritten(program)
        return jax.tree.unflatten(jax.tree.structure(shapes), eval_jaxpr(small.jaxpr, small.consts, *leaves))

    return call


def _calls(program: Any) -> Iterator[Equation]:
    """The calls of LAPACK in a program."""
    for equation in program.eqns:
        if equation.primitive.name in _NAMES:
            yield equation
        for inner in inner_programs(equation.params):
            yield from _calls(inner)


def _operations(call: Equation) -> int:
    """For one matrix, at the most: what jaxlib reckons with, or more."""
    name, first = call.primitive.name, _shaped(call.invars[0])
    axes = _batch_axes(call)
    entries = max(int(np.prod(_shaped(variable).shape[axes:])) for variable in (*call.invars, *call.outvars))
    factor = _PER_ENTRY.get(name, _MOST_PER_ENTRY) * (_COMPLEX if np.issubdtype(first.dtype, np.complexfloating) else 1)
    return factor * entries * (1 if name in _VECTORS else min(first.shape[axes:]))


def _shaped(variable: Any) -> Any:
    """An array's shape and dtype, as JAX knows them while it traces."""
    return variable.aval


def _batch_axes(call: Equation) -> int:
    return _shaped(call.invars[0]).ndim - (1 if call.primitive.name in _VECTORS else 2)


def _batch(call: Equation) -> int:
    return int(np.prod(_shaped(call.invars[0]).shape[: _batch_axes(call)]))


def _rewritten(part: Any) -> Any:
    """A program, or whatever of an equation's parameters holds programs, with small calls alone."""
    inner = getattr(part, "jaxpr", part)
    if inner is not part:  # a program with its constants; from JAX 0.12 on these are part of every program
        return part.replace(jaxpr=_rewritten(inner))
    if hasattr(part, "eqns"):
        return part.replace(eqns=[_small(equation) for equation in part.eqns])
    if isinstance(part, tuple) and hasattr(part, "_fields"):
        return type(part)(*map(_rewritten, part))
    if isinstance(part, (tuple, list)):
        return type(part)(map(_rewritten, part))
    return part


def _small(equation: Equation) -> Equation:
    if equation.primitive.name not in _NAMES:
        if not any(True for _ in inner_programs(equation.params)):
            return equation
        return equation.replace(params={name: _rewritten(part) for name, part in equation.params.items()})
    n, together = _batch(equation), max(1, _OPERATIONS // max(1, _operations(equation)))
    return equation if n <= together else _in_turn(equation, divided(n, together))


def _in_turn(call: Equation, together: int) -> Equation:
    """The same call, for some of its matrices after the other."""
    axes = _batch_axes(call)

    @jax.jit
    def loop(*operands):
        batch = operands[0].shape[:axes]
        parts = tuple(array.reshape(-1, together, *array.shape[axes:]) for array in operands)
        found = jax.lax.map(lambda some: call.primitive.bind(*some, **call.params), parts)
        return jax.tree.map(lambda array: array.reshape(*batch, *array.shape[2:]), found)

    program = jax.make_jaxpr(loop)(*(variable.aval for variable in call.invars))
    return program.jaxpr.eqns[0].replace(invars=call.invars, outvars=call.outvars)
