"""Code, and the namespaces that it reads: functions, methods, classes, modules."""

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property, partial, partialmethod
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from quenched.targets.captured.reading import (
    IMPURE_BUILTINS,
    Reads,
    is_installed,
    is_installed_class,
    is_published,
    reads,
    reads_the_world,
)
from quenched.targets.captured.walk import Namespace, UnknownError, Walk

_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
_WITHOUT_NUMBERS = frozenset(
    {"__repr__", "__str__", "__format__", "__init_subclass__", "__class_getitem__", "_abc_impl"}
)


def follow_function(walk: Walk, function: FunctionType) -> None:
    refuse_the_world(function)
    if is_published(function):
        walk.constant(function)
        return
    cells = _cells(function)
    own = {name: value for name, value in cells.items() if name != "__class__"}
    if isinstance(cls := cells.get("__class__"), type):  # what `super()` reads
        type_of_instance(walk, cls)
    seen: dict[str, object] = {"defaults": function.__defaults__, "keywords": function.__kwdefaults__}
    seen |= {f"attribute {name}": value for name, value in function.__dict__.items()}
    seen |= {f"cell {name}": value for name, value in own.items()}
    if not is_installed(function.__globals__.get("__name__")):
        seen |= _globals(walk, function, reads(function.__code__), own)
    walk.note(function.__code__, tuple(seen), follow=seen.values())


def _globals(walk: Walk, function: FunctionType, read: Reads, cells: dict[str, object]) -> dict[str, object]:
    space = function.__globals__
    walk.names |= read.attributes
    for name, attribute in read.dotted:
        owner = cells.get(name, space.get(name))
        if isinstance(owner, ModuleType):
            refuse_the_world(vars(owner).get(attribute))
    if any(name in IMPURE_BUILTINS and name not in space for name in read.names):
        raise UnknownError
    found = {f"global {name}": space[name] for name in read.names if name in space}
    for name in read.imports:
        found |= {f"import {module.__name__}": module for module in _imported(walk, name, space.get("__package__"))}
    return found


def _imported(walk: Walk, name: str, package: object) -> list[ModuleType]:
    """Modules that an import inside a function may mean; it does not say here from which package."""
    parents = str(package or "").split(".")
    prefixes = [".".join(parents[:n]) for n in range(1, len(parents) + 1)]
    candidates = [name, name.partition(".")[0], *(f"{prefix}.{name}".strip(".") for prefix in prefixes)]
    modules = [sys.modules[candidate] for candidate in dict.fromkeys(candidates) if candidate in sys.modules]
    if not modules:
        raise UnknownError
    for module in modules:
        for attribute in walk.names & vars(module).keys():
            refuse_the_world(vars(module)[attribute])
    return modules


def refuse_the_world(value: object) -> None:
    """Whatever reads files, the environment, the clock, ... may see something else the next time."""
    if reads_the_world(value):
        raise UnknownError


def follow_method(walk: Walk, method: MethodType) -> None:
    walk.note("method", follow=[method.__func__, method.__self__])


def follow_builtin(walk: Walk, function: BuiltinFunctionType) -> None:
    refuse_the_world(function)
    owner = function.__self__
    if owner is None or isinstance(owner, (ModuleType, type)):
        walk.constant(function)
    else:  # a method of a list, a dict, ...
        walk.note("method", function.__name__, follow=[owner])


def follow_partial(walk: Walk, value: partial | partialmethod) -> None:
    walk.note(type(value), follow=[value.func, value.args, value.keywords, getattr(value, "__dict__", None)])


def follow_descriptor(walk: Walk, value: staticmethod | classmethod) -> None:
    walk.note(type(value), follow=[value.__func__])


def follow_property(walk: Walk, value: property) -> None:
    walk.note(type(value), follow=[value.fget])


def follow_cached_property(walk: Walk, value: cached_property) -> None:
    walk.note(type(value), follow=[value.func])  # its lock says nothing


# Namespaces.


def follow_module(walk: Walk, module: ModuleType) -> None:
    refuse_the_world(module)
    walk.constant(module)
    if sys.modules.get(module.__name__) is not module or not is_installed(module.__name__):
        walk.namespaces[id(module)] = Namespace(vars(module))


def follow_class(walk: Walk, cls: type) -> None:
    """A class that code may make objects of."""
    type_of_instance(walk, cls)
    for base in cls.__mro__:
        if id(base) in walk.namespaces:
            walk.namespaces[id(base)].wanted |= _CONSTRUCTORS


def type_of_instance(walk: Walk, cls: type) -> None:
    """The class of an object: what Python or a class of an installed package calls unasked, and what code names."""
    refuse_the_world(cls)
    walk.constant(cls)
    own = [base for base in cls.__mro__ if not is_installed_class(base)]
    others = [vars(base) for base in cls.__mro__ if base is not object and is_installed_class(base)]
    for base in own:
        if id(base) not in walk.namespaces:
            unasked = {name for name in vars(base) if _is_called_unasked(name, vars(base)[name], others)}
            walk.namespaces[id(base)] = Namespace(vars(base), unasked)


def _cells(function: FunctionType) -> dict[str, object]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _is_called_unasked(name: str, value: object, others: Sequence[Mapping[str, object]]) -> bool:
    """Operators and the like; and methods that a class of an installed package declares, and may call."""
    if name in _CONSTRUCTORS or name in _WITHOUT_NUMBERS:
        return False
    if name.startswith("__") and name.endswith("__"):
        return isinstance(value, (FunctionType, staticmethod, classmethod, property))
    return any(name in space for space in others)
