"""In 64 bits, whatever JAX is set to: everything that ends in a number of ours is computed within `in_double()`.

JAX 0.10 remembers a NumPy array that a program closes over in the precision of the first program that did, for as long as
that program lives. Once `jax.jit(f)` has run in 32 bits, `f` is compiled with its 32 bits in 64, too, or not at all; and
the other way round after a fit. Where that is so, the reader of arrays that JAX has is replaced by one that tells the two
precisions apart. Nothing else of JAX is changed, and no setting.

What NumPy says of overflows and divisions by zero there is nobody's concern: numbers that are not finite are looked for
where they matter. So it is silent in that scope, whatever it was told to do: a pipeline that has warnings or `np.seterr` raise
would lose its fit to an underflow. A user's own function has it as they do.
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any

import jax
import numpy as np

from quenched.forks import insist_not_forked

_SILENT: Any = dict.fromkeys(("divide", "over", "under", "invalid"), "ignore")
_theirs: ContextVar[Any] = ContextVar("what NumPy does about floating-point errors outside of all scopes")


@contextmanager
def in_double() -> Iterator[None]:
    """A scope in which JAX computes in 64 bits, if it can compute at all, and NumPy without remarks."""
    insist_not_forked()
    _mended()
    before = np.geterr()
    token = None if before == _SILENT else _theirs.set(before)
    try:
        with jax.enable_x64(True), np.errstate(**_SILENT):
            yield
    finally:
        if token is not None:
            _theirs.reset(token)


@contextmanager
def as_outside() -> Iterator[None]:
    """For a user's own function within such a scope: NumPy's remarks as they have them."""
    with np.errstate(**_theirs.get(_SILENT)) if np.geterr() == _SILENT else nullcontext():
        yield


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
