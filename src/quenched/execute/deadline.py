"""The time that a fit may take, where a person's own function runs on the host: the one kind of work that we can stop at every call.

What JAX computes is asked about between two programs, by whoever starts them.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

GRACE = 0.8  # seconds after the limit in which a bound may still be checked


class Expired(KeyboardInterrupt):
    """Time is up: as an interrupt, it keeps what was reached."""


class _Limit:
    def __init__(self, ends: float):
        self.ends, self.spent = ends, 0.0  # by the clock; and seconds in calls of the function


_limit: ContextVar[_Limit | None] = ContextVar("quenched_limit", default=None)


@contextmanager
def until(ends: float | None) -> Iterator[None]:
    """Calls in this scope end at this time of `time.perf_counter`, or a little later; None for no limit."""
    token = _limit.set(None if ends is None else _Limit(ends))
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def timed_call() -> Iterator[None]:
    """The scope of one call of a function on the host.

    Raises
    ------
    Expired
        When its time was up before. What we do besides must not cost a result: the calls have `GRACE` seconds in any case.
    """
    limit = _limit.get()
    if limit is None:
        yield
        return
    began = time.perf_counter()
    if began > limit.ends + GRACE and limit.spent > GRACE:
        raise Expired
    try:
        yield
    finally:
        limit.spent += time.perf_counter() - began
