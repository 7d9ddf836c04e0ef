"""Wait for a compiled program, so that one which never returns is noticed and Ctrl-C still answers.

Python hears nothing while it is inside JAX, and a program that waits for itself there waits for ever. So another thread
waits, and this one asks it from time to time. That costs about ten microseconds, and nothing when the result is there.
"""

import atexit
import os
import queue
import sys
import threading
import time
import warnings
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import jax

PATIENCE = 60.0  # seconds before a program can be called stuck ...
FIRST_PATIENCE = 600.0  # ... when it has never returned before
TIMES_LONGER = 100.0  # than it took before
_ON_ONE_CORE = hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) == 1
_AT_ONCE = 3e-4  # seconds, in which small programs return: to have another thread wait takes a part of that


class StuckProgram(KeyboardInterrupt):
    """An interrupt during a program that seems stuck: what needs its threads would not return either."""


class Wait:
    """Waits for one kind of program and remembers how long it takes.

    Parameters
    ----------
    program
        What it computes, in the words of a message.
    """

    def __init__(self, program: str):
        self.program = program
        self.longest: float | None = None
        self.quick = True  # it returned almost at once when it was last called, or never was

    def __call__(self, result: Any) -> Any:
        """The result, once it is there.

        Raises
        ------
        StuckProgram
            When interrupted after the program was called stuck; KeyboardInterrupt before.
        """
        last: Any = next((leaf for leaf in jax.tree.leaves(result) if isinstance(leaf, jax.Array)), None)
        # To look whether a long program has returned would take a core from it.
        if last is None or (self.quick and _returns_at_once(last)):
            return result
        began = time.perf_counter()
        self._until(_in_background(last), began)
        took = time.perf_counter() - began
        self.longest, self.quick = max(self.longest or 0.0, took), took < _AT_ONCE
        return result

    @property
    def patience(self) -> float:
        return FIRST_PATIENCE if self.longest is None else max(PATIENCE, TIMES_LONGER * self.longest)

    def _until(self, returned: threading.Lock, began: float) -> None:
        told = False
        try:
            if not returned.acquire(timeout=self.patience):
                told = True
                warnings.warn(self._message(time.perf_counter() - began), RuntimeWarning, stacklevel=4)
                returned.acquire()
        except BaseException as stop:
            _leave_behind(returned, told)
            if told and isinstance(stop, KeyboardInterrupt):
                raise StuckProgram from stop
            raise
        returned.release()

    def _message(self, seconds: float) -> str:
        before = (
            "It has not returned before" if self.longest is None else f"It never took longer than {self.longest:.3g} s"
        )
        return (
            f"JAX has been computing {self.program} for {seconds:.0f} s. {before}, so it is probably stuck: a program "
            f"that waits for the threads it runs on never returns (jaxlib {version('jaxlib')}, {os.cpu_count()} cores; "
            "callbacks, Fourier transforms and foreign functions can do that). Ctrl-C ends the fit with what it has "
            "reached. If it happens again, start Python on one core (`taskset -c 0 python ...`) or with another jaxlib."
        )


def _returns_at_once(result: Any) -> bool:
    """Whether it is there, or almost."""
    ends = time.perf_counter() + _AT_ONCE
    while not result.is_ready():
        if time.perf_counter() > ends:
            return False
        if _ON_ONE_CORE:
            os.sched_yield()  # or the program would wait for us
    return True


class _Helper:
    """A thread that waits on behalf of another."""

    def __init__(self):
        self.tasks: queue.SimpleQueue = queue.SimpleQueue()
        self.returned = threading.Lock()
        # A daemon: Python must be able to end although a program never returns.
        threading.Thread(target=_serve, args=(self.tasks, self.returned), daemon=True).start()
        self.process = os.getpid()

    def wait_for(self, result: jax.Array) -> threading.Lock:
        """A lock that can be taken when the result is there."""
        self.returned.acquire()
        self.tasks.put(result)
        return self.returned

    def __del__(self):
        self.tasks.put(None)  # the thread that it helped has ended


def _serve(tasks: queue.SimpleQueue, returned: threading.Lock) -> None:
    while (result := tasks.get()) is not None:
        with suppress(Exception):  # raised again where the result is used
            result.block_until_ready()
        returned.release()
        del result  # or its memory would be held until the next


_own = threading.local()


def _in_background(result: jax.Array) -> threading.Lock:
    """Let the helper of this thread wait; a new one after a fork, or while the last waits for what was interrupted."""
    helper = getattr(_own, "helper", None)
    if helper is None or helper.process != os.getpid() or helper.returned.locked():
        helper = _own.helper = _Helper()
    return helper.wait_for(result)


_left: list[tuple[threading.Lock, bool]] = []  # programs that nobody waits for any more, and whether they seemed stuck


def _leave_behind(returned: threading.Lock, stuck: bool) -> None:
    if not _left:
        # Only now, so that it comes before whatever other libraries wait for when Python ends.
        atexit.register(_leave)
    _left.append((returned, stuck))


def _leave() -> None:
    """Let interrupted programs return before JAX takes its threads down; end at once where one never will."""
    try:
        if not any(stuck for _, stuck in _left):
            for returned, _ in _left:
                returned.acquire()
                time.sleep(0.2)  # the thread of a callback has still to let go of Python
            return
    except KeyboardInterrupt:
        pass
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)  # JAX would wait for it, and so for ever
