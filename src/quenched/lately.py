"""What was made lately, for whoever asks for the same again: up to so many bytes, and across threads."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")


class Lately(Generic[Made]):
    """Remembers what a function has made of its arguments; what was asked for longest ago goes first.

    What is made is shared, so it must be frozen, and depend on its arguments alone. What is larger than all that may be held is
    made anew every time.

    Parameters
    ----------
    make
        Of arguments that can be hashed.
    bytes_of
        What it has made takes.
    most
        Bytes that may be held.
    """

    def __init__(self, make: Callable[..., Made], bytes_of: Callable[[Made], int], most: int):
        self._make, self._bytes_of, self._most = make, bytes_of, most
        self._held: OrderedDict[Hashable, tuple[Made, int]] = OrderedDict()
        self._lock, self._bytes = Lock(), 0

    @property
    def bytes_held(self) -> int:
        return self._bytes

    def __call__(self, *key: Any) -> Made:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key][0]
        made = self._make(*key)  # others need not wait for it
        size = self._bytes_of(made)
        with self._lock:
            if key in self._held:  # another thread was quicker
                return self._held[key][0]
            if size <= self._most:
                self._held[key] = (made, size)
                self._bytes += size
            while self._bytes > self._most:
                self._bytes -= self._held.popitem(last=False)[1][1]
        return made
