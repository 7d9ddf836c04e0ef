"""Processes that are lost: what the others do when one was killed, has stopped, or lags far behind.

A collective waits for all, and a process that never comes makes all others wait for ever. On the processor gloo gives up after
half a minute, and at once when a connection breaks; elsewhere nobody does. So whoever waits for other processes does it here:
what a broken collective raises becomes `LostProcess`, and so does a silence of `LOST_AFTER` seconds. When Python
is inside a program that does not return, nothing can be raised there: a watchdog then says the same and ends the process.
"""

import atexit
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

LOST_AFTER = 30.0  # seconds without an answer of the others ...
TIMES_LONGER = 10.0  # ... or so many times longer than a program has ever taken
FIRST_LOST_AFTER = 900.0  # for the first answer of a program, which the others may still compile
EXIT_CODE = 75  # "try again later": what a launcher may take for a reason to start all processes again


class LostProcess(RuntimeError):
    """Another process of a distributed fit was killed, has stopped, or lags behind."""


class Watchdog:
    """Ends the process when a deadline has passed: for programs that do not return."""

    def __init__(self):
        self.deadline: float | None = None
        self.seconds = 0.0
        self.lock = threading.Condition()
        self.thread: threading.Thread | None = None

    def set(self, seconds: float | None) -> None:
        """Bark after so many seconds; None lets it sleep."""
        with self.lock:
            self.seconds = seconds or 0.0
            self.deadline = None if seconds is None else time.monotonic() + seconds
            if self.thread is None:
                self.thread = threading.Thread(target=self._watch, daemon=True)
                self.thread.start()
            self.lock.notify()

    def _watch(self) -> None:
        while True:
            with self.lock:
                left = None if self.deadline is None else self.deadline - time.monotonic()
                if left is not None and left <= 0:
                    break
                self.lock.wait(left)
        print(f"quenched.LostProcess: {_words(self.seconds)}", file=sys.stderr, flush=True)
        os._exit(EXIT_CODE)


_watchdog = Watchdog()
_ending = False


@contextmanager
def with_others(longest: dict[Any, float], kind: Any) -> Iterator[None]:
    """The scope of a program of some kind that waits for other processes; nothing is done where there are none.

    `longest` remembers how long each kind has taken.

    Raises
    ------
    LostProcess
        When a collective broke.
    """
    if jax.process_count() == 1:
        yield
        return
    began = time.monotonic()
    _watchdog.set(max(LOST_AFTER, TIMES_LONGER * longest[kind]) if kind in longest else FIRST_LOST_AFTER)
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        _end_at_once()
        raise LostProcess(_words(time.monotonic() - began)) from error
    finally:
        _watchdog.set(None)
    # The first time has compiled it too, which the second does not.
    longest[kind] = max(longest[kind], time.monotonic() - began) if kind in longest else 0.0


def _words(seconds: float) -> str:
    return (
        f"process {jax.process_index()} of {jax.process_count()} has waited {seconds:.0f} s for the others, of which one was "
        "killed, has stopped or lags behind. Start all of them again, as many as there are now: with the same checkpoint "
        "the fit goes on after its last round."
    )


def _end_at_once() -> None:
    """When Python ends, do not wait for processes that will not come: JAX would, for minutes."""
    global _ending
    if not _ending:
        _ending = True
        atexit.register(_exit)


def _exit() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(EXIT_CODE)
