"""Ctrl-C, what is printed, and how the process ends, as the command has them.

Python raises KeyboardInterrupt wherever it happens to be. In the middle of an import that is somebody's traceback; and a
process that takes its threads down while a compiler still uses them may crash. So while there is nothing to lose, the
first signal ends the process on the spot; from `begun` on it is the exception that fits catch to keep what they have
reached; and an interrupted process ends without taking down anything.
"""

import io
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn, TextIO

from quenched.text import harmless_lines

INTERRUPTED = 130
NOTHING_REACHED = "\nquenched: interrupted before anything was reached"


def leave(*pressed: object) -> NoReturn:
    """End now, with nothing reached."""
    os.write(2, f"{NOTHING_REACHED}\n".encode())
    os._exit(INTERRUPTED)


def begun() -> None:
    """From here on there is something to lose."""
    if signal.getsignal(signal.SIGINT) is leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def as_process(run: Callable[[], int]) -> int:
    """The exit code of a command that has the process to itself."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # unless someone has it ignored
        signal.signal(signal.SIGINT, leave)
    sys.stdout, sys.stderr = _forgiving(sys.stdout), _forgiving(sys.stderr)
    try:
        code = run()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is Python's own end
    except KeyboardInterrupt:  # another one, while the first was obeyed
        code = INTERRUPTED
    if code == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def say(text: object, *, complaint: bool = False) -> None:
    """Print a text that may hold names, paths and messages of anybody's."""
    print(harmless_lines(str(text)), file=sys.stderr if complaint else sys.stdout, flush=True)


class _Unheard(io.FileIO):
    """What cannot be printed is lost, and nothing else: nobody reads a pipe any more, or a disk is full."""

    def write(self, content, /):
        try:
            return super().write(content)
        except OSError:
            return len(content)


def _forgiving(stream: TextIO) -> TextIO:
    """The same stream, which takes every letter, whether it can be shown there or not."""
    if stream is None:  # closed from the start
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(_Unheard(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=bool(stream.line_buffering),  # pyright: ignore[reportAttributeAccessIssue]
    )
