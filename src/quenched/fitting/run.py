"""`fit`: from a log density to the best Gaussian posterior, with draws grown until they suffice."""

import platform
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenched.draws import Draws
from quenched.families import Family, Gaussian
from quenched.fitting import options
from quenched.fitting.ascent import Ascent, Interrupted
from quenched.fitting.method import Joint, Method
from quenched.fitting.monitor import check
from quenched.fitting.progress import Watcher
from quenched.fitting.start import CannotStart, Start, Starter
from quenched.fitting.threads import quiet_blas
from quenched.objective import Objective
from quenched.problem import Problem, make_problem
from quenched.result import Fit, FitError, History, Optimum, Posterior, Round, Status
from quenched.storage import save
from quenched.targets import Hyper, Target
from quenched.transforms import Space, describe_space

_FEWEST_DRAWS = 64
_SUSPECT = (Status.NO_ASCENT, Status.NOT_FINITE)
_STARTS_WHEN_SUSPECT = 4
_SAME_OPTIMUM = 0.5  # posterior standard deviations, root mean square over coordinates


def fit(
    log_density: Callable[..., Any] | Target,
    start: Any,
    *,
    data: Any = None,
    family: str | Family = "full",
    draws: int | Draws | None = None,
    transforms: Any = None,
    hyper: Any = None,
    method: Method = Joint(),
    seed: int = 0,
    max_draws: int | None = None,
    tolerance: float | None = None,
    starts: int = 1,
    check: int | None = None,
    memory: int | None = None,
    checkpoint: str | Path | None = None,
    max_seconds: float | None = None,
    throw: bool = True,
    progress: bool = True,
    **unknown: Any,
) -> Fit:
    """Fit the best Gaussian posterior to a log density.

    Parameters
    ----------
    log_density
        log_density(parameters[, data][, hyper]) -> number, in JAX and in natural units, up to a constant; or a target
        (`regression`, `with_gaussian_prior`, `from_value_and_grad`).
    start
        Array or pytree of floats in natural units; or an earlier `Fit` (also a loaded one), to resume from its
        posterior.
    data
        Any pytree of arrays, handed to the log density. New data of the same shapes never cause a new trace.
    family
        "full", "diagonal", or `Blocks(...)`.
    draws
        None grows matched draws until the gap is below `tolerance`. A number or a `Draws` object fixes them.
    transforms
        Constraint of each parameter: a pytree like `start` (missing keys are real) or one for all.
    hyper
        Hyperparameters raised by gradient together with the posterior.
    method
        `Joint()` or `Alternating()`.
    seed
        Of the draws.
    max_draws
        Where growth ends; 16 per coupled coordinate and at least 2048 by default.
    tolerance
        Nats of gap that are accepted; 0.01 per coordinate, and at least 0.02, by default.
    starts
        Starting points: the given one and others around it, each with its own optimum; the best bound is kept. A
        single start that leads nowhere is followed by others unasked.
    check
        Number of check draws; by default about five times the draws: fewer when the verdict is clear before, more
        when it is not and the draws would have to grow.
    memory
        Bytes that the fit may use besides the data; the draws are evaluated in chunks that fit.
    checkpoint
        File that holds the result so far, written after each round.
    max_seconds
        Time after which the fit stops at the next evaluation.
    throw
        Raise `FitError` (with the partial result) when the numbers go wrong; otherwise `status` says so.
    progress
        Show a line on the terminal.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError
        For misuse, before anything is computed.
    FitError
        When the log density is not finite where it must be, or no ascent is possible.
    """
    known = [name for name in fit.__annotations__ if name not in ("unknown", "return")]
    options.refuse_unknown(unknown, known)
    target = options.read_target(log_density)
    run = _Run(
        target=target,
        family=options.read_family(family),
        method=options.read_method(method),
        seed=options.whole_number("seed", seed, 0),
        starts=options.whole_number("starts", starts, 1),
        checkpoint=checkpoint,
    )
    memory = None if memory is None else options.whole_number("memory", memory, 1)
    max_seconds = None if max_seconds is None else options.positive_number("max_seconds", max_seconds)
    options.check_data(target.data if data is None else data)
    options.check_hyper(hyper)
    if target.on_host and hyper is not None:
        raise ValueError("hyper: a host function gives no gradient for hyperparameters; write it in JAX.")
    with jax.enable_x64(True), quiet_blas(target.on_host), Watcher(progress, max_seconds) as watch:
        resumed = start if isinstance(start, Fit) else None
        if resumed is None:
            space, point = describe_space(start, transforms)
        else:
            space, point = resumed.space, resumed.posterior.mean
            hyper = _own_hyper(resumed, target) if hyper is None else hyper
        coupled = run.family.coupled_coordinates(space.sizes)
        default = max(_FEWEST_DRAWS, 4 * coupled)
        if resumed is not None:
            default = max(2 * coupled, resumed.n_draws + resumed.n_draws % 2)
        form = target.make_form(space.dim)
        first = options.read_draws(draws, run.family, form, space.sizes, run.seed, default)
        left = None if memory is None else memory - _working_bytes(first.n, space.dim, coupled)
        problem = make_problem(target, space, data, hyper, left)
        if options.unseen_directions(first, run.family, space.sizes):
            warnings.warn(
                f"draws: {first.n} draws do not span the {coupled} coupled coordinates; the posterior stays at the "
                "prior in the directions that no draw sees.",
                stacklevel=2,
            )
        run.tolerance = (
            max(0.02, 0.01 * space.dim) if tolerance is None else options.positive_number("tolerance", tolerance)
        )
        limit = max(2048, 16 * coupled) if max_draws is None else options.whole_number("max_draws", max_draws, 2)
        run.max_draws = first.n if draws is not None else limit
        while (
            memory is not None
            and _working_bytes(run.max_draws, space.dim, coupled) > memory / 2 > 0
            and run.max_draws > first.n
        ):
            run.max_draws //= 2
        run.n_check = None if check is None else options.whole_number("check", check, 2)
        result = run.go(problem, space, point, first, resumed, watch)
    if throw and result.status in (Status.NOT_FINITE, Status.NO_ASCENT):
        raise FitError(result.message, result)
    return result


