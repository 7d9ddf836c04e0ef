"""Where a line about a running fit goes: to a terminal, to a cell of a notebook, or now and then to a log file.

A terminal has a spinner whose line is written over; a notebook one output that is updated and then taken away; anything else
(a file, a pipe, a scheduler's log) gets whole lines without control characters, the first after some seconds and the others
ever more rarely, so that a quick fit is silent and a long one can be followed.
"""

import sys
import time
from typing import Any, Protocol

_FIRST = 10.0  # seconds after which a log has its first line
_GROWTH = 1.5  # each next line after this many times the time so far
_REFRESH = 0.2  # seconds between updates of a notebook


class Display(Protocol):
    """Shows one line at a time."""

    def start(self) -> None:
        """Begin."""
        ...

    def update(self, text: str) -> None:
        """What is to be shown now."""
        ...

    def stop(self) -> None:
        """End, and leave nothing behind that is not worth keeping."""
        ...


class Silence:
    """Shows nothing."""

    def start(self) -> None: ...

    def update(self, text: str) -> None: ...

    def stop(self) -> None: ...


class Terminal:
    """A spinner whose line is written over."""

    def __init__(self, spinner: Any):
        self.spinner = spinner

    def start(self) -> None:
        self.spinner.start()

    def update(self, text: str) -> None:
        self.spinner.update(text)

    def stop(self) -> None:
        self.spinner.stop()


class Log:
    """Whole lines, ever more rarely."""

    def __init__(self):
        self.began, self.next = time.perf_counter(), _FIRST

    def start(self) -> None:
        self.began = time.perf_counter()

    def update(self, text: str) -> None:
        seconds = time.perf_counter() - self.began
        if seconds >= self.next:
            self.next = _GROWTH * seconds
            print(f"quenched: {text}, {seconds:.0f} s", file=sys.stderr, flush=True)

    def stop(self) -> None: ...


class Cell:
    """One output of a notebook, updated in place and emptied at the end."""

    def __init__(self, ipython_display: Any):
        self.display, self.handle, self.last = ipython_display, None, 0.0

    def start(self) -> None:
        self.handle = self.display.display(self._line("starting"), display_id=True)

    def update(self, text: str) -> None:
        if self.handle is not None and time.perf_counter() - self.last > _REFRESH:
            self.last = time.perf_counter()
            self.handle.update(self._line(text))

    def stop(self) -> None:
        if self.handle is not None:
            self.handle.update(self._line(""))
            self.handle = None

    def _line(self, text: str) -> Any:
        # Two forms, so that neither browser nor terminal shows the other's.
        return _Both(text)


class _Both:
    """A line as text and as HTML."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from html import escape

        return f'<small style="opacity:0.7">{escape(self.text)}</small>' if self.text else ""


def display_for(show: bool) -> Display:
    """What suits where the program runs."""
    if not show:
        return Silence()
    notebook = _notebook()
    if notebook is not None:
        return Cell(notebook)
    if not getattr(sys.stderr, "isatty", lambda: False)():
        return Log()
    from rich.console import Console
    from rich.status import Status

    console = Console(stderr=True)
    return Terminal(Status("starting", console=console)) if console.is_terminal else Log()


def _notebook() -> Any:
    """IPython's display module, if this is a kernel of Jupyter."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython import display  # pyright: ignore

    return display
