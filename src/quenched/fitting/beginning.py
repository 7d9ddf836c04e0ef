"""Where fits begin: at the best start there is, or at the best of several, each raised to its top."""

from typing import Any

import jax
import numpy as np

from quenched.execute import Expired
from quenched.fitting.drive import Entries
from quenched.fitting.optima import around, distinct
from quenched.fitting.raising import Raising
from quenched.fitting.rows import rows
from quenched.fitting.standing import Standing
from quenched.fitting.start import Starter, Starts
from quenched.fitting.terms import TermsAlone

_STARTS_AT_A_TIME = 4


class Beginning:
    """Finds posteriors to begin from; problems that have none are refused, with the reason."""

    def __init__(self, raising: Raising, standing: Standing):
        self.raising, self.standing = raising, standing
        self.driver, self.settings = raising.driver, raising.settings

    def best(self, index: np.ndarray, given: Entries | None) -> Entries:
        """The best starts there are; those that have none are left out, with the reason."""
        if self.settings.starts > 1:
            return self.best_of(index, self.settings.starts)
        starts = self._starts(index, self.standing.points[index])
        for place, why in starts.refusals.items():
            if self.driver.explains:
                self.standing.refuse(int(index[place]), why)
        found = np.flatnonzero(starts.found)
        self.raising.remember(index, starts)
        fresh = _entries(index, starts).some(found)
        return fresh if given is None else self.raising.better(given, fresh, self.settings.draws)

    def best_of(self, index: np.ndarray, n: int) -> Entries:
        """Run every start to its top and tell the distinct ones apart."""
        settings, standing, chosen = self.settings, self.standing, []
        for place in index:
            tops: list[Any] = []
            try:
                # The given one first; between the others it is asked whether time is up.
                cuts = np.arange(1, n, _STARTS_AT_A_TIME)
                for points in np.split(around(standing.points[place], n, settings.seed), cuts):
                    if tops and self.driver.stopped:
                        break
                    starts = self._starts(np.full(len(points), place), points)
                    if 0 in starts.refusals and not tops:  # the one that was asked for
                        standing.refuse(int(place), starts.refusals[0])
                        break
                    tops += self._tops_of(place, starts)
            except KeyboardInterrupt as stop:
                if not tops:
                    raise
                self.driver.interrupted = self.driver.interrupted or not isinstance(stop, Expired)
            if not tops:
                continue
            if self.driver.stopped:
                standing.cut_short[int(place)] = f"Time was up before all of the {n} starts were tried."
            best, standing.optima[int(place)] = distinct([top[0] for top in tops], [float(top[2]) for top in tops])
            chosen.append(Entries(np.array([place]), *jax.tree.map(lambda leaf: np.asarray(leaf)[None], tops[best])))
        if not chosen:
            return standing.reached.entries(index[:0])
        return Entries(*_joined([one[:4] for one in chosen]))

    def _tops_of(self, place: Any, starts: Starts) -> list[Any]:
        """The posteriors that several starts of one problem lead to, with their hyperparameters and bounds."""
        tried = _entries(np.full(len(starts.found), place), starts).some(starts.found)
        return [
            rows((top.posterior, top.hyper, top.bound), row)
            for _, top in self.raising.tops(tried, self.settings.draws, starts=starts)
            for row in np.flatnonzero(top.begun)
        ]

    def _starts(self, index: np.ndarray, points: np.ndarray) -> Starts:
        settings = self.settings
        if isinstance(self.driver, TermsAlone):
            return self.driver.start(index, points, settings.draws)
        starter = Starter(self.driver, settings.family.base, settings.draws, settings.seed, index, points)
        scale = settings.method.initial_scale
        if scale is not None and settings.method.begins_itself:
            return starter.unjudged(scale)
        return starter.best() if scale is None else starter.plain(scale)


def _entries(index: np.ndarray, starts: Starts) -> Entries:
    return Entries(index, starts.posterior, starts.hyper, starts.worth, known=starts.known)


def _joined(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *trees)
