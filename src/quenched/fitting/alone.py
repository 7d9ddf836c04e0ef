"""The driver that takes entries one by one, on the host."""

from threading import Thread
from typing import Any, ClassVar

import jax
import numpy as np

from quenched.draws import Draws
from quenched.execute import Here
from quenched.families import Member
from quenched.fitting.ahead import compiled_ahead
from quenched.fitting.ascent import Ascent, Learned, Limits, ascend
from quenched.fitting.drive import Driver, Entries, Judged, Record, Summit
from quenched.fitting.method import Base, Method
from quenched.fitting.newton import Expander, Expansion, Mode, Search
from quenched.fitting.rows import equal_rows, repeated, rows, stacked
from quenched.objective import Coordinates, Objective, log_ratios
from quenched.results import Code
from quenched.targets import Hyper


class Alone(Driver):
    """One entry after the other, in NumPy, with a few compiled programs of the target and the family."""

    explains: ClassVar[bool] = True
    _last: tuple[int, Draws, Objective] | None = None
    _climbed: tuple[int, Ascent] | None = None  # the last of the ascents
    _ahead: Thread | None = None

    def prepare(self, problem, posterior, hyper, draws):
        if isinstance(self.batch.problem.execution, Here):
            self._ahead = compiled_ahead(self.objective(problem, draws), posterior, hyper)

    def objective(self, problem: int, draws: Draws) -> Objective:
        """The bound of a problem on some draws; the last one is kept."""
        if self._ahead is not None:
            self._ahead.join()  # or the same would be compiled here once more
            self._ahead = None
        if self._last is None or self._last[:2] != (problem, draws):
            self._last = (problem, draws, Objective(self.batch.one(problem), draws))
        return self._last[2]

    def expand(self, index, points, hyper):
        found = []
        for problem, point, own in zip(index, points, _each(hyper, len(index)), strict=True):
            expander = Expander(self.batch.one(problem))
            found.append(expander.expand(point, 0.1 * np.maximum(np.abs(point), 1.0), own))
            self.costs.add(problem, expander.n_evaluations)
        return stacked(found)

    def modes(self, index, at: Expansion, hyper: Hyper, search: Search) -> tuple[np.ndarray, Mode]:
        found = []
        for problem, start, own in zip(index, _each(at, len(index)), _each(hyper, len(index)), strict=True):
            expander = Expander(self.batch.one(problem))
            found.append(expander.find_mode(start, own, search, lambda: self.watch.expired))
            self.costs.add(problem, expander.n_evaluations)
        return np.ones(len(index), bool), stacked(found)

    def judge(self, entries, draws, *, profile=True):
        slopes, totals = [], []
        for place, (problem, posterior, hyper) in enumerate(self._each(entries)):
            objective = self.objective(problem, draws)
            origin = Coordinates(posterior, hyper.free, None if entries.factor is None else entries.factor[place])
            slope, total = objective.slope(origin, np.zeros(origin.size), hyper, profile=profile)
            self.costs.add(problem, draws.n)
            slopes.append(slope)
            totals.append(total)
        finite = [all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(total)) for total in totals]
        bounds, gradients = (np.array([np.asarray(slope[part]) for slope in slopes]) for part in (0, 1))
        hypers = stacked([slope.hyper for slope in slopes])
        with np.errstate(over="ignore"):  # far from anywhere
            promises = 0.5 * np.sum(gradients**2, axis=1)
        return Judged(bounds, hypers, np.array(finite, bool), promises, totals)

    def short_fits(self, entries: Entries, draws: Draws, limits: Limits, rivals: np.ndarray) -> Summit:
        ascents, known = [], entries.known or [None] * len(entries.index)
        for place, (problem, posterior, hyper) in enumerate(self._each(entries)):
            objective, origin = self.objective(problem, draws), Coordinates(posterior, hyper.free)
            before, rival = objective.n_evaluations, float(rivals[place])
            watch, totals = self.watch.quiet, known[place]
            ascents.append(ascend(objective, origin, hyper, limits, rival=rival, watch=watch, known=totals))
            self.costs.add(problem, objective.n_evaluations - before)
            if ascents[-1].code is Code.INTERRUPTED:
                raise KeyboardInterrupt  # a start is not a result
        return summit_of(ascents, len(entries.index))

    def climb(self, entries: Entries, draws: Draws, method: Method, slack: float, record: Record | None) -> Summit:
        ascents, known = [], entries.known or [None] * len(entries.index)
        for place, (problem, posterior, hyper) in enumerate(self._each(entries)):
            objective = self.objective(problem, draws)
            factor = None if entries.factor is None else entries.factor[place]
            origin, learned = Coordinates(posterior, hyper.free, factor), self._learned(problem, posterior)
            base = Base(origin, hyper, float(entries.bound[place]), known[place], learned)
            counted = objective.n_evaluations

            def count(bounds: int = 0) -> None:
                nonlocal counted
                self.costs.add(problem, objective.n_evaluations - counted, bounds)  # noqa: B023
                counted = objective.n_evaluations  # noqa: B023

            def tell(*reached) -> None:
                if record is not None:
                    count()
                    record(problem, *reached)  # noqa: B023

            ascents.append(method.run(objective, base, slack, self.watch, tell))
            self._climbed = (problem, ascents[-1])
            count(ascents[-1].n_objective_evaluations)
            if ascents[-1].code is Code.INTERRUPTED:
                self.interrupted, self.stuck = True, ascents[-1].stuck
                break
        return summit_of(ascents, len(entries.index))

    def _learned(self, problem: int, posterior: Member) -> Learned | None:
        """By the last ascent, if it has ended at this posterior."""
        if self._climbed is None or self._climbed[0] != problem or not posterior.affine:
            return None
        ended = self._climbed[1]
        return ended.learned if equal_rows(*repeated((ended.posterior, posterior), 1)).all() else None

    def log_ratios(self, entries, z):
        return np.stack(
            [
                log_ratios(self.batch.one(problem), posterior, hyper, z)
                for problem, posterior, hyper in self._each(entries)
            ]
        )

    def _each(self, entries: Entries):
        for place, problem in enumerate(entries.index):
            posterior, hyper = rows((entries.posterior, entries.hyper), place)
            yield int(problem), posterior, hyper


def _each(tree, n: int) -> list:
    return [rows(tree, place) for place in range(n)]


def summit_of(ascents: list[Any], n: int) -> Summit:
    """Rows of ascents; those that never had their turn stand where the last one does."""
    whole = ascents + [ascents[-1]] * (n - len(ascents))
    return Summit(
        posterior=stacked([ascent.posterior for ascent in whole]),
        hyper=stacked([ascent.hyper for ascent in whole]),
        bound=np.array([ascent.bound for ascent in whole]),
        code=np.array([ascent.code for ascent in whole]),
        rise=np.array([ascent.rise for ascent in whole]),
        begun=np.arange(n) < len(ascents),
        notes={place: ascent.note for place, ascent in enumerate(ascents) if ascent.note},
    )
