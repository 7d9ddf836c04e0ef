"""How much memory one draw needs: an upper bound read off the traced program, before anything is compiled."""

from collections.abc import Callable, Iterator

import jax
import numpy as np


def bytes_per_point(function: Callable, *arguments) -> int:
    """Sum of the sizes of all intermediate arrays of `function`; the compiler reuses most of them."""
    return _total(jax.make_jaxpr(function)(*arguments).jaxpr)


def _total(jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        total += sum(_size(variable.aval) for variable in equation.outvars)
        total += sum(_total(inner) for inner in inner_programs(equation.params))
    return total


def inner_programs(params: dict) -> Iterator:
    """The bodies of loops, branches and calls."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            program = getattr(item, "jaxpr", item)
            if hasattr(program, "eqns"):
                yield program


def _size(aval) -> int:
    shape = getattr(aval, "shape", ())
    return int(np.prod(shape, dtype=np.int64)) * getattr(getattr(aval, "dtype", None), "itemsize", 8)
