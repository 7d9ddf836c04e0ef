"""What a function sees: a fingerprint that stays the same only while a compiled copy of the function is still right.

Compiled programs are kept from one fit to the next. A program is used again only where everything that its function
sees is *known* to be unchanged; otherwise the function is traced again. Data handed over as `data` are arguments of the
program, and never cause a new trace.

What is followed, through functions and objects of any depth: globals and closure variables that the code reads, default
arguments, attributes of functions; `partial`s and bound methods; attributes (`__dict__`, `__slots__`) of objects, and
of their classes as far as the code names them; lists, tuples, dicts, sets, dataclasses, named tuples; NumPy arrays,
DataFrames and Series, by content; attributes of a person's own modules that the code names. Cached properties that it names are computed first: in a trace,
what JAX makes of them belongs to that trace, and is of no use afterwards. What is known to be
constant: numbers and strings; JAX arrays, which cannot be overwritten; loggers, which change no number; classes,
functions and modules of Python and of installed packages. Everything else (files, the environment, the clock, random
generators, iterators, locks, whatever keeps its state in C) is unknown, and a function that sees it is traced anew for
every fit.
"""

import logging
from array import array
from collections import namedtuple
from collections.abc import Callable, Hashable
from datetime import date, time, timedelta
from enum import Enum
from functools import cached_property, partial, partialmethod
from operator import attrgetter, itemgetter, methodcaller
from pathlib import PurePath
from re import Pattern
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)

import jax
import numpy as np

from quenched.targets.captured import code, objects
from quenched.targets.captured.reading import is_installed, remembered
from quenched.targets.captured.walk import Walk

__all__ = ["Unchanging", "fingerprint", "is_installed"]

_VALUES = (date, time, timedelta, Pattern, np.dtype)  # equal means the same, whatever the subclass
_FIELD = type(namedtuple("_Field", "value").value)  # pyright: ignore  # how a named tuple finds its fields
_CONSTANT = (
    *(jax.Array, _FIELD, np.ufunc, logging.Logger, attrgetter, itemgetter, methodcaller),
    *(MethodWrapperType, WrapperDescriptorType, MethodDescriptorType, GetSetDescriptorType, MemberDescriptorType),
)


def fingerprint(function: Callable) -> Hashable | None:
    """Equal fingerprints: the same function, seeing the same. None: it sees something that may change unseen."""
    try:
        seen = (walk := Walk(_follower)).fingerprint(function)
        return Walk(_follower).fingerprint(function) if objects.fill(walk) else seen
    except Exception:  # `UnknownError`, or an object that cannot even be looked at
        return None


class Unchanging:
    """An object that is never changed once it is made, and is seen as a constant: the same only as itself."""


# The first that fits: a NumPy number is also a float, an enumeration may be of whole numbers.
_FOLLOW: tuple[tuple[tuple[type, ...], Callable], ...] = (
    ((*_CONSTANT, Unchanging), Walk.constant),
    (_VALUES, objects.follow_value),
    ((FunctionType,), code.follow_function),
    ((MethodType,), code.follow_method),
    ((BuiltinFunctionType,), code.follow_builtin),
    ((partial, partialmethod), code.follow_partial),
    ((staticmethod, classmethod), code.follow_descriptor),
    ((property,), code.follow_property),
    ((cached_property,), code.follow_cached_property),
    ((ModuleType,), code.follow_module),
    ((type,), code.follow_class),
    ((np.ndarray,), objects.follow_array),
    ((np.generic,), objects.follow_scalar),
    ((Enum,), objects.follow_member),
    ((PurePath,), objects.follow_path),
    ((dict, MappingProxyType), objects.follow_mapping),
    (objects.SEQUENCES, objects.follow_sequence),
    (objects.NUMBERS_AND_TEXTS, objects.follow_number_or_text),
    ((bytearray, memoryview, array), objects.follow_buffer),
)
_FOLLOW_TABLES = {
    "DataFrame": objects.follow_table,
    "Series": objects.follow_column,
    "Index": objects.follow_index,
    "NAType": Walk.constant,
}


@remembered
def _follower(kind: type) -> Callable:
    """How objects of a class are followed."""
    for kinds, follow in _FOLLOW:
        if issubclass(kind, kinds):
            return follow
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "pandas" and base.__name__ in _FOLLOW_TABLES:
            return _FOLLOW_TABLES[base.__name__]
    return objects.follow_object
