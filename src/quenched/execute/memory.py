"""How much memory one draw needs: an upper bound read off the traced program, before anything is compiled; and what to do without."""

import ctypes
from collections.abc import Callable
from contextlib import suppress

import jax
import numpy as np

from quenched.compiling import inner_programs

NOT_ENOUGH = "memory: there is not enough of it"
_WORDS = (
    *("RESOURCE_EXHAUSTED", "Out of memory", "failed to map segment", "Cannot allocate memory"),
    "can't start new thread",  # its stack finds no space
)


def out_of_memory(error: Exception) -> MemoryError | None:
    """An error as one about memory, in our words, if it is one: NumPy, JAX and the system each have their own."""
    if not isinstance(error, (MemoryError, RuntimeError, OSError, ImportError)):
        return None  # of the user's own: nobody knows whether it can be shown
    words = " ".join(str(error).split())
    if not isinstance(error, MemoryError) and not any(each in words for each in _WORDS):
        return None
    if words.startswith(NOT_ENOUGH):
        return None  # a fit within another has said it already
    return MemoryError(
        f"{NOT_ENOUGH} ({words[:200] or 'no more is said'}). Give memory= a number of bytes, so that draws are "
        'evaluated in chunks; fewer draws; family="diagonal" or LowRank(k), which hold fewer numbers; or fewer data at a time.'
    )


def give_back_freed() -> None:
    """Give memory that was freed back to the system: glibc keeps what compilers leave between the pieces still in use."""
    with suppress(AttributeError, OSError, TypeError):  # another library of C
        ctypes.CDLL(None).malloc_trim(0)


def bytes_per_point(function: Callable, *arguments) -> int:
    """Sum of the sizes of all intermediate arrays of `function`; the compiler reuses most of them."""
    return _total(jax.make_jaxpr(function)(*arguments).jaxpr)


def _total(jaxpr) -> int:
    total = 0
    for equation in jaxpr.eqns:
        total += sum(_size(variable.aval) for variable in equation.outvars)
        total += sum(_total(inner) for inner in inner_programs(equation.params))
    return total


def _size(aval) -> int:
    shape = getattr(aval, "shape", ())
    return int(np.prod(shape, dtype=np.int64)) * getattr(getattr(aval, "dtype", None), "itemsize", 8)
