"""Fits under way: what they were asked for, who does the work, and what comes out.

One fit is a batch of one. What lanes cannot do (a start that is not finite, a bound that will not rise) is done once more
alone: that driver knows other ways out, and says what is wrong in words.
"""

import numpy as np

from quenched.draws import check_draws_of
from quenched.execute import Expired, Here
from quenched.families import Bound, Member
from quenched.fitting.alone import Alone
from quenched.fitting.blame import blame_flight, blame_start, blame_tails, sign_remark
from quenched.fitting.drive import Driver, Entries
from quenched.fitting.lanes import Lanes
from quenched.fitting.newton import Mode, Search
from quenched.fitting.progress import Watcher
from quenched.fitting.promises import examine
from quenched.fitting.remarks import jump_remark, rounding_remark, starts_remark, tail_remark
from quenched.fitting.rounds import Rounds
from quenched.fitting.rows import repeated, rows, stacked
from quenched.fitting.settings import Settings
from quenched.fitting.standing import Standing
from quenched.fitting.terms import TermsAlone, many_numbers
from quenched.objective import Batch, Problem, worth
from quenched.projected import Collapsed, collapse
from quenched.results import Code, Fit, Fits
from quenched.targets import Hyper

FEW = 40  # problems, below which they are fitted one by one in less time than it takes to compile lanes
# Bytes at one point, beyond which a gradient takes longer than the call of its program: lanes gain nothing.
HEAVY = 2**19
# Gradients that LAPACK is called for at a time, below which its calls are the work, and lanes take minutes to compile.
_LAPACK_AT_A_TIME = 1_000
_TELLING = 0.8  # of the samples, below which weights of very many parameters tell little


def _is_light(problem: Problem) -> bool:
    """Whether lanes are worth the time that they take to compile."""
    if not isinstance(problem.execution, Here):
        return True
    return problem.work.bytes_of_a_point <= HEAVY and problem.work.points_together >= _LAPACK_AT_A_TIME


