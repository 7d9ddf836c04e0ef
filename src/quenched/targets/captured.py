"""What a function sees: a fingerprint that stays the same only while a compiled copy of the function is still right.

Compiled programs are kept from one fit to the next. A program is used again only where everything that its function
sees is *known* to be unchanged; otherwise the function is traced again. Data handed over as `data` are arguments of the
program, and never cause a new trace.

What is followed, through functions and objects of any depth: globals and closure variables that the code reads, default
arguments, attributes of functions; `partial`s and bound methods; attributes (`__dict__`, `__slots__`) of objects, and
of their classes as far as the code names them; lists, tuples, dicts, sets, dataclasses, named tuples; NumPy arrays,
DataFrames and Series, by content; attributes of a person's own modules that the code names. What is known to be
constant: numbers and strings; JAX arrays, which cannot be overwritten; loggers, which change no number; classes,
functions and modules of Python and of installed packages. Everything else (files, the environment, the clock, random
generators, iterators, locks, whatever keeps its state in C) is unknown, and a function that sees it is traced anew for
every fit.
"""

import hashlib
import logging
import sys
from array import array
from collections import deque, namedtuple
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, partial, partialmethod
from operator import attrgetter, itemgetter, methodcaller
from pathlib import PurePath
from re import Pattern
from struct import calcsize
from types import (
    BuiltinFunctionType,
    CodeType,
    EllipsisType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    NoneType,
    NotImplementedType,
    WrapperDescriptorType,
)

import jax
import numpy as np

from quenched.targets.reading import (
    IMPURE_BUILTINS,
    Reads,
    is_installed,
    is_installed_class,
    is_published,
    reads,
    reads_the_world,
    remembered,
)

_PLAIN = frozenset({bool, int, float, complex, str, bytes, NoneType})
_ATOMS = _PLAIN | {EllipsisType, NotImplementedType, range, CodeType, Fraction, Decimal}
_VALUES = (date, time, timedelta, Pattern, np.dtype)  # equal means the same, whatever the subclass
_FIELD = type(namedtuple("_Field", "value").value)  # pyright: ignore  # how a named tuple finds its fields
_CONSTANT = (
    *(jax.Array, _FIELD, np.ufunc, logging.Logger, attrgetter, itemgetter, methodcaller),
    *(MethodWrapperType, WrapperDescriptorType, MethodDescriptorType, GetSetDescriptorType, MemberDescriptorType),
)
_SEQUENCES = (list, tuple, set, frozenset, deque)
_NUMBERS_AND_TEXTS = (int, float, complex, str, bytes)
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
_WITHOUT_NUMBERS = frozenset(
    {"__repr__", "__str__", "__format__", "__init_subclass__", "__class_getitem__", "_abc_impl"}
)
_READS_A_FILE = frozenset({"open", "read_text", "read_bytes", "stat", "exists", "iterdir"})
_MOST = 100_000  # objects; tracing again is no slower than following more
_POINTER = calcsize("P")


def fingerprint(function: Callable) -> Hashable | None:
    """Equal fingerprints: the same function, seeing the same. None: it sees something that may change unseen."""
    try:
        return _Walk().fingerprint(function)
    except Exception:  # `_UnknownError`, or an object that cannot even be looked at
        return None


class Unchanging:
    """An object that is never changed once it is made, and is seen as a constant: the same only as itself."""


class _UnknownError(Exception):
    """Something was met that may change without a trace."""


class _Same:
    """Equal to itself alone, and alive as long as it is remembered: a bare `id` could be given out again."""

    def __init__(self, value: object):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


class _Namespace:
    """A person's own module or class: its attributes are followed once some code names them."""

    def __init__(self, space: Mapping[str, object], wanted: Iterable[str] = ()):
        self.space, self.wanted, self.done = space, set(wanted), set()

    def next(self, names: set[str]) -> str | None:
        """A name to be followed, and not followed yet."""
        found = [name for name in (names | self.wanted) - self.done if name in self.space]
        return min(found, default=None)


