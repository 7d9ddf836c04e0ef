"""Rounds of a fit, on rows: raise the bound, check it, and grow the draws of those that need more."""

from collections.abc import Iterator
from dataclasses import replace

import jax
import numpy as np

from quenched.draws import CheckDraws, Draws
from quenched.execute import Expired, Here, StuckProgram
from quenched.families import Bound, Member
from quenched.fitting.beginning import Beginning
from quenched.fitting.drive import Driver, Entries, Record
from quenched.fitting.monitor import FALL, check, doubled, draws_needed
from quenched.fitting.patience import Tops, may_be_broken_off
from quenched.fitting.raising import Raising
from quenched.fitting.rows import rows
from quenched.fitting.standing import SUSPECT, Reached, Standing
from quenched.results import Code, as_a_warning, save
from quenched.targets import Hyper
from quenched.trust import EVEN, MANY, gains, uneven

_STARTS_WHEN_SUSPECT = 4
_ROUGHLY = 0.25  # of the tolerance: what a first guess at the cost of the draws must not exceed
_FEW_COORDINATES, _MANY_COORDINATES = 3, 50
_CHECKED = 640  # check draws, at the least
_TIMES = 5  # the draws: how many there are at the most, where their error is no reason for more
_CLEAR = 1.0 / 3.0  # of the tolerance: an error of the check bound that hides nothing


