"""Many fits under way: start, ascend, check, and grow the draws of those that need more, round by round.

What cannot be done in lanes (a start that is not finite, a bound that will not rise) is left to `Run`, one problem at a
time: it knows more ways out, and says what is wrong in words.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from quenched.draws import Draws
from quenched.fitting.growth import CHECK_BATCH, NOWHERE, Run
from quenched.fitting.many.ascents import OUTCOMES, Limits, Plan, ascents
from quenched.fitting.many.bound import Chunks, cut_up
from quenched.fitting.many.checks import check_many
from quenched.fitting.many.rows import put, repeated, rows
from quenched.fitting.many.scene import Scene
from quenched.fitting.many.start import Starters
from quenched.fitting.method import Joint
from quenched.fitting.monitor import clear, too_few
from quenched.objective import Coordinates
from quenched.outcome import Optimum, Round, Status
from quenched.result import Fit, Origin
from quenched.results import Fits
from quenched.targets import Hyper

_LOST = (Status.NO_ASCENT, Status.NOT_FINITE)


class Rounds:
    """Many fits: what each has reached."""

    def __init__(self, scene: Scene, make_run: Callable[[], Run], draws: Draws, faults: dict[int, str]):
        self.scene, self.make_run, self.first = scene, make_run, draws
        self.template = make_run()
        n = scene.n
        self.posterior: Any = scene.isotropic(np.arange(n), NOWHERE)
        self.hyper: Hyper = repeated(scene.problem.hyper, n)
        self.bound = np.full(n, -np.inf)
        self.status = np.array([Status.MAX_SECONDS] * n, object)  # until they have been seen to
        self.n_draws = np.full(n, draws.n)
        self.n_evaluations, self.n_objective_evaluations = np.zeros(n, int), np.zeros(n, int)
        self.rounds: list[list[Round]] = [[] for _ in range(n)]
        self.one_by_one: dict[int, Fit] = {}
        self.faults = faults
        for index in faults:
            self.status[index] = Status.NOT_FINITE

    def go(self) -> Fits:
        """Fit all; a keyboard interrupt keeps the rounds that have ended."""
        left = np.setdiff1d(np.arange(self.scene.n), list(self.faults))
        try:
            apart = self.scene.problem.programs is None or self.scene.family.base is not self.scene.family
            lost = left if apart else self._together(left)
            self._apart(lost)
        except KeyboardInterrupt:
            self.scene.interrupted = True
        if self.scene.interrupted:
            self.status[self.status == Status.MAX_SECONDS] = Status.INTERRUPTED
        return self._fits()

    def _together(self, index: np.ndarray) -> np.ndarray:
        """Fit these in lanes; answers with those that must be tried one by one."""
        if not len(index):
            return index
        starts = Starters(self.scene, self.first).begin(index)
        self.n_evaluations += starts.n_evaluations
        found = np.isfinite(starts.worth)
        going, lost = index[found[index]], [index[~found[index]]]
        put((self.posterior, self.hyper), going, rows((starts.posterior, starts.hyper), going))
        self.bound[going] = starts.worth[going]
        draws = self.first
        while len(going) and not self.scene.stopped:
            ended = self._round(
                going, draws, cut_up(draws, self.first.n, self.scene.points_at_a_time), starts.factor, starts.factored
            )
            lost.append(ended[np.isin(self.status[ended], _LOST)])
            going = ended[self._must_grow(ended, draws)]
            self.status[going] = Status.MAX_SECONDS  # unless the next round comes to its end
            draws = draws.grow(2 * draws.n) if len(going) else draws
        return np.concatenate(lost)

    def _round(self, going: np.ndarray, draws: Draws, chunks: Chunks, factor, factored: np.ndarray) -> np.ndarray:
        """Raise the bounds on one set of draws and check them; answers with those that ended."""
        ended = []
        for whitened in (True, False):  # by a factor of the target's covariance, or by the posterior alone
            index = going[factored[going] == whitened]
            if len(index):
                ended.append(self._ascend(index, draws, chunks, factor[index] if whitened else None))
        self._check(np.concatenate([begun for begun, _ in ended]), draws)
        return np.concatenate([done for _, done in ended])

    def _ascend(self, index: np.ndarray, draws: Draws, chunks: Chunks, factor) -> tuple[np.ndarray, np.ndarray]:
        scene, method = self.scene, self.template.method
        assert isinstance(method, Joint)
        evaluate, form = scene.programs.inside.evaluate, scene.problem.form
        posterior, hyper = rows((self.posterior, self.hyper), index)
        coordinates = Coordinates(posterior, hyper.free, factor)
        every = np.ones(rows(coordinates, 0).size, bool)
        limits = Limits(method.gradient_tolerance, method.max_evaluations, method.whiten_every, every, short=False)
        work = ascents(Plan(evaluate, form, method.minimiser), limits, chunks, scene.problem.noise)
        inputs = (coordinates, hyper, np.full(len(index), -np.inf))
        done = scene.drive(work, index, inputs, f"{draws.n} draws")
        if done.reports is None:
            return index[:0], index[:0]
        begun, ended, found = index[done.begun], index[done.ended], rows(done.reports, done.begun)
        put((self.posterior, self.hyper, self.bound), begun, (found.posterior, found.hyper, found.bound))
        self.n_draws[begun] = draws.n
        self.n_evaluations[begun] += draws.n * found.count
        self.n_objective_evaluations[begun] += found.count
        self.status[ended] = [OUTCOMES[code] for code in done.reports.outcome[done.ended]]
        return begun, ended

    def _check(self, index: np.ndarray, draws: Draws) -> None:
        """End a round: check the bounds, with as many check draws as it takes to judge each."""
        template, usual, grows = self.template, 5 * draws.n, self._may_grow(draws)

        def decided(places, check_bound, error, n):
            enough = n >= usual and not grows
            return clear(self.bound[index[places]] - check_bound, error, template.tolerance) | enough

        n, judge = 4 * usual if grows else usual, decided
        if template.n_check is not None:
            n, judge = template.n_check, lambda places, *seen: np.zeros(len(places), bool)
        members = rows((self.posterior, self.hyper), index)
        seen = check_many(self.scene, index, *members, n=n, batch=min(draws.n, CHECK_BATCH), decided=judge)
        for place, bound, error in zip(index, seen.bound, seen.error, strict=True):
            work = int(self.n_evaluations[place])
            self.rounds[place].append(Round(draws.n, float(self.bound[place]), float(bound), float(error), work))

    def _may_grow(self, draws: Draws) -> bool:
        return 2 * draws.n <= self.template.max_draws

    def _must_grow(self, index: np.ndarray, draws: Draws) -> np.ndarray:
        last = [self.rounds[place][-1] for place in index]
        gap = np.array([entry.bound - entry.check_bound for entry in last])
        error = np.array([entry.check_error for entry in last])
        doubt = too_few(gap, error, self.template.tolerance)
        return (self.status[index] == Status.CONVERGED) & doubt & self._may_grow(draws)

    def _apart(self, index: np.ndarray) -> None:
        """Fit these one by one."""
        for count, place in enumerate(index.tolist()):
            if self.scene.stopped:
                self.status[index[count:]] = Status.MAX_SECONDS
                return
            data = jax.tree.map(lambda leaf: leaf[place], self.scene.data)  # noqa: B023
            problem = dataclasses.replace(self.scene.problem, data=data)
            fit = self.make_run().go(
                problem, problem.space, self.scene.points[place], self.first, None, self.scene.watch
            )
            self.scene.interrupted = fit.status is Status.INTERRUPTED
            self.one_by_one[place] = fit

    def _fits(self) -> Fits:
        hyper = _described(self.scene, self.hyper)
        messages = [self.faults.get(i) or status.message for i, status in enumerate(self.status)]
        optima: dict[int, tuple[Optimum, ...]] = {}
        checks = np.array(
            [self.rounds[i][-1][2:4] if self.rounds[i] else (np.nan, np.nan) for i in range(self.scene.n)]
        )
        for place, fit in self.one_by_one.items():
            values = (fit.posterior.member, fit.bound, fit.n_draws, fit.n_evaluations, fit.n_objective_evaluations)
            own = (self.posterior, self.bound, self.n_draws, self.n_evaluations, self.n_objective_evaluations)
            assert fit.origin is not None
            put((own, self.hyper, hyper), np.asarray(place), (values, fit.origin.hyper, fit.hyper))
            self.status[place], self.rounds[place], messages[place] = fit.status, list(fit.history), fit.message
            checks[place] = fit.check_bound, fit.check_error
            if fit.optima:
                optima[place] = fit.optima
        return Fits(
            member=self.posterior,
            space=self.scene.problem.space,
            hyper=hyper,
            bound=self.bound,
            check_bound=checks[:, 0],
            check_error=checks[:, 1],
            status=self.status,
            message=tuple(messages),
            n_draws=self.n_draws,
            n_evaluations=self.n_evaluations,
            n_objective_evaluations=self.n_objective_evaluations,
            seconds=self.scene.watch.seconds,
            rounds=_as_array(self.rounds),
            settings=self.template.settings(),
            optima=optima,
            origin=Origin(dataclasses.replace(self.scene.problem, data=self.scene.data), self.hyper, self.first),
        )


def _described(scene: Scene, hyper: Hyper) -> Any:
    """Hyperparameters as the user wrote them, in rows."""
    precisions = {name: np.array(getattr(hyper, name)) for name in scene.problem.target.reports}
    if scene.problem.unravel_hyper is None:
        return precisions or None
    own = jax.tree.map(np.array, jax.vmap(scene.problem.unravel_hyper)(hyper.free))
    return {**precisions, "hyper": own} if precisions else own


def _as_array(histories: list[list[Round]]) -> np.ndarray:
    most = max((len(history) for history in histories), default=0)
    array = np.full((len(histories), most, len(Round._fields)), np.nan)
    for place, history in enumerate(histories):
        if history:
            array[place, : len(history)] = history
    return array
