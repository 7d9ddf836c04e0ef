"""A walk through all that can be reached from a function."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from types import CodeType, EllipsisType, NoneType, NotImplementedType
from typing import Any

PLAIN = frozenset({bool, int, float, complex, str, bytes, NoneType})
ATOMS = PLAIN | {EllipsisType, NotImplementedType, range, CodeType, Fraction, Decimal}
_READS_A_FILE = frozenset({"open", "read_text", "read_bytes", "stat", "exists", "iterdir"})
_MOST = 100_000  # objects; tracing again is no slower than following more


class UnknownError(Exception):
    """Something was met that may change without a trace."""


class Same:
    """Equal to itself alone, and alive as long as it is remembered: a bare `id` could be given out again."""

    def __init__(self, value: object):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value


class Namespace:
    """A person's own module or class: its attributes are followed once some code names them."""

    def __init__(self, space: Mapping[str, object], wanted: Iterable[str] = ()):
        self.space, self.wanted, self.done = space, set(wanted), set()

    def next(self, names: set[str]) -> str | None:
        """A name to be followed, and not followed yet."""
        found = [name for name in (names | self.wanted) - self.done if name in self.space]
        return min(found, default=None)


class Walk:
    """Visits all that can be reached from a function, each object once, and notes what it meets in order."""

    def __init__(self, follower: Callable[[type], Callable[["Walk", Any], None]]):
        self.follower = follower
        self.tokens: list[Hashable] = []
        self.pending: list[object] = []  # a stack of our own: what people nest may be deeper than Python's
        self.met: dict[int, tuple[int, object]] = {}  # with the object, so that no `id` is given out twice
        self.names: set[str] = set()
        self.namespaces: dict[int, Namespace] = {}
        self.paths = False

    def fingerprint(self, function: Callable) -> Hashable:
        """All that was noted on the way."""
        self.pending.append(function)
        while self.pending:
            self.visit(self.pending.pop())
            if not self.pending:
                self._look_up()
        if self.paths and self.names & _READS_A_FILE:
            raise UnknownError
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
        """Note one object, by the function that follows objects of its class."""
        kind = type(value)
        if kind in ATOMS:
            self.note(kind, repr(value) if kind in (float, complex) else value)  # NaN equals itself, 0.0 is not -0.0
            return
        if id(value) in self.met:
            self.note("again", self.met[id(value)][0])
            return
        if len(self.met) >= _MOST:
            raise UnknownError
        self.met[id(value)] = (len(self.met), value)
        self.follower(kind)(self, value)

    def constant(self, value: object) -> None:
        """Something that does not change, and is the same only as itself."""
        self.note(Same(value))