class _Walk:
    """Visits all that can be reached from a function, each object once, and notes what it meets in order."""

    def __init__(self):
        self.tokens: list[Hashable] = []
        self.pending: list[object] = []  # a stack of our own: what people nest may be deeper than Python's
        self.met: dict[int, tuple[int, object]] = {}  # with the object, so that no `id` is given out twice
        self.names: set[str] = set()
        self.namespaces: dict[int, _Namespace] = {}
        self.paths = False

    def fingerprint(self, function: Callable) -> Hashable:
        self.pending.append(function)
        while self.pending:
            self.visit(self.pending.pop())
            if not self.pending:
                self._look_up()
        if self.paths and self.names & _READS_A_FILE:
            raise _UnknownError
        return tuple(self.tokens)

    def _look_up(self) -> None:
        """Follow one more name of one of the namespaces: names and namespaces both grow on the way."""
        for place, namespace in enumerate(self.namespaces.values()):
            name = namespace.next(self.names)
            if name is not None:
                namespace.done.add(name)
                self.note("name", place, name, follow=[namespace.space[name]])
                return

    def note(self, *token: Hashable, follow: Iterable[object] = ()) -> None:
        """Note what was met, and what of it is still to be visited."""
        children = list(follow)
        self.tokens.append((*token, len(children)))
        self.pending.extend(reversed(children))

    def visit(self, value: object) -> None:
        kind = type(value)
        if kind in _ATOMS:
            self.note(kind, repr(value) if kind in (float, complex) else value)  # NaN equals itself, 0.0 is not -0.0
            return
        if id(value) in self.met:
            self.note("again", self.met[id(value)][0])
            return
        if len(self.met) >= _MOST:
            raise _UnknownError
        self.met[id(value)] = (len(self.met), value)
        _follower(kind)(self, value)

    def constant(self, value: object) -> None:
        self.note(_Same(value))

    def equal(self, value: Hashable) -> None:
        self.note(type(value), value)

    def follow_path(self, value: PurePath) -> None:
        """Only a name, unless something is read from it."""
        self.paths = True
        self.note(type(value), str(value))

    # Code.

    def follow_function(self, function: FunctionType) -> None:
        self._refuse_the_world(function)
        if is_published(function):
            self.constant(function)
            return
        cells = _cells(function)
        own = {name: value for name, value in cells.items() if name != "__class__"}
        if isinstance(cls := cells.get("__class__"), type):  # what `super()` reads
            self.type_of_instance(cls)
        seen: dict[str, object] = {"defaults": function.__defaults__, "keywords": function.__kwdefaults__}
        seen |= {f"attribute {name}": value for name, value in function.__dict__.items()}
        seen |= {f"cell {name}": value for name, value in own.items()}
        if not is_installed(function.__globals__.get("__name__")):
            seen |= self._globals(function, reads(function.__code__), own)
        self.note(function.__code__, tuple(seen), follow=seen.values())

    def _globals(self, function: FunctionType, read: Reads, cells: dict[str, object]) -> dict[str, object]:
        space = function.__globals__
        self.names |= read.attributes
        for name, attribute in read.dotted:
            owner = cells.get(name, space.get(name))
            if isinstance(owner, ModuleType):
                self._refuse_the_world(vars(owner).get(attribute))
        if any(name in IMPURE_BUILTINS and name not in space for name in read.names):
            raise _UnknownError
        found = {f"global {name}": space[name] for name in read.names if name in space}
        for name in read.imports:
            found |= {f"import {module.__name__}": module for module in self._imported(name, space.get("__package__"))}
        return found

    def _imported(self, name: str, package: object) -> list[ModuleType]:
        """Modules that an import inside a function may mean; it does not say here from which package."""
        parents = str(package or "").split(".")
        prefixes = [".".join(parents[:n]) for n in range(1, len(parents) + 1)]
        candidates = [name, name.partition(".")[0], *(f"{prefix}.{name}".strip(".") for prefix in prefixes)]
        modules = [sys.modules[candidate] for candidate in dict.fromkeys(candidates) if candidate in sys.modules]
        if not modules:
            raise _UnknownError
        for module in modules:
            for attribute in self.names & vars(module).keys():
                self._refuse_the_world(vars(module)[attribute])
        return modules

    def _refuse_the_world(self, value: object) -> None:
        if reads_the_world(value):
            raise _UnknownError

    def follow_method(self, method: MethodType) -> None:
        self.note("method", follow=[method.__func__, method.__self__])

    def follow_builtin(self, function: BuiltinFunctionType) -> None:
        self._refuse_the_world(function)
        owner = function.__self__
        if owner is None or isinstance(owner, (ModuleType, type)):
            self.constant(function)
        else:  # a method of a list, a dict, ...
            self.note("method", function.__name__, follow=[owner])

    def follow_partial(self, value: partial | partialmethod) -> None:
        self.note(type(value), follow=[value.func, value.args, value.keywords, getattr(value, "__dict__", None)])

    def follow_descriptor(self, value: staticmethod | classmethod) -> None:
        self.note(type(value), follow=[value.__func__])

    def follow_property(self, value: property) -> None:
        self.note(type(value), follow=[value.fget])

    def follow_cached_property(self, value: cached_property) -> None:
        self.note(type(value), follow=[value.func])  # its lock says nothing

    # Namespaces.

    def follow_module(self, module: ModuleType) -> None:
        self._refuse_the_world(module)
        self.constant(module)
        if sys.modules.get(module.__name__) is not module or not is_installed(module.__name__):
            self.namespaces[id(module)] = _Namespace(vars(module))

    def follow_class(self, cls: type) -> None:
        """A class that code may make objects of."""
        self.type_of_instance(cls)
        for base in cls.__mro__:
            if id(base) in self.namespaces:
                self.namespaces[id(base)].wanted |= _CONSTRUCTORS

    def type_of_instance(self, cls: type) -> None:
        """The class of an object: what Python or a class of an installed package calls unasked, and what code names."""
        self._refuse_the_world(cls)
        self.constant(cls)
        own = [base for base in cls.__mro__ if not is_installed_class(base)]
        others = [vars(base) for base in cls.__mro__ if base is not object and is_installed_class(base)]
        for base in own:
            if id(base) not in self.namespaces:
                unasked = {name for name in vars(base) if _is_called_unasked(name, vars(base)[name], others)}
                self.namespaces[id(base)] = _Namespace(vars(base), unasked)

    # Data.

    def follow_array(self, value: np.ndarray) -> None:
        plain, extras = np.ascontiguousarray(value), self._extras(value, np.ndarray)
        if plain.dtype.hasobject:
            content, elements = None, plain.ravel().tolist()
        else:
            content, elements = _digest(plain.reshape(-1).view(np.uint8).data if plain.nbytes else b""), []
        self.note(type(value), value.shape, value.dtype.str, content, follow=[elements, *extras])

    def follow_scalar(self, value: np.generic) -> None:
        self.note(type(value), value.dtype.str, value.tobytes(), follow=value.item() if value.dtype.hasobject else ())

    def follow_buffer(self, value: bytearray | memoryview | array) -> None:
        self.note(type(value), bytes(value))

    def follow_mapping(self, value: Mapping) -> None:
        items = dict.items(value) if isinstance(value, dict) else value.items()  # not by a method of a person's own
        pairs = [part for pair in items for part in pair]
        self.note(type(value), follow=[*pairs, *self._extras(value, dict)])

    def follow_sequence(self, value: list | tuple | set | frozenset | deque) -> None:
        base = next(kind for kind in _SEQUENCES if isinstance(value, kind))
        items: list[object] = list(base.__iter__(value))  # pyright: ignore
        if set(map(type, items)) <= _PLAIN:  # all at once; their text tells 1 from 1.0 and -0.0 from 0.0
            items = [_digest(repr(items).encode("utf-8", "surrogatepass"))]
        self.note(type(value), follow=[*items, *self._extras(value, base)])

    def follow_number_or_text(self, value: int | float | complex | str | bytes) -> None:
        """Of a class of its own, which may have attributes."""
        base = next(kind for kind in _NUMBERS_AND_TEXTS if isinstance(value, kind))
        self.note(type(value), repr(base.__repr__(value)), follow=self._extras(value, base))  # pyright: ignore

    def follow_member(self, value: Enum) -> None:
        self.type_of_instance(type(value))
        self.note(value.name)

    def follow_table(self, value) -> None:
        """A DataFrame: its columns one by one."""
        columns = [value.iloc[:, index].to_numpy() for index in range(value.shape[1])]
        kinds = [str(kind) for kind in value.dtypes]
        self.note(type(value), follow=[value.columns, value.index, kinds, *columns])

    def follow_column(self, value) -> None:
        """A Series."""
        self.note(type(value), str(value.dtype), follow=[value.index, value.name, value.to_numpy()])

    def follow_index(self, value) -> None:
        self.note(type(value), str(value.dtype), follow=[list(value.names), value.to_numpy()])

    # Objects.

    def _extras(self, value: object, plain: type) -> list[object]:
        """Attributes of an object whose class was derived from a plain one."""
        if type(value) in (plain, MappingProxyType):
            return []
        self.type_of_instance(type(value))
        return [_attributes(value)]

    def follow_object(self, value: object) -> None:
        kind = type(value)
        self._refuse_the_world(kind)
        if is_installed_class(kind) and is_published(value):
            self.constant(value)
        elif _has_hidden_state(kind):
            self._hidden(value)
        else:
            self.type_of_instance(kind)
            self.note("object", follow=[_attributes(value)])

    def _hidden(self, value: object) -> None:
        """State that Python cannot see: known only for wrapped functions, such as `jax.jit` makes, and for JAX's own."""
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is None and type(value).__module__.partition(".")[0] not in ("jax", "jaxlib"):
            raise _UnknownError
        self.note(_Same(value), follow=[wrapped])


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _cells(function: FunctionType) -> dict[str, object]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _attributes(value: object) -> dict[str, object]:
    try:
        found = dict(object.__getattribute__(value, "__dict__"))  # not by a `__getattr__` of the object's own
    except AttributeError:
        found = {}
    for slot in _slots(type(value)):
        try:
            found[slot.__name__] = slot.__get__(value)
        except AttributeError:  # not assigned yet
            continue
    return found


