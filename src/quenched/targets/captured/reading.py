"""What code reads, and what is known never to change: modules, functions and classes of installed packages."""

import dis
import sys
import sysconfig
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

Answer = TypeVar("Answer")

_OWN = "quenched"
_BY_NAME = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_BY_CELL = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_PARTS_OF_PATHS = {"site-packages", "dist-packages"}
# What answers differently from one day to the next: files, the environment, the clock, random numbers.
_WORLD = (
    *("os", "posix", "nt", "io", "_io", "pathlib", "glob", "shutil", "tempfile", "socket", "subprocess", "urllib"),
    *("time", "datetime", "random", "secrets", "requests", "numpy.random", "scipy.io", "pandas.io"),
)
_READERS = {("numpy", name) for name in ("load", "loadtxt", "genfromtxt", "fromfile", "memmap")}
_HEAP_TYPE = 1 << 9  # the flag of classes that are made at run time
IMPURE_BUILTINS = frozenset({"open", "input", "eval", "exec", "globals", "__import__"})


class Reads(NamedTuple):
    """What a piece of code looks up, its nested functions, lambdas and comprehensions included."""

    names: tuple[str, ...]  # in its module, or else among the builtins
    imports: tuple[str, ...]
    attributes: frozenset[str]  # of whatever; strings count, which `getattr` may be given
    dotted: tuple[tuple[str, str], ...]  # name.attribute


@lru_cache(maxsize=1024)
def reads(code: CodeType) -> Reads:
    """What code looks up."""
    names, imports, dotted = set(), set(), set()
    attributes = {text for text in code.co_consts if isinstance(text, str) and text.isidentifier()} | set(code.co_names)
    before = None
    for step in dis.get_instructions(code):
        if step.opname in _BY_NAME:
            names.add(step.argval)
        elif step.opname == "IMPORT_NAME":
            imports.add(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and before is not None:
            dotted.add((before, step.argval))
        before = step.argval if step.opname in (*_BY_NAME, *_BY_CELL) else None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = reads(constant)
            names.update(inner.names)
            imports.update(inner.imports)
            dotted.update(inner.dotted)
            attributes |= inner.attributes
    return Reads(tuple(sorted(names)), tuple(sorted(imports)), frozenset(attributes), tuple(sorted(dotted)))


@lru_cache(maxsize=4096)
def is_installed(name: object) -> bool:
    """Whether a module of this name belongs to Python, to an installed package, or to this library."""
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None or name == "__main__":
        return False
    if name in sys.builtin_module_names or str(name).partition(".")[0] == _OWN:
        return True
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(_is_among_the_installed(place) for place in places if isinstance(place, str))


def _is_among_the_installed(place: str) -> bool:
    path = Path(place)
    return bool(_PARTS_OF_PATHS & set(path.parts)) or Path(sysconfig.get_path("stdlib")) in path.parents


def is_published(value: object) -> bool:
    """Whether an installed module holds this very object under its own name: then it was not made by a person."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", getattr(value, "__name__", None))
    if isinstance(value, FunctionType):
        module = value.__globals__.get("__name__")
    if not isinstance(name, str) or not is_installed(module):
        return False
    found: object = sys.modules[module]  # pyright: ignore
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def remembered(function: Callable[[type], Answer]) -> Callable[[type], Answer]:
    """Answers about classes, kept without keeping the classes."""
    answers: WeakKeyDictionary[type, Answer] = WeakKeyDictionary()

    def answer(cls: type) -> Answer:
        if cls not in answers:
            answers[cls] = function(cls)
        return answers[cls]

    return answer


@remembered
def is_installed_class(cls: type) -> bool:
    """Whether a class is part of Python or of an installed package."""
    return not cls.__flags__ & _HEAP_TYPE or is_published(cls)


def reads_the_world(value: object) -> bool:
    """Whether a module, function, class or object answers by what is outside the program."""
    if isinstance(value, ModuleType):
        return _is_of_the_world(value.__name__)
    module = value.__globals__.get("__name__") if isinstance(value, FunctionType) else None
    shown, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    return any(isinstance(place, str) and _is_of_the_world(place) for place in (module, shown)) or (
        isinstance(shown, str) and isinstance(name, str) and (shown, name) in _READERS
    )


@lru_cache(maxsize=4096)
def _is_of_the_world(module: str) -> bool:
    return any(module == name or module.startswith(name + ".") for name in _WORLD)
