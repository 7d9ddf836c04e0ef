"""In 64 bits, whatever JAX is set to: everything that ends in a number of ours is computed within `in_double()`.

JAX 0.10 remembers a NumPy array that a program closes over in the precision of the first program that did, for as long as
that program lives. Once `jax.jit(f)` has run in 32 bits, `f` is compiled with its 32 bits in 64, too, or not at all; and
the other way round after a fit. Where that is so, the reader of arrays that JAX has is replaced by one that tells the two
precisions apart. Nothing else of JAX is changed, and no setting.
"""

import weakref
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import jax
import numpy as np

from quenched.forks import insist_not_forked


def in_double() -> AbstractContextManager:
    """A scope in which JAX computes in 64 bits, if it can compute at all."""
    insist_not_forked()
    _mended()
    return jax.enable_x64(True)


@cache
def _mended() -> None:
    """See to it that arrays are read in the precision that holds, once."""
    try:
        from jax._src import dtypes, literals

        if _confuses(dtypes.canonicalize_value):
            dtypes.register_canonicalize_value_handler(
                np.ndarray, _Reader(dtypes.canonicalize_dtype, literals.TypedNdArray)
            )
    except (ImportError, AttributeError):  # a JAX that keeps such things elsewhere
        return


def _confuses(read: Any) -> bool:
    array = np.zeros(1)
    with jax.enable_x64(False):
        kept = read(array)
    with jax.enable_x64(True):
        return read(array).dtype == kept.dtype


class _Reader:
    """Arrays as constants of a program: the same constant for the same array and precision, while both live."""

    def __init__(self, canonical: Any, constant: Any):
        self.canonical, self.constant = canonical, constant
        self.known: dict[tuple[int, Any], tuple[weakref.ref, weakref.ref]] = {}

    def __call__(self, array: np.ndarray) -> Any:
        dtype = self.canonical(array.dtype)
        key = (id(array), dtype)
        its, kept = self.known.get(key, (None, None))
        if its is not None and kept is not None and its() is array and (found := kept()) is not None:
            return found
        made = self.constant(np.asarray(array, dtype))
        forget = lambda _: self.known.pop(key, None)
        self.known[key] = (weakref.ref(array, forget), weakref.ref(made, forget))
        return made