def _slots(kind: type) -> list[MemberDescriptorType]:
    return [slot for base in kind.__mro__ for slot in vars(base).values() if isinstance(slot, MemberDescriptorType)]


def _has_hidden_state(kind: type) -> bool:
    """Whether objects of this class are larger than what Python can see of them: the test that `pickle` makes, too."""
    visible = object.__basicsize__ + _POINTER * len(_slots(kind))
    visible += _POINTER * (kind.__dictoffset__ > 0) + _POINTER * (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ > 0 or kind.__basicsize__ > visible


def _is_called_unasked(name: str, value: object, others: Sequence[Mapping[str, object]]) -> bool:
    """Operators and the like; and methods that a class of an installed package declares, and may call."""
    if name in _CONSTRUCTORS or name in _WITHOUT_NUMBERS:
        return False
    if name.startswith("__") and name.endswith("__"):
        return isinstance(value, (FunctionType, staticmethod, classmethod, property))
    return any(name in space for space in others)


# The first that fits: a NumPy number is also a float, an enumeration may be of whole numbers.
_FOLLOW: tuple[tuple[tuple[type, ...], Callable], ...] = (
    ((*_CONSTANT, Unchanging), _Walk.constant),
    (_VALUES, _Walk.equal),
    ((FunctionType,), _Walk.follow_function),
    ((MethodType,), _Walk.follow_method),
    ((BuiltinFunctionType,), _Walk.follow_builtin),
    ((partial, partialmethod), _Walk.follow_partial),
    ((staticmethod, classmethod), _Walk.follow_descriptor),
    ((property,), _Walk.follow_property),
    ((cached_property,), _Walk.follow_cached_property),
    ((ModuleType,), _Walk.follow_module),
    ((type,), _Walk.follow_class),
    ((np.ndarray,), _Walk.follow_array),
    ((np.generic,), _Walk.follow_scalar),
    ((Enum,), _Walk.follow_member),
    ((PurePath,), _Walk.follow_path),
    ((dict, MappingProxyType), _Walk.follow_mapping),
    (_SEQUENCES, _Walk.follow_sequence),
    (_NUMBERS_AND_TEXTS, _Walk.follow_number_or_text),
    ((bytearray, memoryview, array), _Walk.follow_buffer),
)
_FOLLOW_TABLES = {
    "DataFrame": _Walk.follow_table,
    "Series": _Walk.follow_column,
    "Index": _Walk.follow_index,
    "NAType": _Walk.constant,
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
    return _Walk.follow_object
