"""Fits under way, on rows: start, raise the bound, check it, and grow the draws of those that need more, round by round.

One fit is a batch of one. What lanes cannot do (a start that is not finite, a bound that will not rise) is done once more
alone: that driver knows other ways out, and says what is wrong in words.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.draws import Draws
from quenched.execute import Expired, StuckProgram
from quenched.families import Member, Sparse
from quenched.fitting.alone import Alone
from quenched.fitting.blame import blame_flight, blame_reached, blame_region, blame_start, blame_tails, sign_remark
from quenched.fitting.drive import Costs, Driver, Entries, Record, Summit
from quenched.fitting.lanes import Lanes
from quenched.fitting.monitor import FALL, CheckDraws, check, doubled, draws_needed
from quenched.fitting.newton import Mode, Search
from quenched.fitting.optima import around, distinct
from quenched.fitting.progress import Watcher
from quenched.fitting.promises import examine
from quenched.fitting.remarks import jump_remark, rounding_remark, starts_remark, tail_remark
from quenched.fitting.rows import put, repeated, rows
from quenched.fitting.settings import Settings
from quenched.fitting.start import Starter, Starts
from quenched.fitting.terms import TermsAlone, many_numbers
from quenched.outcome import Code, Optimum, Round
from quenched.problem import Batch
from quenched.result import Fit
from quenched.results import Fits, Origins
from quenched.storage import as_a_warning, save
from quenched.targets import Hyper
from quenched.trust import gains
from quenched.weights import weigh_ratios

_SUSPECT = (Code.NO_ASCENT, Code.NOT_FINITE)
_STARTS_WHEN_SUSPECT = 4
_STARTS_AT_A_TIME = 4
_NOWHERE = 1e-3  # standard deviation of the posterior of a fit that could not begin
_ROUGHLY = 0.25  # of the tolerance: what a first guess at the cost of the draws must not exceed
_FEW_COORDINATES, _MANY_COORDINATES = 3, 50
_CHECKED = (640, 2560)  # check draws behind importance weights that are even, and that are not
_EVEN = 0.95  # of the samples, that even weights keep


class Reached(NamedTuple):
    """What fits have reached, in rows: each with the draws it stands on and its check, so that they cannot drift apart."""

    posterior: Member
    hyper: Hyper
    bound: np.ndarray
    code: np.ndarray
    n_draws: np.ndarray
    check_bound: np.ndarray
    check_error: np.ndarray
    shortfall: np.ndarray
    log_ratios: np.ndarray  # of objects: log p − log q at the check draws of each

    def entries(self, index: np.ndarray) -> Entries:
        """Those of some problems."""
        return Entries(index, *rows((self.posterior, self.hyper, self.bound), index))

    def round(self, place: int, n_evaluations: Any) -> Round:
        """The round that has led to one of them."""
        bound, check_bound, check_error, shortfall = (
            float(values[place]) for values in (self.bound, self.check_bound, self.check_error, self.shortfall)
        )
        return Round(int(self.n_draws[place]), bound, check_bound, check_error, int(n_evaluations), shortfall)


class Run:
    """Fits under way: what they were asked for, and what they have reached."""

    def __init__(self, settings: Settings, batch: Batch, points: np.ndarray, watch: Watcher, *, polishes: bool = False):
        self.polishes = polishes  # goes on to the very top, whatever it costs
        self.settings, self.batch, self.points, self.watch = settings, batch, points, watch
        problem, family, n = batch.problem, settings.family, batch.n
        self.costs = Costs(n)
        self.check_draws = CheckDraws(problem.dim, settings.seed)
        self.alone = (TermsAlone if isinstance(family, Sparse) else Alone)(batch, watch, self.costs)
        self.driver: Driver = self.alone
        if n > 1 and problem.programs is not None and settings.method.in_lanes:
            coupled = family.coupled_coordinates(problem.space.sizes)
            self.driver = Lanes(batch, watch, self.costs, coupled=coupled, first=settings.draws.n)
        nowhere = family.isotropic(points.copy(), np.full(points.shape, _NOWHERE), problem.space.sizes)
        unknown = np.full(n, np.nan)
        self.reached = Reached(
            posterior=jax.tree.map(np.array, nowhere),
            hyper=repeated(problem.hyper, n),
            bound=np.full(n, -np.inf),
            code=np.full(n, Code.MAX_SECONDS),  # until they have been seen to
            n_draws=np.full(n, settings.draws.n),
            check_bound=unknown,
            check_error=unknown.copy(),
            shortfall=unknown.copy(),
            log_ratios=_nothing(n),
        )
        self.gaussian: Reached | None = None  # where fits of another family began
        self.factor: np.ndarray | None = None  # as in `Starts`, of all problems
        self.factored = np.zeros(n, bool)
        self.histories: list[list[Round]] = [[] for _ in range(n)]
        self.messages: dict[int, str] = {}  # instead of the status's own
        self.notes: dict[int, str] = {}  # besides it
        self.cut_short: dict[int, str] = {}  # of searches that were not finished
        self.optima: dict[int, tuple[Optimum, ...]] = {}

    def refuse(self, place: int, why: str) -> None:
        """A problem that cannot be fitted, and the reason."""
        self.reached.code[place] = Code.NOT_FINITE
        self.messages[place] = why

    def fit(self, given: Entries | None = None, *, final: bool = False) -> Fits:
        """Fit all problems but those that were refused. An interrupt keeps what they have reached.

        `given` are posteriors to begin from, if they are better than what a search finds; `final` ones, whatever they are.
        """
        index = np.setdiff1d(np.arange(self.batch.n), list(self.messages))
        try:
            if given is None:
                self._examine(index)
            if not self.driver.explains:
                index = self._fit(index, given, final)
                self.driver, given = self.alone, None
            for place in index.tolist():
                if self.driver.stopped and self.batch.n > 1:
                    break
                self._fit(np.array([place]), None if given is None else given.some([place]), final)
        except Expired:
            self._out_of_time()
        except KeyboardInterrupt:
            self.driver.interrupted = True
            if self.batch.data is None and not np.isfinite(self.reached.bound).any():
                raise  # nothing was reached
            unchecked = np.isfinite(self.reached.bound) & np.isnan(self.reached.check_bound)
            self.reached.code[unchecked] = Code.INTERRUPTED
        if self.driver.interrupted:
            self.reached.code[self.reached.code == Code.MAX_SECONDS] = Code.INTERRUPTED
        return self.fits()

    def _examine(self, index: np.ndarray) -> None:
        """A function on the host is tried at the first of some problems, before anything is raised."""
        for place in index[:1].tolist() if self.batch.problem.programs is None else ():
            self.costs.add(place, examine(self.batch.one(place), self.points[place]))

    def _out_of_time(self) -> None:
        """Time was up in the middle of something: what is not known by now stays unknown."""
        reached = self.reached
        unchecked = np.isfinite(reached.bound) & np.isnan(reached.check_bound) & (reached.code == Code.CONVERGED)
        reached.code[unchecked] = Code.MAX_SECONDS
        for place in np.flatnonzero(~np.isfinite(reached.bound) & (reached.code == Code.MAX_SECONDS)).tolist():
            self.notes[place] = "The bound was not known anywhere by then: allow more time, or give fewer draws."

    def mode(self, search: Search) -> tuple[Mode | None, str]:
        """The mode next to the start of the one problem there is, or why there is none."""
        index, hyper = np.zeros(1, int), repeated(self.batch.problem.hyper, 1)
        self._examine(index)
        at = self.alone.expand(index, self.points, hyper)
        if not at.sound[0]:
            return None, blame_start(self.batch.problem, self.points[0], float(at.value[0]), at.gradient[0])
        if not at.finite[0]:
            return None, "start: the second derivatives of the log density are not finite there; start elsewhere."
        return rows(self.alone.modes(index, at, hyper, search)[1], 0), ""

    def judge(self, posterior: Member, hyper: Hyper, code: Code = Code.GIVEN, note: str = "") -> Fits:
        """Posteriors as they are, in rows: their bounds at the best precisions, and the check."""
        index = np.arange(self.batch.n)
        judged = self.alone.judge(Entries(index, posterior, hyper, self.reached.bound), self.settings.draws)
        self.costs.add(index, 0, 1)
        self._keep(index, posterior, judged.hyper, judged.bound, code, draws=self.settings.draws)
        self._check(index)
        self.notes.update({int(place): note for place in index if note})
        return self.fits()

    def _fit(self, index: np.ndarray, given: Entries | None, final: bool) -> np.ndarray:
        """Fit these; answers with those that led nowhere and may be tried alone."""
        settings = self.settings
        if not len(index):
            return index
        entries = given if given is not None and final else self._begin(index, given)
        begun, lost = entries.index, np.setdiff1d(index, entries.index)
        if not len(begun):
            return lost[: len(lost) * (not self.driver.stopped)]
        self._keep(*entries[:4], Code.MAX_SECONDS, draws=settings.draws)  # until the first round has ended
        self._round(entries, settings.draws)
        suspect = begun[np.isin(self.reached.code[begun], _SUSPECT)]
        if len(suspect) and self.driver.explains and settings.starts == 1 and given is None:
            self._try_others(suspect)
        if entries.posterior.affine and not settings.family.affine:
            self._lift(begun)
        self._grow(begun)
        self._prefer_gaussians(begun)
        return suspect if self.driver.stopped else np.concatenate([lost, suspect])

    # Where to begin.

    def _begin(self, index: np.ndarray, given: Entries | None) -> Entries:
        """The best starts there are; those that have none are left out, with the reason."""
        if self.settings.starts > 1:
            return self._best_of(index, self.settings.starts)
        starts = self._starts(index, self.points[index])
        for place, why in starts.refusals.items():
            if self.driver.explains:
                self.refuse(int(index[place]), why)
        found = np.flatnonzero(starts.found)
        if starts.factor is not None:
            self.factor = np.zeros((self.batch.n, *starts.factor.shape[1:])) if self.factor is None else self.factor
            self.factor[index], self.factored[index] = starts.factor, starts.factored
        fresh = _entries(index, starts).some(found)
        return fresh if given is None else self._better(given, fresh, self.settings.draws)

    def _starts(self, index: np.ndarray, points: np.ndarray) -> Starts:
        settings = self.settings
        if isinstance(self.driver, TermsAlone):
            return self.driver.start(index, points, settings.draws)
        starter = Starter(self.driver, settings.family.base, settings.draws, settings.seed, index, points)
        scale = settings.method.initial_scale
        if scale is not None and settings.method.begins_itself:
            return starter.unjudged(scale)
        return starter.best() if scale is None else starter.plain(scale)

    def _best_of(self, index: np.ndarray, n: int) -> Entries:
        """Run every start to its top and tell the distinct ones apart."""
        settings, chosen = self.settings, []
        for place in index:
            tops: list[Any] = []
            try:
                # The given one first; between the others it is asked whether time is up.
                cuts = np.arange(1, n, _STARTS_AT_A_TIME)
                for points in np.split(around(self.points[place], n, settings.seed), cuts):
                    if tops and self.driver.stopped:
                        break
                    starts = self._starts(np.full(len(points), place), points)
                    if 0 in starts.refusals and not tops:  # the one that was asked for
                        self.refuse(int(place), starts.refusals[0])
                        break
                    tops += self._tops_of(place, starts)
            except KeyboardInterrupt as stop:
                if not tops:
                    raise
                self.driver.interrupted = self.driver.interrupted or not isinstance(stop, Expired)
            if not tops:
                continue
            if self.driver.stopped:
                self.cut_short[int(place)] = f"Time was up before all of the {n} starts were tried."
            best, self.optima[int(place)] = distinct([top[0] for top in tops], [float(top[2]) for top in tops])
            chosen.append(Entries(np.array([place]), *jax.tree.map(lambda leaf: np.asarray(leaf)[None], tops[best])))
        if not chosen:
            return self.reached.entries(index[:0])
        return Entries(*_joined([one[:4] for one in chosen]))

    def _tops_of(self, place: Any, starts: Starts) -> list[Any]:
        """The posteriors that several starts of one problem lead to, with their hyperparameters and bounds."""
        tried = _entries(np.full(len(starts.found), place), starts).some(starts.found)
        return [
            rows((top.posterior, top.hyper, top.bound), row)
            for _, top in self._tops(tried, *rows((starts.factored, starts.factor), starts.found))
            for row in np.flatnonzero(top.begun)
        ]

    def _better(self, given: Entries, fresh: Entries, draws: Draws) -> Entries:
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

    def _try_others(self, index: np.ndarray) -> None:
        """One start led nowhere: let others try before saying so."""
        before = self.reached
        self.reached = jax.tree.map(np.array, before)
        self.factored[index] = False
        self._round(self._best_of(index, _STARTS_WHEN_SUSPECT), self.settings.draws)
        won = (self.reached.code == Code.CONVERGED) | (self.reached.bound > before.bound)
        self._return_to(before, index[~won[index]])

    def _return_to(self, earlier: Reached, index: np.ndarray) -> None:
        """Stand again where some fits have stood before, on the draws of that time."""
        put(self.reached, index, rows(earlier, index))
        for place in index.tolist():
            self.histories[place].append(self.reached.round(place, self.costs.gradients[place]))

    # Rounds.

    def _round(self, entries: Entries, draws: Draws) -> None:
        """Raise bounds on one set of draws, and check them."""
        ended, before = [], self.reached.n_draws.copy()
        factor, factored = rows((self.factor, self.factored), entries.index)
        for group, tops in self._tops(entries, factored, factor, draws, self._record(draws)):
            begun = np.flatnonzero(tops.begun)
            found = rows((tops.posterior, tops.hyper, tops.bound, tops.code), begun)
            self._keep(group.index[begun], *found, draws=draws)
            self.notes.update({int(group.index[row]): note for row, note in tops.notes.items()})
            ended.append(group.index[begun])
            # What draws cost falls at least as fast as they become more; what the fewer ones did cost is now seen.
            self.reached.shortfall[ended[-1]] = tops.rise[begun] * (before[ended[-1]] / draws.n) ** FALL
        index = np.concatenate(ended)
        first = index[before[index] >= draws.n]
        if len(first) and not self.driver.stopped:
            try:
                self._measure(first, draws)
            except Expired:
                self.reached.code[first] = Code.MAX_SECONDS
            except KeyboardInterrupt as stop:
                self.driver.interrupted, self.driver.stuck = True, isinstance(stop, StuckProgram)
                self.reached.code[first] = Code.INTERRUPTED
        self._check(index)
        if self.settings.checkpoint is not None:
            with as_a_warning(self.settings.checkpoint):
                save(self.fits()[0], self.settings.checkpoint)

    def _tops(
        self,
        entries: Entries,
        factored: np.ndarray,
        factor: np.ndarray | None,
        draws: Draws | None = None,
        record: Record | None = None,
    ) -> Iterator[tuple[Entries, Summit]]:
        """Raise bounds, of all that can be raised together."""
        settings = self.settings
        slack = 0.0 if self.polishes else settings.tolerance
        for group in self._groups(entries, factored, factor):
            yield group, self.driver.climb(group, draws or settings.draws, settings.method, slack, record)

    def _groups(self, entries: Entries, factored: np.ndarray, factor: np.ndarray | None) -> Iterator[Entries]:
        """Those whose mean is whitened by a factor of its own, with it, and the others."""
        for whitened in (True, False):
            chosen = np.flatnonzero(factored == whitened)
            if len(chosen):
                own = factor[chosen] if whitened and factor is not None else None
                yield entries.some(chosen)._replace(factor=own)

    def _keep(self, index: np.ndarray, posterior: Member, hyper: Hyper, bound: Any, code: Any, *, draws: Draws) -> None:
        """What was reached, as a member of the family that was asked for; not checked yet."""
        reached = self.reached
        put((reached.posterior, reached.hyper), index, (self.settings.family.lift(posterior), hyper))
        reached.bound[index], reached.code[index], reached.n_draws[index] = bound, code, draws.n
        reached.check_bound[index] = reached.check_error[index] = reached.shortfall[index] = np.nan
        reached.log_ratios[index] = _nothing(len(index))
        for place in index.tolist():
            self.notes.pop(place, None)

    def _record(self, draws: Draws):
        """For methods with rounds of their own."""

        def record(place: int, posterior: Member, hyper: Hyper, bound: float) -> None:
            posterior, hyper = jax.tree.map(lambda leaf: np.asarray(leaf)[None], (posterior, hyper))
            self._keep(np.array([place]), posterior, hyper, bound, Code.MAX_SECONDS, draws=draws)
            self._check(np.array([place]), final=False)

        return record

    def _check(self, index: np.ndarray, *, final: bool = True) -> None:
        """End a round: the bounds on check draws, of which those that stay where they are may be given more."""
        settings, reached = self.settings, self.reached
        for n_draws in () if self.driver.stuck else np.unique(reached.n_draws[index]):
            group = index[reached.n_draws[index] == n_draws]
            few, many = _CHECKED if final else (1, 1)
            n = settings.n_check or self.driver.affordable(max(5 * int(n_draws), few))
            many = self.driver.affordable(many)
            self._check_with(group, n)
            if settings.n_check is None and n < many and not self.driver.stopped:
                # Weights that are uneven tell little by few draws of how far they move a mean or an sd.
                last = np.setdiff1d(group, self._must_grow(group, rounds=1))
                uneven = [place for place in last if weigh_ratios(reached.log_ratios[place]).share < _EVEN]
                if uneven:
                    self._check_with(np.array(uneven), many, known=np.stack(list(reached.log_ratios[uneven])))
        for place in index.tolist():
            self.histories[place].append(reached.round(place, self.costs.gradients[place]))

    def _check_with(self, index: np.ndarray, n: int, known: np.ndarray | None = None) -> None:
        seen = check(self.driver, self.reached.entries(index), self.check_draws, n=n, known=known)
        self.reached.check_bound[index], self.reached.check_error[index] = seen.bound, seen.error
        for place, ratios in zip(index, seen.log_ratios, strict=True):
            self.reached.log_ratios[place] = ratios

    def _measure(self, index: np.ndarray, draws: Draws) -> None:
        """What the draws may have cost, in nats, by the gradient on others.

        There the bound promises to rise by as much as both sets of draws are off, each of which is half of it.
        """
        index = index[self.reached.code[index] == Code.CONVERGED]
        for entries in self._groups(self.reached.entries(index), self.factored[index], rows(self.factor, index)):
            with np.errstate(invalid="ignore", over="ignore"):
                judged = self.driver.judge(entries, draws.another())
            self.reached.shortfall[entries.index] = np.nan_to_num(0.5 * judged.promise, nan=np.inf)

    # More draws, and other families.

    def _must_grow(self, index: np.ndarray, rounds: int = 0) -> np.ndarray:
        """Those whose draws may have cost too much; `rounds` are yet to be entered into their history."""
        reached, settings = rows(self.reached, index), self.settings
        may = 2 * reached.n_draws <= settings.max_draws
        # Of the first draws there is a rough guess; of others it has been seen by how much they have bettered the fit.
        seen = np.array([len(self.histories[place]) + rounds > 1 for place in index], bool)
        # Of a warp's many numbers that guess is too high, not too low: 0.06 nats where more draws brought 0.02.
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
                    entries = self._better(entries, self._better(gaussian, gaussian.some(group[:0]), draws), draws)
                    self.costs.add(group, 0, 2)
                self._round(entries, draws)
            going = self._must_grow(going)

    def _draws_needed(self, place: int) -> int:
        reached, settings = rows(self.reached, place), self.settings
        n, most = int(reached.n_draws), settings.max_draws
        dim = self.batch.problem.dim
        if len(self.histories[place]) > 1 or dim >= _MANY_COORDINATES:
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
        self._return_to(self.gaussian, back)
        for place in back.tolist():
            self.notes[place] = (
                "On fresh draws the warped posterior is no better, so this is the Gaussian in which it began."
            )

    def _was_lifted(self, place: int) -> bool:
        return self.gaussian is not None and self.gaussian.code[place] == Code.CONVERGED

    # The result.

    def remarks(self, fit: Fit) -> tuple[str, ...]:
        """What a person should know of a single fit besides its status: where the log density is not finite, odd signs."""
        if not np.isfinite(fit.bound) or self.driver.stopped:
            return ()
        hyper = rows(self.reached.hyper, 0)
        problem, inside = self.batch.problem, fit.log_ratios[np.isfinite(fit.log_ratios)]
        try:
            beyond, failed = np.zeros((0, problem.dim)), self.reached.code[0] in _SUSPECT
            if len(inside) < len(fit.log_ratios):
                beyond = fit.posterior.transform(fit.check_draws[~np.isfinite(fit.log_ratios)])
            region = blame_region(problem, fit.posterior, hyper, beyond, fit.log_ratios, failed=bool(failed))
        except KeyboardInterrupt:
            region = ""  # what was reached counts for more
        sign = sign_remark(problem.space, self.points[0], fit.posterior.mean, np.sqrt(fit.posterior.variance()))
        own = "" if problem.model is None else problem.model.remark
        many = many_numbers(problem, self.settings.draws) if isinstance(self.alone, TermsAlone) else ""
        rounding, starts = rounding_remark(problem, fit), starts_remark(fit, self.settings.starts)
        jump = "" if region or rounding else jump_remark(fit, float(self.reached.shortfall[0]))
        tail = tail_remark(problem, fit)
        return tuple(remark for remark in (rounding, region, jump, tail, sign, starts, own, many) if remark)

    def _message(self, place: int) -> str:
        if place in self.messages:
            return self.messages[place]
        code = Code(int(self.reached.code[place]))
        own = self._blamed(place, code) if code in (*_SUSPECT, Code.MAX_EVALUATIONS) else None
        return " ".join(
            part for part in (own or code.status.message, self.notes.get(place), self.cut_short.get(place)) if part
        )

    def _blamed(self, place: int, code: Code) -> str | None:
        """What has led a fit astray, if it can be found out."""
        member, hyper = rows((self.reached.posterior, self.reached.hyper), place)
        flight = blame_flight(self.batch.problem, member, self.points[place])
        if flight is not None or self.driver.stopped or isinstance(self.alone, TermsAlone):
            return flight
        problem = self.batch.one(place)
        if code is Code.NOT_FINITE:
            n, draws = int(self.reached.n_draws[place]), self.settings.draws
            return blame_reached(problem, member, hyper, draws if n == draws.n else draws.grow(n))
        return blame_tails(problem, self.points[place], hyper)

    def fits(self) -> Fits:
        """All of them, as they stand."""
        reached, problem = self.reached, self.batch.problem
        return Fits(
            member=reached.posterior,
            space=problem.space,
            hyper=problem.describe_hyper(reached.hyper),
            bound=reached.bound,
            check_bound=reached.check_bound,
            check_error=reached.check_error,
            status=np.array([Code(code).status for code in reached.code.tolist()], object),
            message=tuple(self._message(place) for place in range(self.batch.n)),
            n_draws=reached.n_draws,
            n_evaluations=self.costs.gradients,
            n_objective_evaluations=self.costs.bounds,
            seconds=self.watch.seconds,
            rounds=_as_array(self.histories),
            settings=self.settings.describe()
            | problem.execution.describe()
            | {"up_to_constant": problem.target.up_to_constant},
            optima=self.optima,
            log_ratios=reached.log_ratios,
            origin=Origins(self.batch, reached.hyper, self.settings.draws),
        )


def _nothing(n: int) -> np.ndarray:
    """An array of empty arrays."""
    rows_ = np.empty(n, object)
    rows_[:] = [np.zeros(0)] * n
    return rows_


def _entries(index: np.ndarray, starts: Starts) -> Entries:
    return Entries(index, starts.posterior, starts.hyper, starts.worth, known=starts.known)


def _joined(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *trees)


def _as_array(histories: list[list[Round]]) -> np.ndarray:
    most = max((len(history) for history in histories), default=0)
    array = np.full((len(histories), most, len(Round._fields)), np.nan)
    for place, history in enumerate(histories):
        if history:
            array[place, : len(history)] = history
    return array
