"""A member as JSON and a list of arrays, and back, whatever its kind.

The text names the kind and, for every field, what is there: the shape of an array, another member, several of them, or
the value itself where the field is static. The arrays follow in the order of the text.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from quenched.families.elimination_order import make_pattern
from quenched.families.member import Member
from quenched.families.registry import member_kinds
from quenched.families.sparsity import Pattern
from quenched.text import shown


def write_member(member: Member) -> tuple[dict[str, Any], list[np.ndarray]]:
    """What `read_member` reads: JSON, and the arrays in double precision."""
    arrays: list[np.ndarray] = []
    return _write(member, arrays), arrays


def read_member(text: dict[str, Any], arrays: list[np.ndarray]) -> Member:
    """The member that was written, in NumPy.

    Raises
    ------
    ValueError
        When its kind is not known, or the arrays are not those that the text speaks of.
    """
    _insist_dimensions(text, sum(array.size for array in arrays))
    left = iter(arrays)
    member = _read(text, left, "member")
    spare = len(list(left))
    if spare:
        raise ValueError(f"{text['kind']}: {len(arrays)} arrays were given; it has {len(arrays) - spare}.")
    _insist_like_its_family(member)
    return member


def _insist_dimensions(text: Any, most: int) -> None:
    """Before anything is allocated: static fields count what there are arrays of."""
    for part in text.values() if isinstance(text, dict) else text if isinstance(text, list) else ():
        if isinstance(part, int) and not 0 <= part <= most:
            raise ValueError(f"{part} is more than its arrays have entries.")
        _insist_dimensions(part, most)


def _insist_like_its_family(member: Member) -> None:
    """Arrays and static fields go together as in a member that the family makes itself."""
    mean = np.asarray(member.mean)
    made = member.family.isotropic(np.zeros(mean.shape), np.ones(mean.shape), mean.shape[-1:])
    describe = lambda one: (jax.tree.structure(one), [np.shape(leaf) for leaf in jax.tree.leaves(one)])
    if describe(made) != describe(member):
        raise ValueError(f"{type(member).__name__}: its arrays do not go together.")


def _write(value: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(value, tuple):
        return [_write(part, arrays) for part in value]
    if isinstance(value, Pattern):
        pairs = [np.asarray(part, np.float64) for part in (value.rows, value.columns, value.dense)]
        arrays += pairs
        return {"pattern": value.dim, "lengths": [len(part) for part in pairs]}
    if not isinstance(value, Member):
        arrays.append(np.asarray(value, np.float64))
        return {"shape": list(arrays[-1].shape)}
    kind = type(value).__name__
    if member_kinds.get(kind) is not type(value):
        raise ValueError(f"{kind} is not a registered kind of member; known are {', '.join(member_kinds)}.")
    fields = {}
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        fields[field.name] = content if _is_plain(field, content) else _write(content, arrays)
    return {"kind": kind, "fields": fields}


def _read(text: Any, arrays: Iterator[np.ndarray], name: str) -> Any:
    if isinstance(text, list):
        return tuple(_read(part, arrays, f"{name}[{index}]") for index, part in enumerate(text))
    if "pattern" in text:
        pairs = [_next_array(arrays, (length,), f"{name}: pairs").astype(int) for length in text["lengths"]]
        return make_pattern(text["pattern"], *pairs)
    if "shape" in text:
        return _next_array(arrays, tuple(text["shape"]), name)
    kind, fields = text["kind"], text["fields"]
    if kind not in member_kinds:
        raise ValueError(f"{kind!r} is not a known kind of member; known are {', '.join(member_kinds)}.")
    known = dataclasses.fields(member_kinds[kind])
    if sorted(fields) != sorted(field.name for field in known):
        raise ValueError(f"{kind} has the fields {', '.join(field.name for field in known)}, not {', '.join(fields)}.")
    found = {}
    for field in known:
        content = fields[field.name]
        plain = _is_plain(field, content)
        found[field.name] = _frozen(content) if plain else _read(content, arrays, f"{kind}.{field.name}")
    return member_kinds[kind](**found)


def _is_plain(field: dataclasses.Field, content: Any) -> bool:
    """A static field that JSON can hold as it is; a pattern is written as arrays."""
    is_pattern = isinstance(content, Pattern) or (isinstance(content, dict) and "pattern" in content)
    return bool(field.metadata.get("static")) and not is_pattern


def _next_array(arrays: Iterator[np.ndarray], shape: tuple[int, ...], name: str) -> np.ndarray:
    array = next(arrays, None)
    if array is None:
        raise ValueError(f"{name}: its array is missing.")
    if np.shape(array) != shape:
        raise ValueError(f"{name}: its array has shape {np.shape(array)}; it should have {shape}.")
    return np.asarray(array, np.float64)


def _frozen(content: Any) -> Any:
    """JSON has no tuples; static fields have nothing else, of whole numbers, as they must have a hash."""
    if isinstance(content, (list, tuple)):
        return tuple(_frozen(part) for part in content)
    if not isinstance(content, int) or isinstance(content, bool):
        raise ValueError(f"{shown(content)} is not a whole number.")
    return content