class Run:
    """Fits of a batch of problems, by lanes and alone."""

    def __init__(self, settings: Settings, batch: Batch, points: np.ndarray, watch: Watcher, *, polishes: bool = False):
        self.settings, self.batch, self.points, self.watch = settings, batch, points, watch
        self.slack = 0.0 if polishes else settings.tolerance  # nats: who polishes goes to the very top
        problem, family = batch.problem, settings.family
        self.standing = Standing(settings, batch, points)
        self.check_draws = check_draws_of(problem.dim, settings.seed)
        costs = self.standing.costs
        self.alone = (TermsAlone if family.bound is Bound.OF_TERMS else Alone)(batch, watch, costs)
        self.driver: Driver = self.alone
        if batch.n >= FEW and problem.programs is not None and settings.method.in_lanes and _is_light(problem):
            coupled = family.coupled_coordinates(problem.space.sizes)
            self.driver = Lanes(batch, watch, costs, coupled=coupled, first=settings.draws.n)

    @property
    def in_lanes(self) -> bool:
        """Whether problems go side by side."""
        return isinstance(self.driver, Lanes)

    def refuse(self, place: int, why: str) -> None:
        """A problem that cannot be fitted, and the reason."""
        self.standing.refuse(place, why)

    def _rounds(self) -> Rounds:
        """By whoever does the work now."""
        return Rounds(self.standing, self.driver, self.check_draws, slack=self.slack)

    def fit(self, given: Entries | None = None, *, final: bool = False) -> Fits:
        """Fit all problems but those that were refused. An interrupt keeps what they have reached.

        `given` are posteriors to begin from, if they are better than what a search finds; `final` ones, whatever they are.
        """
        reached = lambda: self.standing.reached
        index = np.setdiff1d(np.arange(self.batch.n), list(self.standing.messages))
        try:
            if isinstance(self.driver, Lanes):
                parts = self.driver.parts(index)
                own = lambda part: None if given is None else given.some(part)
                index = np.concatenate([index[:0], *(self._rounds().fit(part, own(part), final) for part in parts)])
                self.driver, given = self.alone, None
            for place in index.tolist():
                if self.driver.stopped and self.batch.n > 1:
                    break
                if given is None and not self._is_sound(place, first=place == index[0]):
                    continue
                self._rounds().fit(np.array([place]), None if given is None else given.some([place]), final)
        except Expired:
            self.standing.out_of_time()
        except KeyboardInterrupt:
            self.driver.interrupted = True
            if self.batch.data is None and not np.isfinite(reached().bound).any():
                raise  # nothing was reached
            self.standing.interrupted()
        if self.driver.interrupted:
            reached().code[reached().code == Code.MAX_SECONDS] = Code.INTERRUPTED
        return self.fits()

    def _is_sound(self, place: int, *, first: bool = True) -> bool:
        """Try a function on the host before it is fitted; what is wrong with the first of many is raised at once."""
        if self.batch.problem.programs is not None:
            return True
        try:
            self.standing.costs.add(place, examine(self.batch.one(place), self.points[place]))
        except ValueError as error:
            if first:
                raise
            self.refuse(place, str(error))
        return place not in self.standing.messages

    def mode(self, search: Search) -> tuple[Mode | None, str]:
        """The mode next to the start of the one problem there is, or why there is none."""
        index, hyper = np.zeros(1, int), repeated(self.batch.problem.hyper, 1)
        self._is_sound(0)
        at = self.alone.expand(index, self.points, hyper)
        if not at.sound[0]:
            return None, blame_start(self.batch.problem, self.points[0], float(at.value[0]), at.gradient[0])
        if not at.finite[0]:
            return None, "start: the second derivatives of the log density are not finite there; start elsewhere."
        return rows(self.alone.modes(index, at, hyper, search)[1], 0), ""

    def has_run_away(self, mode: Mode, posterior: Member) -> bool:
        """Whether the search of the one problem there is has gone far along what does not fall off, whatever it says of its end."""
        problem, start = self.batch.problem, self.points[0]
        far = blame_flight(problem, posterior, start) is not None
        return far and blame_tails(problem, start, mode.point, mode.hyper) is not None

    def judge(self, posterior: Member, hyper: Hyper, code: Code = Code.GIVEN, note: str = "") -> Fits:
        """Posteriors as they are, in rows: their bounds at the best precisions, and the check."""
        standing, draws, index = self.standing, self.settings.draws, np.arange(self.batch.n)
        if isinstance(self.alone, TermsAlone):
            judged = self.alone.judge(Entries(index, posterior, hyper, standing.reached.bound), draws)
            hyper, bound = judged.hyper, judged.bound
        else:
            found = []
            for place in index.tolist():
                own, given = rows((posterior, hyper), place)
                found.append(worth(self.batch.one(place), own, given, draws, profile=True))
            hyper, bound = stacked([best for _, best in found]), np.array([bound for bound, _ in found])
            standing.costs.add(index, draws.n)
        standing.costs.add(index, 0, 1)
        standing.keep(index, posterior, hyper, bound, code, draws=draws)
        self._rounds().check(index)
        standing.notes.update({int(place): note for place in index if note})
        return self.fits()

    def collapsed(self, fit: Fit) -> Collapsed | None:
        """Of a sum of terms with more parameters than weights can tell apart, what is left when groups are integrated over."""
        affine = isinstance(self.alone, TermsAlone) and fit.posterior.member.affine
        if not (affine and fit.converged) or self.driver.stopped:
            return None
        if fit.weights.share > _TELLING or not np.isfinite(fit.log_ratios).all():
            return None
        self.watch.say("what is left when groups are integrated over")
        hyper = rows(self.standing.reached.hyper, 0)
        try:
            return collapse(self.batch.problem, fit.posterior.member, hyper, fit.settings["seed"])
        except KeyboardInterrupt:
            return None  # what was reached counts for more

    def remarks(self, fit: Fit) -> tuple[str, ...]:
        """What a person should know of a single fit besides its status: what rounding hides, values that jump, odd signs."""
        if not np.isfinite(fit.bound) or self.driver.stopped:
            return ()
        problem = self.batch.problem
        sign = sign_remark(problem.space, self.points[0], fit.posterior.mean, np.sqrt(fit.posterior.variance()))
        own = "" if problem.model is None else problem.model.remark
        many = many_numbers(problem, self.settings.draws) if isinstance(self.alone, TermsAlone) else ""
        few = "" if fit.collapsed is None else fit.collapsed.remark
        rounding, starts = rounding_remark(problem, fit), starts_remark(fit, self.settings.starts)
        jump = "" if rounding else jump_remark(fit, float(self.standing.reached.shortfall[0]))
        if jump and fit.all_remarks:  # where it is not finite is reason enough
            jump = ""
        said = (rounding, jump, tail_remark(problem, fit), sign, starts, own, many, few)
        return tuple(remark for remark in said if remark)

    def fits(self) -> Fits:
        """All of them, as they stand."""
        return self.standing.fits(self.watch.seconds, search=not self.driver.stopped)