class Rounds:
    """Fits that one driver carries, from where they begin to draws that suffice."""

    def __init__(self, standing: Standing, driver: Driver, check_draws: CheckDraws, *, slack: float):
        self.standing, self.driver, self.check_draws = standing, driver, check_draws
        self.settings, self.problem = standing.settings, standing.batch.problem
        self.raising = Raising(driver, standing.settings, slack=slack)
        self.beginning = Beginning(self.raising, standing)
        self.gaussian: Reached | None = None  # where fits of another family began
        family = standing.settings.family
        enough = (standing.settings.n_check or _CHECKED) >= _CHECKED
        self.judged_by_checks = family.judged_by_checks and enough
        # What more check draws would tell of the weights is looked at when someone asks, where that is possible.
        here, traced = isinstance(self.problem.execution, Here), self.problem.programs is not None
        self.asked_later = family.affine and family.bound is Bound.ON_DRAWS and here and traced
        self.follows = np.zeros(standing.batch.n, bool)  # those that follow their draws, and were broken off

    @property
    def reached(self) -> Reached:
        return self.standing.reached

    def fit(self, index: np.ndarray, given: Entries | None, final: bool) -> np.ndarray:
        """Fit these; answers with those that led nowhere and may be tried alone."""
        settings = self.settings
        if not len(index):
            return index
        entries = given if given is not None and final else self.beginning.best(index, given)
        begun, lost = entries.index, np.setdiff1d(index, entries.index)
        if not len(begun):
            return lost[: len(lost) * (not self.driver.stopped)]
        self.standing.keep(*entries[:4], Code.MAX_SECONDS, draws=settings.draws)  # until the first round has ended
        self._round(entries, settings.draws)
        suspect = begun[np.isin(self.reached.code[begun], SUSPECT)]
        if len(suspect) and self.driver.explains and settings.starts == 1 and given is None:
            self._try_others(suspect)
        if entries.posterior.affine and not settings.family.affine:
            self._lift(begun)
        self._grow(begun)
        self._prefer_gaussians(begun)
        return suspect if self.driver.stopped else np.concatenate([lost, suspect])

    def _try_others(self, index: np.ndarray) -> None:
        """One start led nowhere: let others try before saying so."""
        before = self.reached
        self.standing.reached = jax.tree.map(np.array, before)
        self.raising.forget(index)
        self._round(self.beginning.best_of(index, _STARTS_WHEN_SUSPECT), self.settings.draws)
        won = (self.reached.code == Code.CONVERGED) | (self.reached.bound > before.bound)
        self.standing.return_to(before, index[~won[index]])

    def _round(self, entries: Entries, draws: Draws) -> None:
        """Raise bounds on one set of draws, and check them."""
        ended, before = [], self.reached.n_draws.copy()
        self.follows[entries.index] = False
        for group, (tops, taken_back) in self._tops(entries, draws):
            begun = np.flatnonzero(tops.begun)
            found = rows((tops.posterior, tops.hyper, tops.bound, tops.code), begun)
            self.standing.keep(group.index[begun], *found, draws=draws)
            self.standing.notes.update({int(group.index[row]): note for row, note in tops.notes.items()})
            ended.append(group.index[begun])
            # What draws cost falls at least as fast as they become more; what the fewer ones did cost is now seen.
            self.reached.shortfall[ended[-1]] = tops.rise[begun] * (before[ended[-1]] / draws.n) ** FALL
            follows = np.flatnonzero(~np.isnan(taken_back))
            # Half of what is lost on other draws: the other half is what it is too good on its own.
            self.reached.shortfall[group.index[follows]] = 0.5 * taken_back[follows]
            self.follows[group.index[follows]] = True
        index = np.concatenate(ended)
        first = index[(before[index] >= draws.n) & ~self.follows[index]]
        if len(first) and not self.driver.stopped and not self.judged_by_checks:
            try:
                self._measure(first, draws)
            except Expired:
                self.reached.code[first] = Code.MAX_SECONDS
            except KeyboardInterrupt as stop:
                self.driver.interrupted, self.driver.stuck = True, isinstance(stop, StuckProgram)
                self.reached.code[first] = Code.INTERRUPTED
        self.check(index)
        if self.settings.checkpoint is not None:
            with as_a_warning(self.settings.checkpoint):
                reached = self.standing.fits(self.driver.watch.seconds, search=False)[0]
                save(replace(reached, outlook=None), self.settings.checkpoint)

    def _tops(self, entries: Entries, draws: Draws) -> Iterator[tuple[Entries, Tops]]:
        if may_be_broken_off(self.settings, draws):
            yield from self.raising.patiently(entries, draws)
            return
        for group, tops in self.raising.tops(entries, draws, record=self._record(draws)):
            yield group, Tops(tops, np.full(len(tops.bound), np.nan))

    def _record(self, draws: Draws) -> Record:
        """For methods with rounds of their own."""

        def record(place: int, posterior: Member, hyper: Hyper, bound: float) -> None:
            posterior, hyper = jax.tree.map(lambda leaf: np.asarray(leaf)[None], (posterior, hyper))
            self.standing.keep(np.array([place]), posterior, hyper, bound, Code.MAX_SECONDS, draws=draws)
            self.check(np.array([place]), final=False)

        return record

    def check(self, index: np.ndarray, *, final: bool = True) -> None:
        """End a round: the bounds on check draws, of which those that stay where they are may be given more."""
        settings, reached = self.settings, self.reached
        for n_draws in () if self.driver.stuck else np.unique(reached.n_draws[index]):
            group = index[reached.n_draws[index] == n_draws]
            if settings.n_check is not None:
                self._check_with(group, settings.n_check)
                continue
            most = self.driver.affordable(max(_TIMES * int(n_draws), _CHECKED if final else 1))
            few = most if self.judged_by_checks else min(most, _CHECKED)
            self._check_with(group, few)
            self._go_on(group[~(reached.check_error[group] <= _CLEAR * settings.tolerance)], most)
            if final and not self.asked_later:
                # Weights that are uneven tell little by few draws of how far they move a mean or an sd.
                last = np.setdiff1d(group, self._must_grow(group, rounds=1))
                self._go_on(last, self.driver.affordable(MANY), to_weigh=True)
        self.standing.enter(index)

    def _go_on(self, index: np.ndarray, n: int, *, to_weigh: bool = False) -> None:
        """Check by more draws than before, n in all; to weigh, the bound needs none, nor do weights that are even."""
        for before in np.unique([len(self.reached.log_ratios[place]) for place in index]):
            group = index[[len(self.reached.log_ratios[place]) == before for place in index]]
            known = np.stack(list(self.reached.log_ratios[group]))
            some = uneven(known, EVEN) if to_weigh and before < n else np.full(len(group), before < n)
            if some.any() and not self.driver.stopped:
                self._check_with(group[some], n, known=known[some], to_weigh=to_weigh)

    def _check_with(
        self, index: np.ndarray, n: int, known: np.ndarray | None = None, *, to_weigh: bool = False
    ) -> None:
        seen = check(self.driver, self.reached.entries(index), self.check_draws, n=n, known=known)
        for place, ratios in zip(index, seen.log_ratios, strict=True):
            self.reached.log_ratios[place] = ratios
        if to_weigh:
            return
        self.reached.check_bound[index], self.reached.check_error[index] = seen.bound, seen.error
        if self.judged_by_checks:
            # Half of what is lost on draws that it was not fitted to: the other half is what it is too good on its own.
            lost = np.maximum(self.reached.bound[index] - seen.bound, 0.0) + seen.error
            self.reached.shortfall[index] = np.nan_to_num(0.5 * lost, nan=np.inf)

    def _measure(self, index: np.ndarray, draws: Draws) -> None:
        """What the draws may have cost, in nats, by the gradient on others.

        There the bound promises to rise by as much as both sets of draws are off, each of which is half of it.
        """
        index = index[self.reached.code[index] == Code.CONVERGED]
        for entries in self.raising.groups(self.reached.entries(index)):
            with np.errstate(invalid="ignore", over="ignore"):
                judged = self.driver.judge(entries, draws.another())
            self.reached.shortfall[entries.index] = np.nan_to_num(0.5 * judged.promise, nan=np.inf)

    # More draws, and other families.

    def _must_grow(self, index: np.ndarray, rounds: int = 0) -> np.ndarray:
        """Those whose draws may have cost too much; `rounds` are yet to be entered into their history."""
        reached, settings = rows(self.reached, index), self.settings
        may = 2 * reached.n_draws <= self._most(index)
        # Of the first draws there is a rough guess; of others it has been seen by how much they have bettered the fit.
        seen = np.array([len(self.standing.histories[place]) + rounds > 1 for place in index], bool)
        # Of a warp it is also known what it has lost on check draws.
        enough = np.where(seen | (not settings.family.affine), 1.0, _ROUGHLY) * settings.tolerance
        return index[(reached.code == Code.CONVERGED) & (reached.shortfall > enough) & may]

    def _grow(self, index: np.ndarray) -> None:
        going = self._must_grow(index)
        while len(going):
            if self.driver.stopped:
                self.reached.code[going] = Code.MAX_SECONDS
                return
            sizes = np.array([self._draws_needed(place) for place in going])
            for size in np.unique(sizes):
                group, draws = going[sizes == size], self.settings.draws.grow(int(size))
                self.reached.code[group] = Code.MAX_SECONDS  # unless the round comes to its end
                entries = self.reached.entries(group)
                if self.gaussian is not None:
                    # From the Gaussian again, if the warped posterior followed the fewer draws.
                    gaussian = self.gaussian.entries(group)
                    entries = self.raising.better(
                        entries, self.raising.better(gaussian, gaussian.some(group[:0]), draws), draws
                    )
                    self.standing.costs.add(group, 0, 2)
                self._round(entries, draws)
            going = self._must_grow(going)

    def _most(self, index: np.ndarray) -> np.ndarray:
        return np.where(self.follows[index], self.settings.most_draws, self.settings.max_draws)

    def _draws_needed(self, place: int) -> int:
        reached, settings = rows(self.reached, place), self.settings
        n, most = int(reached.n_draws), int(self._most(np.array([place]))[0])
        dim = self.problem.dim
        if len(self.standing.histories[place]) > 1 or dim >= _MANY_COORDINATES:
            return draws_needed(n, float(reached.shortfall), settings.tolerance, most)
        if not settings.family.affine:
            return doubled(n, 1, most)
        # The gradient on other draws is a rough guess, the more so if it has few components.
        return doubled(n, 2 if dim > _FEW_COORDINATES else 3, most)

    def _lift(self, index: np.ndarray) -> None:
        """Go on in the family that was asked for, from the Gaussian in which it begins."""
        index = index[self.reached.code[index] == Code.CONVERGED]
        if len(index):
            self.gaussian = jax.tree.map(np.array, self.reached)
            self._round(self.reached.entries(index), self.settings.draws)

    def _prefer_gaussians(self, index: np.ndarray) -> None:
        """What is better on fresh draws: the end of the fit, or the Gaussian in which it began."""
        if self.gaussian is None:
            return
        pays = lambda place: gains(self.reached.log_ratios[place], self.gaussian.log_ratios[place])  # pyright: ignore
        back = np.array([place for place in index if self._was_lifted(place) and not pays(place)], int)
        self.standing.return_to(self.gaussian, back)
        for place in back.tolist():
            self.standing.notes[place] = (
                "On fresh draws the warped posterior is no better, so this is the Gaussian in which it began."
            )

    def _was_lifted(self, place: int) -> bool:
        return self.gaussian is not None and self.gaussian.code[place] == Code.CONVERGED
