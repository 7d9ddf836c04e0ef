"""One line on the terminal while a fit runs; silent elsewhere."""

import time
from contextlib import AbstractContextManager
from typing import Self

from rich.console import Console
from rich.status import Status as Spinner

from quenched.execute import interrupts_held
from quenched.outcome import Status


class Watcher(AbstractContextManager):
    """Shows where a fit stands and says when its time is up; in its scope Ctrl-C waits for the end of a piece of work."""

    def __init__(self, show: bool, max_seconds: float | None):
        console = Console(stderr=True)
        self.spinner = Spinner("starting", console=console) if show and console.is_terminal else None
        self.began = time.perf_counter()
        self.max_seconds = max_seconds
        self.n_evaluations = 0
        self.held = interrupts_held()

    def __enter__(self) -> Self:
        self.held.__enter__()
        if self.spinner is not None:
            self.spinner.start()
        return self

    def __exit__(self, *exception) -> None:
        if self.spinner is not None:
            self.spinner.stop()
        self.held.__exit__(None, None, None)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def say(self, text: str) -> None:
        if self.spinner is not None:
            self.spinner.update(text)

    def __call__(self, bound: float, n_draws: int) -> Status | None:
        """Told after each evaluation of the bound; answers with a status to stop."""
        self.n_evaluations += n_draws
        self.say(f"{n_draws} draws, bound {bound:.3f} nats, {self.n_evaluations} gradient evaluations")
        return Status.MAX_SECONDS if self.expired else None

    def quiet(self, bound: float, n_draws: int) -> Status | None:
        """The same without a word: for work that is not part of the ascent."""
        return Status.MAX_SECONDS if self.expired else None

    @property
    def expired(self) -> bool:
        return self.max_seconds is not None and self.seconds > self.max_seconds
