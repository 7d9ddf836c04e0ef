"""What fits have reached, in rows, and what is to be said of each: the result as it grows."""

from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.draws import Draws, TermDraws
from quenched.families import Member
from quenched.fitting.blame import blame_flight, blame_reached, blame_tails
from quenched.fitting.drive import Costs, Entries
from quenched.fitting.rows import put, repeated, rows
from quenched.fitting.settings import Settings
from quenched.objective import Batch
from quenched.results import Code, Fits, Optimum, Origins, Round
from quenched.targets import Hyper

SUSPECT = (Code.NO_ASCENT, Code.NOT_FINITE)
_NOWHERE = 1e-3  # standard deviation of the posterior of a fit that could not begin


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


class Standing:
    """Where the fits of a batch stand: posteriors with their draws and checks, their histories, and words."""

    def __init__(self, settings: Settings, batch: Batch, points: np.ndarray):
        self.settings, self.batch, self.points = settings, batch, points
        problem, n = batch.problem, batch.n
        self.costs = Costs(n)
        nowhere = settings.family.isotropic(points.copy(), np.full(points.shape, _NOWHERE), problem.space.sizes)
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
        self.histories: list[list[Round]] = [[] for _ in range(n)]
        self.messages: dict[int, str] = {}  # instead of the status's own
        self.notes: dict[int, str] = {}  # besides it
        self.cut_short: dict[int, str] = {}  # of searches that were not finished
        self.optima: dict[int, tuple[Optimum, ...]] = {}

    def refuse(self, place: int, why: str) -> None:
        """A problem that cannot be fitted, and the reason."""
        self.reached.code[place] = Code.NOT_FINITE
        self.messages[place] = why

    def keep(self, index: np.ndarray, posterior: Member, hyper: Hyper, bound: Any, code: Any, *, draws: Draws) -> None:
        """What was reached, as a member of the family that was asked for; not checked yet."""
        reached = self.reached
        put((reached.posterior, reached.hyper), index, (self.settings.family.lift(posterior), hyper))
        reached.bound[index], reached.code[index], reached.n_draws[index] = bound, code, draws.n
        reached.check_bound[index] = reached.check_error[index] = reached.shortfall[index] = np.nan
        reached.log_ratios[index] = _nothing(len(index))
        for place in index.tolist():
            self.notes.pop(place, None)

    def enter(self, index: np.ndarray) -> None:
        """The end of a round of some, into their histories."""
        for place in index.tolist():
            self.histories[place].append(self.reached.round(place, self.costs.gradients[place]))

    def return_to(self, earlier: Reached, index: np.ndarray) -> None:
        """Stand again where some fits have stood before, on the draws of that time."""
        put(self.reached, index, rows(earlier, index))
        self.enter(index)

    def out_of_time(self) -> None:
        """Time was up in the middle of something: what is not known by now stays unknown."""
        reached = self.reached
        unchecked = np.isfinite(reached.bound) & np.isnan(reached.check_bound) & (reached.code == Code.CONVERGED)
        reached.code[unchecked] = Code.MAX_SECONDS
        for place in np.flatnonzero(~np.isfinite(reached.bound) & (reached.code == Code.MAX_SECONDS)).tolist():
            self.notes[place] = "The bound was not known anywhere by then: allow more time, or give fewer draws."

    def interrupted(self) -> None:
        """Someone had enough in the middle of something."""
        unchecked = np.isfinite(self.reached.bound) & np.isnan(self.reached.check_bound)
        self.reached.code[unchecked] = Code.INTERRUPTED

    def fits(self, seconds: float, *, search: bool) -> Fits:
        """All of them, as they stand; with `search`, what led some of them astray is looked for."""
        reached, problem = self.reached, self.batch.problem
        return Fits(
            member=reached.posterior,
            space=problem.space,
            hyper=problem.describe_hyper(reached.hyper),
            bound=reached.bound,
            check_bound=reached.check_bound,
            check_error=reached.check_error,
            status=np.array([Code(code).status for code in reached.code.tolist()], object),
            message=tuple(self._message(place, search=search) for place in range(self.batch.n)),
            n_draws=reached.n_draws,
            n_evaluations=self.costs.gradients,
            n_objective_evaluations=self.costs.bounds,
            seconds=seconds,
            rounds=_as_array(self.histories),
            settings=self.settings.describe()
            | problem.execution.describe()
            | {"up_to_constant": problem.target.up_to_constant},
            optima=self.optima,
            log_ratios=reached.log_ratios,
            origin=Origins(self.batch, reached.hyper, self.settings.draws),
        )

    def _message(self, place: int, *, search: bool) -> str:
        if place in self.messages:
            return self.messages[place]
        code = Code(int(self.reached.code[place]))
        own = self._blamed(place, code, search) if code in (*SUSPECT, Code.MAX_EVALUATIONS, Code.NO_MAXIMUM) else None
        return " ".join(
            part for part in (own or code.status.message, self.notes.get(place), self.cut_short.get(place)) if part
        )

    def _blamed(self, place: int, code: Code, search: bool) -> str | None:
        """What has led a fit astray, if it can be found out."""
        member, hyper = rows((self.reached.posterior, self.reached.hyper), place)
        flight = blame_flight(self.batch.problem, member, self.points[place])
        if flight is not None or not search:
            return flight
        problem = self.batch.one(place)
        where = None
        n, draws = int(self.reached.n_draws[place]), self.settings.draws
        if code is Code.NOT_FINITE and not isinstance(draws, TermDraws):
            where = blame_reached(problem, member, hyper, draws if n == draws.n else draws.grow(n))
        return where or blame_tails(problem, self.points[place], np.asarray(member.mean), hyper)


def _nothing(n: int) -> np.ndarray:
    """An array of empty arrays."""
    rows_ = np.empty(n, object)
    rows_[:] = [np.zeros(0)] * n
    return rows_


def _as_array(histories: list[list[Round]]) -> np.ndarray:
    most = max((len(history) for history in histories), default=0)
    array = np.full((len(histories), most, len(Round._fields)), np.nan)
    for place, history in enumerate(histories):
        if history:
            array[place, : len(history)] = history
    return array