class _Run:
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

    def go(self, problem: Problem, space: Space, point: np.ndarray, draws: Draws, resumed: Fit | None, watch) -> Fit:
        self.problem, self.space, self.draws, self.watch = problem, space, draws, watch
        objective = Objective(problem, draws)
        try:
            start = self._start(objective, point, resumed)
        except CannotStart as error:
            broken = self.family.isotropic(point, np.full(problem.dim, 1e-3), space.sizes)
            return self._result(broken, problem.hyper, -np.inf, error.status, str(error))
        ascent = self._ascend(objective, start)
        if ascent.status in _SUSPECT and self.starts == 1 and resumed is None:
            # One start led nowhere: let others try before saying so.
            self.starts = _STARTS_WHEN_SUSPECT
            other = self._ascend(objective, self._start(objective, point, None))
            ascent = other if other.status is Status.CONVERGED or other.bound > ascent.bound else ascent
        while ascent.status is Status.CONVERGED and self._too_few() and self.may_grow:
            self.draws = self.draws.grow(2 * self.draws.n)
            ascent = self._ascend(
                Objective(problem, self.draws),
                Start(ascent.posterior, ascent.hyper, ascent.bound, precision=start.precision),
            )
        return self._of(ascent)

    def _start(self, objective: Objective, point: np.ndarray, resumed: Fit | None) -> Start:
        if resumed is not None and resumed.converged:
            return self._resume(resumed)
        self.watch.say("looking for a start")
        starter = Starter(self.problem, self.family, objective, self.seed, lambda: self.watch.expired)
        if resumed is not None:
            # A fit that was cut short may have been cut short far from home: what it reached must beat a fresh start.
            given, fresh = starter.judged(*self._resume(resumed)[:2]), self.method.begin(starter, point)
            self.n_evaluations += starter.n_evaluations
            return max(given, fresh, key=lambda start: start.bound)
        starts = []
        for index, place in enumerate(_around(point, self.starts, self.seed)):
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
        found: list[tuple[Ascent, int]] = []
        for start in starts:
            ascent = self.method.run(objective, start, self.watch, quiet)
            for index, (other, count) in enumerate(found):
                if _same(ascent, other):
                    found[index] = (max(ascent, other, key=lambda a: a.bound), count + 1)
                    break
            else:
                found.append((ascent, 1))
        found.sort(key=lambda pair: -pair[0].bound)
        self.optima = tuple(Optimum(a.bound, np.asarray(a.posterior.mean), count) for a, count in found)
        best = found[0][0]
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

        def record(posterior: Gaussian, hyper: Hyper, bound: float) -> None:
            nonlocal reached
            reached = Start(posterior, hyper, bound)
            self._record(posterior, hyper, bound, self.n_evaluations + objective.n_evaluations - before)

        try:
            ascent = self.method.run(objective, start, self.watch, record)
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

    def _record(self, posterior: Gaussian, hyper: Hyper, bound: float, n_evaluations: int) -> None:
        """End a round: check the bound, with as many check draws as it takes to judge it."""
        usual = 5 * self.draws.n

        def decided(check_bound: float, error: float, n: int) -> bool:
            gap = abs(bound - check_bound)
            clear = gap + 2.0 * error <= self.tolerance or gap - 2.0 * error > self.tolerance
            return clear or (n >= usual and not self.may_grow)

        n, judge = 4 * usual if self.may_grow else usual, decided
        if self.n_check is not None:
            n, judge = self.n_check, lambda *seen: False
        seen = check(self.problem, posterior, hyper, n, self.seed, self.draws.n, judge)
        self.rounds.append(Round(self.draws.n, bound, seen.bound, seen.error, n_evaluations))

    @property
    def may_grow(self) -> bool:
        return 2 * self.draws.n <= self.max_draws

    def _too_few(self) -> bool:
        last = self.rounds[-1]
        return abs(last.bound - last.check_bound) + 2.0 * last.check_error > self.tolerance

    def _of(self, ascent: Ascent) -> Fit:
        message = " ".join(part for part in (ascent.status.message, ascent.note) if part)
        return self._result(ascent.posterior, ascent.hyper, ascent.bound, ascent.status, message)

    def _result(self, posterior: Gaussian, hyper: Hyper, bound: float, status: Status, message: str) -> Fit:
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
            settings=self._settings(),
        )

    def _settings(self) -> dict[str, Any]:
        return {
            "draws": self.draws.kind,
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


def _own_hyper(resumed: Fit, target: Target) -> Any:
    """The user's own hyperparameters of an earlier fit, without the precisions of its target."""
    if not target.reports:
        return resumed.hyper
    return resumed.hyper.get("hyper") if isinstance(resumed.hyper, dict) else None


def _working_bytes(n_draws: int, dim: int, coupled: int) -> int:
    """Memory of a fit besides the target's: draws, check draws and their images; the optimiser's vectors."""
    return 8 * (8 * n_draws * dim + 30 * (2 * dim + dim * (coupled - 1) // 2))


def _around(point: np.ndarray, n: int, seed: int) -> np.ndarray:
    """The point itself and others around it, as wide as a model's starting values usually are on the real line."""
    jitter = 2.0 * np.random.default_rng([seed, 2]).standard_normal((n, len(point)))
    jitter[0] = 0.0
    return point + jitter


def _same(one: Ascent, other: Ascent) -> bool:
    """Two ascents that ended in the same optimum: equal bounds and means."""
    away = np.asarray(one.posterior.standardise(other.posterior.mean[None])[0])
    return abs(one.bound - other.bound) < 0.1 and float(np.sqrt(np.mean(away**2))) < _SAME_OPTIMUM
