"""One fit under way: start, ascend, check, and grow the draws until they suffice."""

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenched.draws import Draws
from quenched.families import Family, Member
from quenched.fitting.ascent import Ascent, Interrupted
from quenched.fitting.blame import blame_flight
from quenched.fitting.method import Method
from quenched.fitting.monitor import check, clear, too_few, until_level
from quenched.fitting.optima import around, distinct
from quenched.fitting.start import CannotStart, Start, Starter
from quenched.objective import Objective
from quenched.outcome import History, Optimum, Round, Status
from quenched.posterior import Posterior
from quenched.problem import Problem
from quenched.result import Fit, Origin
from quenched.storage import save
from quenched.targets import Hyper, Target
from quenched.transforms import Space

_SUSPECT = (Status.NO_ASCENT, Status.NOT_FINITE)
_STARTS_WHEN_SUSPECT = 4
CHECK_BATCH = 256  # check draws at a time
NOWHERE = 1e-3  # standard deviation of the posterior of a fit that could not begin
_LEVEL = 0.05  # of the tolerance: the rise of the bound that is not waited for


class Run:
    """One fit under way: what it was asked for and what it has reached."""

    tolerance: float
    max_draws: int
    n_check: int | None

    def __init__(self, *, target, family, method, seed, starts, checkpoint):
        self.target: Target = target
        self.family: Family = family
        self.method: Method = method
        self.seed: int = seed
        self.starts: int = starts
        self.checkpoint: str | Path | None = checkpoint
        self.rounds: list[Round] = []
        self.n_evaluations = 0
        self.n_objective_evaluations = 0
        self.optima: tuple[Optimum, ...] = ()
        self.gaussian: Ascent | None = None  # where a fit of another family began

    def go(self, problem: Problem, space: Space, point: np.ndarray, draws: Draws, resumed: Fit | None, watch) -> Fit:
        self.problem, self.space, self.point, self.draws, self.watch = problem, space, point, draws, watch
        objective = Objective(problem, draws)
        try:
            start = self._start(objective, point, resumed)
        except CannotStart as error:
            broken = self.family.isotropic(point, np.full(problem.dim, NOWHERE), space.sizes)
            return self._result(broken, problem.hyper, -np.inf, error.status, str(error))
        ascent = self._ascend(objective, start)
        if ascent.status in _SUSPECT and self.starts == 1 and resumed is None:
            # One start led nowhere: let others try before saying so.
            self.starts = _STARTS_WHEN_SUSPECT
            other = self._ascend(objective, self._start(objective, point, None))
            ascent = other if other.status is Status.CONVERGED or other.bound > ascent.bound else ascent
        ascent = self._lift(objective, ascent)
        while ascent.status is Status.CONVERGED and self._too_few() and self.may_grow:
            self.draws = self.draws.grow(self._more_draws(ascent))
            objective = Objective(problem, self.draws)
            warm = Start(ascent.posterior, ascent.hyper, ascent.bound, precision=start.precision)
            ascent = self._ascend(objective, self._better_start(objective, warm))
        return self._of(self._better_of(ascent))

    def _more_draws(self, ascent: Ascent) -> int:
        """Twice as many, or up to eight times for a posterior that is free to follow its draws, by how far it does."""
        last, factor = self.rounds[-1], 2
        while not ascent.posterior.affine and factor < 8 and last.bound - last.check_bound > factor * self.tolerance:
            factor *= 2
        return min(factor * self.draws.n, 2 ** int(np.log2(self.max_draws / self.draws.n)) * self.draws.n)

    def _better_start(self, objective: Objective, start: Start) -> Start:
        """Where to go on with more draws: from the Gaussian again, if the warped posterior followed the fewer ones."""
        if self.gaussian is None:
            return start
        again = Start(self.family.lift(self.gaussian.posterior), self.gaussian.hyper, self.gaussian.bound)
        bounds = [objective.bound(one.posterior, one.hyper, profile=True)[0] for one in (start, again)]
        self.n_evaluations += objective.n_evaluations
        self.n_objective_evaluations += 2
        return again if bounds[1] > bounds[0] or np.isnan(bounds[0]) else start

    def _lift(self, objective: Objective, ascent: Ascent) -> Ascent:
        """Go on in the family that was asked for, from the Gaussian in which it begins."""
        lifted = self.family.lift(ascent.posterior)
        if lifted is ascent.posterior or ascent.status is not Status.CONVERGED:
            return ascent
        self.gaussian, self.gaussian_round = ascent, self.rounds[-1]
        return self._ascend(objective, Start(lifted, ascent.hyper, ascent.bound))

    def _better_of(self, ascent: Ascent) -> Ascent:
        """What is better on fresh draws: the end of the fit, or the Gaussian in which it began."""
        if self.gaussian is None:
            return ascent
        last, first = self.rounds[-1], self.gaussian_round
        if last.check_bound > first.check_bound - self.tolerance:
            return ascent
        self.rounds.append(first)
        note = "The warped posterior followed its draws, so this is the Gaussian in which it began."
        return self.gaussian._replace(posterior=self.family.lift(self.gaussian.posterior), note=note)

    def _start(self, objective: Objective, point: np.ndarray, resumed: Fit | None) -> Start:
        if resumed is not None and resumed.converged:
            return self._resume(resumed)
        self.watch.say("looking for a start")
        starter = Starter(self.problem, self.family.base, objective, self.seed, lambda: self.watch.expired)
        if resumed is not None:
            # A fit that was cut short may have been cut short far from home: what it reached must beat a fresh start.
            given, fresh = starter.judged(*self._resume(resumed)[:2]), self.method.begin(starter, point)
            self.n_evaluations += starter.n_evaluations
            return max(given, fresh, key=lambda start: start.bound)
        starts = []
        for index, place in enumerate(around(point, self.starts, self.seed)):
            try:
                starts.append(self.method.begin(starter, place))
            except CannotStart:
                if index == 0:  # the one that was asked for
                    raise
        self.n_evaluations += starter.n_evaluations
        if self.starts > 1:
            return self._best_of(objective, starts)
        return starts[0]

    def _best_of(self, objective: Objective, starts: list[Start]) -> Start:
        """Run every start to its optimum and tell the distinct ones apart."""
        quiet = lambda posterior, hyper, bound: None
        best, self.optima = distinct(self.method.run(objective, start, self.watch, quiet) for start in starts)
        return Start(best.posterior, best.hyper, best.bound)

    def _resume(self, resumed: Fit) -> Start:
        member: Any = resumed.posterior.member
        sizes = self.space.sizes
        fresh = self.family.isotropic(np.zeros(self.problem.dim), np.ones(self.problem.dim), sizes)
        if jax.tree.structure(fresh) != jax.tree.structure(member):
            member = self.family.member(resumed.posterior.mean, np.linalg.inv(resumed.covariance), sizes)
        hyper = self.problem.hyper
        # What is fixed stays as it was asked for now; what is learned goes on from where it was.
        known = resumed.hyper if isinstance(resumed.hyper, dict) else {}
        learned = {name: np.asarray(known[name]) for name in self.problem.form.learned if name in known}
        return Start(member, hyper._replace(**learned), resumed.bound)

    def _ascend(self, objective: Objective, start: Start) -> Ascent:
        """Raise the bound on one set of draws; a keyboard interrupt keeps what was reached."""
        reached = start
        before = objective.n_evaluations

        def record(posterior: Member, hyper: Hyper, bound: float) -> None:
            nonlocal reached
            reached = Start(posterior, hyper, bound)
            self._record(posterior, hyper, bound, self.n_evaluations + objective.n_evaluations - before)

        # Of a warped posterior the last thousandths of a nat take most of the evaluations, and change nothing.
        watch = self.watch if self.family.base is self.family else until_level(self.watch, _LEVEL * self.tolerance)
        try:
            ascent = self.method.run(objective, start, watch, record)
        except Interrupted as stop:
            ascent = stop.reached
        except KeyboardInterrupt:
            ascent = Ascent(reached.posterior, reached.hyper, reached.bound, Status.INTERRUPTED, np.inf, 0)
        self.n_evaluations += objective.n_evaluations - before
        self.n_objective_evaluations += ascent.n_objective_evaluations
        self._record(ascent.posterior, ascent.hyper, ascent.bound, self.n_evaluations)
        if self.checkpoint is not None:
            save(self._of(ascent), self.checkpoint)
        return ascent

    def _record(self, posterior: Member, hyper: Hyper, bound: float, n_evaluations: int) -> None:
        """End a round: check the bound, with as many check draws as it takes to judge it."""
        usual = 5 * self.draws.n

        def decided(check_bound: float, error: float, n: int) -> bool:
            return clear(bound - check_bound, error, self.tolerance) or (n >= usual and not self.may_grow)

        n, judge = 4 * usual if self.may_grow else usual, decided
        if self.n_check is not None:
            n, judge = self.n_check, lambda *seen: False
        seen = check(self.problem, posterior, hyper, n, self.seed, min(self.draws.n, CHECK_BATCH), judge)
        self.rounds.append(Round(self.draws.n, bound, seen.bound, seen.error, n_evaluations))

    @property
    def may_grow(self) -> bool:
        return 2 * self.draws.n <= self.max_draws

    def _too_few(self) -> bool:
        last = self.rounds[-1]
        return too_few(last.bound - last.check_bound, last.check_error, self.tolerance)

    def _of(self, ascent: Ascent) -> Fit:
        flight = None
        if ascent.status in (*_SUSPECT, Status.MAX_EVALUATIONS):
            flight = blame_flight(self.problem, ascent.posterior, self.point)
        message = " ".join(part for part in (flight or ascent.status.message, ascent.note) if part)
        return self._result(ascent.posterior, ascent.hyper, ascent.bound, ascent.status, message)

    def _result(self, posterior: Member, hyper: Hyper, bound: float, status: Status, message: str) -> Fit:
        last = self.rounds[-1] if self.rounds else Round(self.draws.n, bound, np.nan, np.nan, 0)
        return Fit(
            posterior=Posterior(jax.tree.map(np.asarray, posterior)),
            space=self.space,
            hyper=self.problem.describe_hyper(hyper),
            bound=float(bound),
            check_bound=last.check_bound,
            check_error=last.check_error,
            status=status,
            message=message,
            n_draws=self.draws.n,
            n_evaluations=self.n_evaluations,
            n_objective_evaluations=self.n_objective_evaluations,
            seconds=self.watch.seconds,
            history=History(self.rounds),
            optima=self.optima,
            settings=self.settings(),
            origin=Origin(self.problem, jax.tree.map(np.asarray, hyper), self.draws),
        )

    def settings(self) -> dict[str, Any]:
        """What the result remembers of how it was made."""
        return {
            "draws": self.draws.kind,
            "draws_seed": self.draws.seed,
            "groups": None if self.draws.groups is None else [list(group) for group in self.draws.groups],
            "seed": self.seed,
            "family": self.family.name,
            "method": type(self.method).__name__,
            "tolerance": self.tolerance,
            "versions": {
                "quenched": version("quenched"),
                "python": platform.python_version(),
                "jax": jax.__version__,
                "numpy": np.__version__,
            },
        }
