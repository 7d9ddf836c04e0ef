"""Which compiled programs stay in memory: those of functions that come back, and of the last few that may.

A process that fits thousands of closures must not hold thousands of programs: each takes megabytes, and pieces of address
space; XLA ends it with a signal when there are no more. So programs of functions that were seen once are let go after a few
others, and kept from the second time on; of those let go only a number is remembered, by which they are known if they come
back. Those that come back are kept up to so many bytes, too: what came back longest ago goes first. Where functions that return,
ever new shapes, or algebra of our own have come to too many programs all the same, or the process has grown by too much since
they were last let go, all are: what is still needed is compiled again, in less time than it took to come to so many.
"""

import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import RLock
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import ref

from quenched.compiling import let_go_of_programs
from quenched.execute.footprint import count_maps, count_programs, resident
from quenched.execute.memory import give_back_freed

_NEW = 6  # functions that were seen once
_BYTES_OF_NEW = 8e6  # that these hold; programs hold them several times
_RETURNING = 64
_COPIES = 20  # of what a function holds, in its programs and what they were made from: 400 MB of 20, measured
_MOST_BYTES = 512e6  # in programs of functions that return; and that a process may grow by until all are let go
_MOST_PROGRAMS = 400  # besides those that others have compiled
_REMEMBERED = 4096
_MOST_MAPS = 30_000  # pieces of address space
_LOOKED_AT = 16  # calls between two looks at programs and pieces

Made = TypeVar("Made")


class Weakly:
    """A function that larger programs are told of without holding it: JAX remembers their arguments for long.

    Whoever traces such a program holds the function itself.
    """

    def __init__(self, function: Callable[..., Any]):
        self._function, self._hash = ref(function), hash(function)

    def __call__(self, *inputs: Any) -> Any:
        function = self._function()
        assert function is not None  # held by the programs that were made of it
        return function(*inputs)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weakly) and self._function == other._function


class CacheInfo(NamedTuple):
    """How much is held."""

    currsize: int


@dataclass(frozen=True, eq=False)
class Identified:
    """Something by which others are made, as a key: equal to any other of the same identity, whatever stands for it."""

    identity: Hashable
    thing: Any

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identified) and self.identity == other.identity


class Living(Generic[Made]):
    """What was made of functions, by key."""

    def __init__(self, make: Callable[[Any], Made], bytes_of: Callable[[Any], int]):
        self._make, self._bytes_of = make, bytes_of
        self._new: OrderedDict[Hashable, tuple[Made, int]] = OrderedDict()
        self._returning: OrderedDict[Hashable, tuple[Made, int]] = OrderedDict()
        self._gone: OrderedDict[int, None] = OrderedDict()
        self._unkept, self._bytes_unkept = 0, 0
        self._lock, self._calls = RLock(), 0
        self._others = 0  # programs that were left when all of ours had been let go
        self._grown_from: int | None = None  # bytes that the process held then, or when it first asked

    def __call__(self, key: Hashable) -> Made:
        """What is made of it, or was."""
        with self._lock:
            return self._found(key)

    def _found(self, key: Hashable) -> Made:
        self._calls += 1
        if not self._calls % _LOOKED_AT and self._too_many():
            self.cache_clear()
        if key in self._returning:
            self._returning.move_to_end(key)
            return self._returning[key][0]
        if key in self._new:
            return self._keep(key, *self._new.pop(key))
        size = self._bytes_of(key)
        self._make_room(size)
        made = self._make(key)
        if hash(key) in self._gone:
            return self._keep(key, made, size)
        self._new[key] = (made, size)
        return made

    def _keep(self, key: Hashable, made: Made, size: int) -> Made:
        """What came back; of all others that did, as many as there is room for."""
        self._returning[key] = (made, size)
        held = sum(each for _, each in self._returning.values())
        full = False
        while len(self._returning) > 1 and (len(self._returning) > _RETURNING or held * _COPIES > _MOST_BYTES):
            held -= self._returning.popitem(last=False)[1][1]
            full = True
        if full:
            self._sweep()
        return made

    def passing(self, key: Any) -> Made:
        """What is made of a function that is not kept: the programs that it shares with others hold it for a while."""
        with self._lock:
            size = self._bytes_of(key)
            if self._unkept >= _NEW or (self._unkept and self._bytes_unkept + size > _BYTES_OF_NEW):
                self._release()
            self._unkept, self._bytes_unkept = self._unkept + 1, self._bytes_unkept + size
        return self._make(key)

    def cache_info(self) -> CacheInfo:
        """As a cache of `functools` has it."""
        return CacheInfo(len(self._new) + len(self._returning))

    def cache_clear(self) -> None:
        """Let go of everything."""
        self._returning.clear()
        self._sweep(everything=True)
        self._others, self._grown_from = count_programs(), resident()

    def _too_many(self) -> bool:
        now = resident()
        self._grown_from = now if self._grown_from is None else self._grown_from
        grown = now > self._grown_from + _MOST_BYTES
        return grown or count_programs() > self._others + _MOST_PROGRAMS or count_maps() > _MOST_MAPS

    def _make_room(self, coming: int) -> None:
        held = sum(size for _, size in self._new.values())
        if self._too_many():
            self.cache_clear()
        elif len(self._new) >= _NEW or (self._new and held + coming > _BYTES_OF_NEW):
            self._sweep()

    def _sweep(self, everything: bool = False) -> None:
        """Let go of all that were seen once, and of the programs that hold them."""
        for key in self._new:
            self._gone[hash(key)] = None
        while len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)
        self._new.clear()
        self._release(everything)

    def _release(self, everything: bool = False) -> None:
        """Empty the programs that functions share; or all."""
        self._unkept, self._bytes_unkept = 0, 0
        let_go_of_programs(everything)
        gc.collect()  # programs and the functions inside them refer to each other
        give_back_freed()
