"""Ctrl-C, held back while JAX works and obeyed between two pieces of work.

A signal that is obeyed wherever Python happens to be, raises an exception inside JAX while it traces or compiles: what
was reached is lost, and the process often crashes when it ends. So in the scope of a fit the signal is only noted, and
whoever is about to begin a piece of work asks for it. A user's own function on the host may run for minutes and knows
nothing of compilers: while it runs, signals are obeyed at once. So is a second signal while one is waiting.
"""

import gc
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class _Waiting:
    """The signal of this process's main thread."""

    def __init__(self):
        self.depth = 0  # scopes that hold it back
        self.open = 0  # functions under way that it may interrupt
        self.keeping = 0  # scopes that nothing may interrupt
        self.noted = False
        self.obeyed = False  # since the outermost scope began
        self.before: Callable[[int, Any], Any] = signal.default_int_handler

    def note(self, number: int, frame: Any) -> None:
        at_once = self.noted or (self.open and not self.keeping)
        if at_once and not _collects_garbage(frame):
            self.deliver(frame)
        else:
            self.noted = True

    def deliver(self, frame: Any = None) -> None:
        self.noted = False
        try:
            self.before(signal.SIGINT, frame)
        except BaseException:  # a handler of somebody's own may stop nothing
            self.obeyed = True
            raise


def _collects_garbage(frame: FrameType | None) -> bool:
    """Whether Python is in a callback of its garbage collector, such as JAX's: what is raised there is shown, and lost."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None and frame.f_code not in callbacks:
        frame = frame.f_back
    return frame is not None


_waiting = _Waiting()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold back Ctrl-C in this scope; scopes may be nested, and only the main thread has signals.

    A signal that is still waiting when all work is done has nothing left to stop: raising it would lose the result. A
    handler other than Python's own is told of it then.
    """
    if not _install():
        yield
        return
    _waiting.depth += 1
    try:
        yield
    finally:
        _waiting.depth -= 1
        if not _waiting.depth:
            _restore()


def _install() -> bool:
    """Whether signals are held back from here on."""
    if not _in_main_thread():
        return False
    if not _waiting.depth:
        before = signal.getsignal(signal.SIGINT)
        if not callable(before):
            return False  # they are ignored, or end the process
        _waiting.before, _waiting.noted, _waiting.obeyed = before, False, False
        signal.signal(signal.SIGINT, _waiting.note)
    return True


def _restore() -> None:
    if signal.getsignal(signal.SIGINT) == _waiting.note:  # unless someone has put another in its place
        signal.signal(signal.SIGINT, _waiting.before)
    noted, _waiting.noted = _waiting.noted, False
    if noted and _waiting.before is not signal.default_int_handler:
        _waiting.before(signal.SIGINT, None)


@contextmanager
def interrupts_afterwards() -> Iterator[None]:
    """Hold back Ctrl-C in this scope, and obey it at the end: while modules are imported.

    Half a module cannot be imported again, and an exception that the garbage collector runs into, which imports keep busy,
    is shown and then lost. Inside a scope that holds signals already, that scope sees to them.
    """
    outermost = not _waiting.depth
    with interrupts_held():
        yield
        if outermost:
            obey_interrupts()


@contextmanager
def interrupts_at_once() -> Iterator[None]:
    """Let Ctrl-C through in this scope, where a user's function runs on the host."""
    if not _in_main_thread():
        yield
        return
    obey_interrupts()
    _waiting.open += 1
    try:
        yield
    finally:
        _waiting.open -= 1


@contextmanager
def interrupts_unobeyed() -> Iterator[None]:
    """Let no piece of work in this scope obey Ctrl-C, while what was reached is kept; only a second signal ends it."""
    _waiting.keeping += 1
    try:
        yield
    finally:
        _waiting.keeping -= 1


def obey_interrupts() -> None:
    """Raise KeyboardInterrupt if Ctrl-C has been held back: called before each piece of work."""
    if _waiting.noted and not _waiting.keeping and _in_main_thread():
        _waiting.deliver()


def interrupts_obeyed() -> bool:
    """Whether Ctrl-C has ended a piece of work in this scope: whoever kept what was reached then, is not to begin another."""
    return bool(_waiting.depth) and _waiting.obeyed and _in_main_thread()


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
