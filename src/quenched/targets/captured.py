"""What a function has captured: a fingerprint that changes when a compiled copy of it would be stale.

Compiled programs are kept from one fit to the next. A log density that closes over an array which has since been
replaced or overwritten must be traced again; one that has not changed must not.
"""

import hashlib
from collections.abc import Callable, Hashable
from functools import partial
from types import CodeType, FunctionType

import numpy as np


class _Same:
    """Equal to itself alone, and alive as long as it is remembered: a bare `id` could be given out again."""

    def __init__(self, value: object):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


def fingerprint(function: Callable) -> Hashable:
    """Identity of the function and of all it refers to; arrays by content, since they can be overwritten.

    Attributes of captured objects are not followed: put what changes into `data`.
    """
    return _fingerprint(function, frozenset())


def _fingerprint(function: Callable, seen: frozenset[int]) -> Hashable:
    if isinstance(function, partial):
        return (_fingerprint(function.func, seen), _value(function.args, seen), _value(function.keywords, seen))
    inner = getattr(function, "__func__", function)
    if not isinstance(inner, FunctionType) or id(inner) in seen:
        return _Same(function)
    seen = seen | {id(inner)}
    parts = tuple((name, _value(value, seen)) for name, value in sorted(_captured(inner).items()))
    defaults = (_value(inner.__defaults__, seen), _value(inner.__kwdefaults__, seen))
    return (_Same(inner), _Same(getattr(function, "__self__", None)), parts, defaults)


def _captured(function: FunctionType) -> dict[str, object]:
    """Globals and closure variables that a function can read, also through functions defined inside it."""
    values = {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return values


def _names(code: CodeType) -> set[str]:
    """Names that code looks up, its nested functions, lambdas and comprehensions included."""
    nested = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, nested))


def _value(value: object, seen: frozenset[int]) -> Hashable:
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
        return (value.shape, value.dtype.str, digest)
    if isinstance(value, (bool, int, float, str, bytes, type(None))):
        return value
    if isinstance(value, dict):
        return tuple((str(key), _value(item, seen)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_value(item, seen) for item in value)
    if isinstance(value, FunctionType):
        return _fingerprint(value, seen)
    return _Same(value)
