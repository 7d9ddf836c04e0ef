"""One line while a fit runs, and the time it may take."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Self

from quenched.execute import GRACE, take_what_linear_algebra_needs, until
from quenched.fitting.display import display_for
from quenched.forks import note_process
from quenched.interrupts import interrupts_held
from quenched.numbers import yes_or_no
from quenched.results import Status


class Watcher(AbstractContextManager):
    """Shows where a fit stands and says when its time is up; in its scope Ctrl-C waits for the end of a piece of work."""

    def __init__(self, show: bool, max_seconds: float | None, agree: Callable[[bool], bool] = bool):
        self.display = display_for(yes_or_no("progress", show))
        self.began = time.perf_counter()
        self.max_seconds = max_seconds
        self.agree = agree  # the clocks of several processes differ, and all must stop at the same evaluation
        self.n_evaluations = 0
        self.held = interrupts_held()
        # Several processes must do the same calls, so that theirs have no end of their own.
        self.ends = None if max_seconds is None or agree is not bool else self.began + max_seconds
        self.limit = until(self.ends)

    def __enter__(self) -> Self:
        note_process()
        take_what_linear_algebra_needs()
        self.held.__enter__()
        self.limit.__enter__()
        self.display.start()
        return self

    def __exit__(self, *exception) -> None:
        self.display.stop()
        self.limit.__exit__(None, None, None)
        self.held.__exit__(None, None, None)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def say(self, text: str) -> None:
        self.display.update(text)

    def __call__(self, bound: float, n_draws: int) -> Status | None:
        """Told after each evaluation of the bound; answers with a status to stop."""
        self.n_evaluations += n_draws
        self.say(f"{n_draws} draws, bound {bound:.3f} nats, {self.n_evaluations} gradient evaluations")
        return Status.MAX_SECONDS if self.expired else None

    def quiet(self, bound: float, n_draws: int) -> Status | None:
        """The same without a word: for work that is not part of the ascent."""
        return Status.MAX_SECONDS if self.expired else None

    @property
    def overdue(self) -> bool:
        """The limit was passed a while ago: even what is nearly done must end."""
        return self.max_seconds is not None and self.agree(self.seconds > self.max_seconds + GRACE)

    @property
    def expired(self) -> bool:
        return self.max_seconds is not None and self.agree(self.seconds > self.max_seconds)
