"""Raise the bounds of entries with one driver, each in the coordinates that suit it."""

from collections.abc import Iterator

import jax
import numpy as np

from quenched.draws import Draws
from quenched.fitting.drive import Driver, Entries, Record, Summit
from quenched.fitting.patience import Tops, climb
from quenched.fitting.rows import put, rows
from quenched.fitting.settings import Settings
from quenched.fitting.start import Starts


class Raising:
    """Who raises, how far, and the factors by which the means of some problems are whitened."""

    def __init__(self, driver: Driver, settings: Settings, *, slack: float):
        self.driver, self.settings, self.slack = driver, settings, slack
        self.factor: np.ndarray | None = None  # as in `Starts`, of all problems
        self.factored = np.zeros(driver.batch.n, bool)

    def remember(self, index: np.ndarray, starts: Starts) -> None:
        """The factors of starts that were found."""
        if starts.factor is not None:
            n, shape = self.driver.batch.n, starts.factor.shape[1:]
            self.factor = np.zeros((n, *shape)) if self.factor is None else self.factor
            self.factor[index], self.factored[index] = starts.factor, starts.factored

    def forget(self, index: np.ndarray) -> None:
        """Their factors belong to starts that led nowhere."""
        self.factored[index] = False

    def tops(
        self, entries: Entries, draws: Draws, *, starts: Starts | None = None, record: Record | None = None
    ) -> Iterator[tuple[Entries, Summit]]:
        """Raise bounds, of all that can be raised together; by the factors of `starts`, where they are those."""
        for group in self.groups(entries, starts):
            yield group, self.driver.climb(group, draws, self.settings.method, self.slack, record)

    def patiently(self, entries: Entries, draws: Draws) -> Iterator[tuple[Entries, Tops]]:
        """The same, but those that follow their draws alone are broken off: more can be taken."""
        for group in self.groups(entries):
            yield group, climb(self.driver, group, draws, self.settings.method, self.slack)

    def groups(self, entries: Entries, starts: Starts | None = None) -> Iterator[Entries]:
        """Those whose mean is whitened by a factor of its own, with it, and the others."""
        if starts is None:
            factored, factor = rows((self.factored, self.factor), entries.index)
        else:
            factored, factor = rows((starts.factored, starts.factor), starts.found)
        for whitened in (True, False):
            chosen = np.flatnonzero(factored == whitened)
            if len(chosen):
                own = factor[chosen] if whitened and factor is not None else None
                yield entries.some(chosen)._replace(factor=own)

    def better(self, given: Entries, fresh: Entries, draws: Draws) -> Entries:
        """Of two posteriors of each problem, the one with the higher bound on some draws."""
        judged = self.driver.judge(given, draws)
        given = given._replace(hyper=judged.hyper, bound=np.nan_to_num(judged.bound, nan=-np.inf), known=judged.totals)
        if not len(fresh.index):
            return given
        take = fresh.bound > given.bound
        if take.all() or not take.any():
            return fresh if take.all() else given
        chosen = jax.tree.map(np.array, given[1:4])
        put(chosen, np.flatnonzero(take), rows(fresh[1:4], np.flatnonzero(take)))
        return Entries(given.index, *chosen)
