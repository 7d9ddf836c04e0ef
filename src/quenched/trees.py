"""A pytree as JSON, and back: containers come back as they were, or are refused before anything is written.

Named tuples and dataclasses come back as their own class where the program has imported it, and it still has the same
fields; no code is loaded for that. Elsewhere a named tuple with the same fields stands for them, from which a log density reads
the same attributes.
"""

import dataclasses
import sys
from collections import OrderedDict, namedtuple
from functools import lru_cache
from keyword import iskeyword
from typing import Any

import jax
import numpy as np

from quenched.text import shown

_TOO_DEEP = 200


def with_plain_keys(tree: Any) -> Any:
    """The same, with Python's own numbers for NumPy's among the keys of dicts.

    They are found by either, but JAX compares trees that it has seen, and a number of NumPy's and a tuple are equal nowhere, or
    in two places of an array.
    """
    if type(tree) in (dict, OrderedDict):
        plain = lambda key: key.item() if isinstance(key, np.generic) else key
        return type(tree)((plain(key), with_plain_keys(value)) for key, value in tree.items())
    return type(tree)(map(with_plain_keys, tree)) if type(tree) in (list, tuple) else tree


def write_tree(tree: Any, depth: int = 0) -> Any:
    """What `read_tree` reads; leaves are whole numbers or texts.

    Raises
    ------
    ValueError
        For containers and keys that could not be read again.
    """
    inside = lambda value: write_tree(value, depth + 1)
    if depth > _TOO_DEEP:
        raise ValueError(f"parameters: nested more than {_TOO_DEEP} deep cannot be saved.")
    if tree is None or isinstance(tree, (int, str)):
        return {"leaf": tree}
    if type(tree) in (dict, OrderedDict):
        kind = "dict" if type(tree) is dict else "ordered"
        return {kind: [[_write_key(key), inside(value)] for key, value in tree.items()]}
    if type(tree) in (list, tuple):
        return {type(tree).__name__: list(map(inside, tree))}
    names = _fields_of(type(tree))
    if names is None:
        raise ValueError(
            f"parameters: {type(tree).__name__} is a container that cannot be read again from a file; put them into a dict, "
            "a tuple, a named tuple or a dataclass of arrays."
        )
    kind = f"{type(tree).__module__}:{type(tree).__qualname__}"
    return {"named": kind, "fields": [[name, inside(getattr(tree, name))] for name in names]}


def read_tree(text: Any, depth: int = 0) -> Any:
    """The tree that was written."""
    if not isinstance(text, dict) or depth > _TOO_DEEP:
        raise ValueError("a tree of parameters cannot be read")
    if "named" in text:
        names, values = (
            [name for name, _ in text["fields"]],
            [read_tree(value, depth + 1) for _, value in text["fields"]],
        )
        return _made(_class_of(text["named"], tuple(names)), names, values)
    ((kind, content),) = text.items()
    if kind in ("dict", "ordered"):
        pairs = [(_read_key(key), read_tree(value, depth + 1)) for key, value in content]
        return dict(pairs) if kind == "dict" else OrderedDict(pairs)
    if kind in ("list", "tuple"):
        return {"list": list, "tuple": tuple}[kind](read_tree(value, depth + 1) for value in content)
    if kind != "leaf" or not (content is None or isinstance(content, (int, str))):
        raise ValueError(f"{shown(kind)} is no part of a tree of parameters")
    return content


def _write_key(key: Any) -> Any:
    if isinstance(key, np.integer):
        key = int(key)  # equal to it, and found by it
    if key is None or isinstance(key, (str, int, float)):
        return key
    if isinstance(key, bytes):
        return {"bytes": key.hex()}
    if type(key) is tuple:
        return {"tuple": list(map(_write_key, key))}
    raise ValueError(
        f"parameters: the key {shown(key)} cannot be saved; let keys be texts, whole numbers or tuples of them."
    )


def _read_key(key: Any) -> Any:
    if isinstance(key, dict):
        ((kind, content),) = key.items()
        return bytes.fromhex(content) if kind == "bytes" else tuple(map(_read_key, content))
    return key


def _fields_of(cls: type) -> tuple[str, ...] | None:
    """The names of what a named tuple or a dataclass holds; None for other containers, and where a field is no child."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return tuple(cls._fields)  # pyright: ignore
    if not dataclasses.is_dataclass(cls):
        return None
    names = tuple(field.name for field in dataclasses.fields(cls))
    try:
        found = jax.tree_util.tree_flatten_with_path(_made(cls, names, list(range(len(names)))))[0]
    except Exception:  # a class of the user's own, with ways of its own
        return None
    keys = sorted(str(getattr(path[0], "name", None)) for path, _ in found if len(path) == 1)
    return names if keys == sorted(names) else None


def _made(cls: type, names: Any, values: list[Any]) -> Any:
    if issubclass(cls, tuple):
        return tuple.__new__(cls, values)
    made = object.__new__(cls)  # as JAX does: what `__init__` does with numbers, it may not do with names
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


def _class_of(kind: Any, names: tuple[str, ...]) -> type:
    """The class of this name, if the program has it and it holds the same; else a named tuple."""
    module, _, name = str(kind).partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None) if isinstance(found, type) or found is sys.modules.get(module) else None
    if isinstance(found, type) and _fields_of(found) == names:
        return found
    right = all(isinstance(one, str) and one.isidentifier() and not iskeyword(one) and one[0] != "_" for one in names)
    if not right or len(set(names)) < len(names):
        raise ValueError(f"{shown(names)} are no names of fields")
    return _namedtuple(name.rpartition(".")[2], names)


@lru_cache(maxsize=64)
def _namedtuple(name: str, names: tuple[str, ...]) -> type:
    return namedtuple(name if name.isidentifier() and not iskeyword(name) and name[0] != "_" else "Parameters", names)
