"""One progress bar for the download of many files, drawn by rich in the form that pooch can drive."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from quenched.datasets.registry import RemoteFile


class Bar(Protocol):
    """What pooch asks of a progress bar."""

    total: int

    def update(self, amount: int) -> None: ...
    def reset(self) -> None: ...
    def close(self) -> None: ...


class FileBar:
    """One file's share of a bar over all bytes that are to be downloaded."""

    def __init__(self, total: int, show: Callable[[int], None]) -> None:
        self.total = total
        self._show = show
        self._done = 0

    def update(self, amount: int) -> None:
        # pooch reports whole chunks, which overshoot at the end of a file.
        self._done = min(self._done + amount, self.total)
        self._show(self._done)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass


@contextlib.contextmanager
def bars(missing: Sequence[RemoteFile], show: bool) -> Iterator[Callable[[RemoteFile], Bar | None]]:
    """A bar over the bytes of all `missing` files: yields a function from a file to its share of it.

    The function returns `None` if there is nothing to show.
    """
    if not (missing and show):
        yield lambda file: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    starts, total = {}, 0
    for file in missing:
        starts[file] = total
        total += file.size or 0
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    console = Console(stderr=True)
    # A terminal is left clean; elsewhere, as in a log, the last state is the only one that is written.
    with Progress(*columns, console=console, transient=console.is_terminal) as display:
        task = display.add_task("", total=total)

        def bar_of(file: RemoteFile) -> Bar:
            start = starts[file]
            display.update(task, description=file.path)
            return FileBar(file.size or 0, lambda done: display.update(task, completed=start + done))

        yield bar_of
