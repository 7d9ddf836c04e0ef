"""Data and objects: by content where it can be seen, as constants where they cannot change."""

import hashlib
from array import array
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import cached_property
from pathlib import PurePath
from struct import calcsize
from types import MappingProxyType, MemberDescriptorType

import numpy as np

from quenched.precision import in_double
from quenched.targets.captured.code import refuse_the_world, type_of_instance
from quenched.targets.captured.reading import is_installed_class, is_published, remembered
from quenched.targets.captured.walk import PLAIN, Same, UnknownError, Walk

SEQUENCES = (list, tuple, set, frozenset, deque)
NUMBERS_AND_TEXTS = (int, float, complex, str, bytes)
_POINTER = calcsize("P")


def follow_value(walk: Walk, value: Hashable) -> None:
    """Equal means the same, whatever the subclass."""
    walk.note(type(value), value)


def follow_path(walk: Walk, value: PurePath) -> None:
    """Only a name, unless something is read from it."""
    walk.paths = True
    walk.note(type(value), str(value))


def follow_array(walk: Walk, value: np.ndarray) -> None:
    plain, extras = np.ascontiguousarray(value), _extras(walk, value, np.ndarray)
    if plain.dtype.hasobject:
        content, elements = None, plain.ravel().tolist()
    else:
        content, elements = _digest(plain.reshape(-1).view(np.uint8).data if plain.nbytes else b""), []
    walk.note(type(value), value.shape, value.dtype.str, content, follow=[elements, *extras])


def follow_scalar(walk: Walk, value: np.generic) -> None:
    walk.note(type(value), value.dtype.str, value.tobytes(), follow=value.item() if value.dtype.hasobject else ())


def follow_buffer(walk: Walk, value: bytearray | memoryview | array) -> None:
    walk.note(type(value), bytes(value))


def follow_mapping(walk: Walk, value: Mapping) -> None:
    items = dict.items(value) if isinstance(value, dict) else value.items()  # not by a method of a person's own
    pairs = [part for pair in items for part in pair]
    walk.note(type(value), follow=[*pairs, *_extras(walk, value, dict)])


def follow_sequence(walk: Walk, value: list | tuple | set | frozenset | deque) -> None:
    base = next(kind for kind in SEQUENCES if isinstance(value, kind))
    items: list[object] = list(base.__iter__(value))  # pyright: ignore
    if set(map(type, items)) <= PLAIN:  # all at once; their text tells 1 from 1.0 and -0.0 from 0.0
        items = [_digest(repr(items).encode("utf-8", "surrogatepass"))]
    walk.note(type(value), follow=[*items, *_extras(walk, value, base)])


def follow_number_or_text(walk: Walk, value: int | float | complex | str | bytes) -> None:
    """Of a class of its own, which may have attributes."""
    base = next(kind for kind in NUMBERS_AND_TEXTS if isinstance(value, kind))
    walk.note(type(value), repr(base.__repr__(value)), follow=_extras(walk, value, base))  # pyright: ignore


def follow_member(walk: Walk, value: Enum) -> None:
    type_of_instance(walk, type(value))
    walk.note(value.name)


def follow_table(walk: Walk, value) -> None:
    """A DataFrame: its columns one by one."""
    columns = [value.iloc[:, index].to_numpy() for index in range(value.shape[1])]
    kinds = [str(kind) for kind in value.dtypes]
    walk.note(type(value), follow=[value.columns, value.index, kinds, *columns])


def follow_column(walk: Walk, value) -> None:
    """A Series."""
    walk.note(type(value), str(value.dtype), follow=[value.index, value.name, value.to_numpy()])


def follow_index(walk: Walk, value) -> None:
    walk.note(type(value), str(value.dtype), follow=[list(value.names), value.to_numpy()])


# Objects.


def _extras(walk: Walk, value: object, plain: type) -> list[object]:
    """Attributes of an object whose class was derived from a plain one."""
    if type(value) in (plain, MappingProxyType):
        return []
    type_of_instance(walk, type(value))
    return [_attributes(value)]


def follow_object(walk: Walk, value: object) -> None:
    kind = type(value)
    refuse_the_world(kind)
    if is_installed_class(kind) and is_published(value):
        walk.constant(value)
    elif _has_hidden_state(kind):
        _hidden(walk, value)
    else:
        type_of_instance(walk, kind)
        walk.note("object", follow=[_attributes(value)])


def _hidden(walk: Walk, value: object) -> None:
    """State that Python cannot see: known only for wrapped functions, such as `jax.jit` makes, and for JAX's own."""
    wrapped = getattr(value, "__wrapped__", None)
    if wrapped is None and type(value).__module__.partition(".")[0] not in ("jax", "jaxlib"):
        raise UnknownError
    walk.note(Same(value), follow=[wrapped])


def fill(walk: Walk) -> bool:
    """Compute the cached properties that the code names and nobody has asked for yet; whether there were any."""
    filled = False
    for _, value in tuple(walk.met.values()):
        for name in _cached_properties(type(value)) & walk.names - _attributes(value).keys():
            with suppress(Exception), in_double():  # the function itself will say so, if it ever comes there
                getattr(value, name)
                filled = True
    return filled


@remembered
def _cached_properties(kind: type) -> frozenset[str]:
    """Of a person's own classes."""
    own = [vars(base).items() for base in kind.__mro__ if not is_installed_class(base)]
    return frozenset(name for items in own for name, value in items if isinstance(value, cached_property))


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


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
    return list(_slots_among_attributes(kind)) if _has_slots(kind) else []


@remembered
def _has_slots(kind: type) -> bool:
    """Most classes have none among many attributes. Slots themselves are not kept: they would keep their class."""
    return any(True for _ in _slots_among_attributes(kind))


def _slots_among_attributes(kind: type) -> Iterator[MemberDescriptorType]:
    everything = (value for base in kind.__mro__ for value in vars(base).values())
    return (value for value in everything if isinstance(value, MemberDescriptorType))


def _has_hidden_state(kind: type) -> bool:
    """Whether objects of this class are larger than what Python can see of them: the test that `pickle` makes, too."""
    visible = object.__basicsize__ + _POINTER * len(_slots(kind))
    visible += _POINTER * (kind.__dictoffset__ > 0) + _POINTER * (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ > 0 or kind.__basicsize__ > visible
