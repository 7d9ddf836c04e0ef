# pyright: reportMissingImports=false
"""`Streaming`: fresh draws at every step and, for sums of terms, fresh rows (Sec. 4 of the paper), then a frozen polish.

In whitened coordinates half a squared distance is about a KL divergence, and half a squared gradient the nats still to be
gained. So a window of steps tells all that is needed: the mean of its iterates is the answer so far, the mean of its
gradients what is still to be gained, and their scatter how far both are known. While more is promised than scatter hides,
few rows are enough. Then a polish is cheaper than more of them: rows at random bring the error down like the inverse of the
passes over the data, an ascent on frozen draws by a large factor with every pass. Without it, the windows go on with more and
more rows until neither what is promised nor what is not known is worth a tenth of the tolerance.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple

import numpy as np

from quenched.compiling import compiled
from quenched.draws import Draws, Purpose, generator, make, smallest, stream
from quenched.execute import Expired, Here, InBlocks
from quenched.fitting.ascent import Ascent, Watch
from quenched.fitting.blame import blame_flight, blame_reached
from quenched.fitting.leading import along_curvature
from quenched.fitting.method import Base, Joint, Method, Record
from quenched.fitting.newton import Expander, Search
from quenched.numbers import yes_or_no
from quenched.objective import Coordinates, Objective, make_problem
from quenched.results import Code
from quenched.targets import numbers_of_rows, of_some_rows, some_rows
from quenched.text import shown

_WINDOW = 32  # steps over which iterates and gradients are averaged
_LONGEST = 64  # windows
_SHARE = 0.1  # of the slack, which the promise and the error of the average may each be
_FEWEST_ROWS = 512
_FIRST_SCALE = 1e-2  # standard deviation of all parameters about a start where the log density has no curvature, ...
_NARROWER = 12  # ... and how often it is divided by four until the first rows are finite
_TIMES = 16  # as many rows in every ascent before the polish as in the one before
_DRAWS, _MOST_DRAWS = 16, 4096  # at every step, while there is a choice

OPTIMISERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda optax: optax.sgd(0.5),
    "adam": lambda optax: optax.adam(0.05),
    "dog": lambda optax: optax.contrib.dog(),
    "dowg": lambda optax: optax.contrib.dowg(),
    "prodigy": lambda optax: optax.contrib.prodigy(),
    "dadapt_adamw": lambda optax: optax.contrib.dadapt_adamw(),
    "mechanize": lambda optax: optax.contrib.mechanize(optax.sgd(0.5)),
    "schedule_free": lambda optax: optax.contrib.schedule_free_sgd(0.5),
}


class Streaming(Method):
    """Fresh draws at every step and, for `sum_of` terms, minibatches of their rows; then a frozen polish.

    For data of which one pass is dear: most of the way is gone on a few thousand rows at a time. There is no learning rate to
    choose. `fit.message` tells how many passes over the data it took. Needs the extra `streaming` (optax).

    Parameters
    ----------
    rows
        Of every kind of term, at a step; some hundreds at first by default, and more as they are needed.
    draws
        At a step; by default as many as are needed to match all coordinates that the family couples.
    optimiser
        Of optax, by name: "sgd" (with which iterates are averaged), "dog", "dowg", "prodigy", "dadapt_adamw", "mechanize",
        "schedule_free" or "adam".
    polish
        Whether the bound is raised to its top on frozen draws and all rows at the end.
    max_steps
        Of the stream.

    Examples
    --------
    >>> fit = qd.fit(lambda w: -jnp.cosh(w - 1.0), 0.0, method=qd.Streaming())
    >>> bool(abs(fit.mean - 1.0) < 0.05)
    True
    """

    begins_itself: ClassVar[bool] = True

    rows: int | None = None
    draws: int | None = None
    optimiser: str = "sgd"
    polish: bool = True
    max_steps: int = _WINDOW * _LONGEST

    def __post_init__(self):
        if find_spec("optax") is None:
            raise ImportError("Streaming needs optax: pip install 'quenched[streaming]'.")
        if not isinstance(self.optimiser, str) or self.optimiser not in OPTIMISERS:
            raise ValueError(f"Streaming(optimiser={shown(self.optimiser)}): use one of {', '.join(OPTIMISERS)}.")
        yes_or_no("Streaming: polish", self.polish)
        for name in ("rows", "draws", "max_steps"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 2):
                raise ValueError(f"Streaming({name}={shown(value)}): a whole number of at least 2 is needed.")

    @property
    def initial_scale(self):
        return _FIRST_SCALE  # the start is found on few rows, by the method itself

    def run(self, objective, base, slack, watch, record):
        source, reached = Source(objective, self), None
        try:
            for window in self._windows(source, base, slack, watch):
                reached = window
            return self._ended(objective, source, reached, base, slack, watch, record)
        except KeyboardInterrupt as stop:
            if reached is None:  # no window has ended
                raise
            code = Code.MAX_SECONDS if isinstance(stop, Expired) else Code.INTERRUPTED
            objective.n_evaluations += round(source.evaluations)
            return Ascent(reached.at.reference, reached.hyper, reached.bound, code, np.inf, source.steps)

    def _windows(self, source: "Source", base: Base, slack: float, watch: Watch) -> Iterator["Streamed"]:
        """Where every window of steps has led, until one of them is the last."""
        import optax
        import optax.contrib

        transform = OPTIMISERS[self.optimiser](optax)
        update, state = compiled(transform.update), None
        at, hyper, code = source.start(base, slack, watch), base.hyper, Code.RUNNING
        while code is Code.RUNNING:
            vector = np.zeros(at.size)
            state = transform.init(vector) if state is None else _kept(state, transform.init(vector), self.optimiser)
            window, bound, asked = Window([], []), -np.inf, None
            for _ in range(_WINDOW):
                slope, _ = source.fresh().slope(at, vector, hyper, profile=True)
                gradient = np.asarray(slope.gradient)
                if not np.isfinite(gradient).all():
                    gradient = np.zeros_like(gradient)  # a step too far: stay, and look from other draws
                steps, state = update(-gradient, state, vector)
                vector, hyper, bound = vector + np.asarray(steps), slope.hyper, float(slope.bound)
                window.vectors.append(vector)
                window.gradients.append(gradient)
                asked = watch(bound, source.n_draws)
                if asked is not None:
                    break
            at = at.moved(window.average)
            if asked is not None:
                yield Streamed(at, hyper, bound, Code[asked.name], window.promise + window.error)
                return
            blind = window.promise <= max(window.error, _SHARE * slack)  # no more can be seen with so few rows
            if blind and self.polish:
                at, hyper = source.climb(at, hyper, slack, watch)
            code = self._judged(window, source, blind, slack)
            if blind and code is Code.RUNNING:
                source.grow()
            asked = watch(bound, source.objective.n)
            code = code if asked is None else Code[asked.name]
            yield Streamed(at, hyper, bound, code, window.promise + window.error)

    def _judged(self, window: "Window", source: "Source", blind: bool, slack: float) -> Code:
        if blind and (self.polish or window.error <= _SHARE * slack):
            return Code.CONVERGED
        return Code.MAX_EVALUATIONS if source.steps >= self.max_steps else Code.RUNNING

    def _ended(self, objective, source, reached, base, slack, watch, record) -> Ascent:
        """On frozen draws and all rows: polished, or judged as it is, with the nats that are left as the stop rule has it."""
        at, code = reached.at, reached.code
        note = f"Streamed in {source.steps} steps, {source.passes:.2f} passes over the data"
        slope, totals = objective.slope(at, np.zeros(at.size), reached.hyper, profile=True)
        if not (np.isfinite(slope.bound) and np.isfinite(slope.gradient).all()):
            # The stream has run away, or out of the support: it is told why, and given back its start.
            note = f"{note}, which led nowhere{_astray(objective, reached, base)}"
            at, code = source.narrowed(objective, base, 1.0), Code.NOT_FINITE
            slope, totals = objective.slope(at, np.zeros(at.size), base.hyper, profile=True)
        objective.n_evaluations += round(source.evaluations)
        bound, steepness = float(slope.bound), float(np.max(np.abs(slope.gradient)))
        found = Ascent(at.reference, slope.hyper, bound, code, steepness, source.steps, bound - base.bound)
        if self.polish and code in (Code.CONVERGED, Code.MAX_EVALUATIONS, Code.NOT_FINITE):
            polished = Joint().run(objective, Base(at, slope.hyper, bound, totals), slack, watch, record)
            if code is Code.NOT_FINITE:
                polished = _along_directions(objective, polished, slack, watch, record)
            note = f"{note}, then raised by {polished.bound - bound:.2g} nats on frozen draws"
            found = polished._replace(n_objective_evaluations=polished.n_objective_evaluations + source.steps)
        elif code is not Code.NOT_FINITE:
            note = f"{note}, and left about {reached.left:.2g} nats below the top"
        return found._replace(note=f"{note}.")


class Streamed(NamedTuple):
    """Where a stream has led."""

    at: Coordinates
    hyper: Any
    bound: float  # on the last draws and rows
    code: Code
    left: float  # nats to the top, as far as can be told


class Window(NamedTuple):
    """Some steps: where they went, and the gradients there."""

    vectors: list[np.ndarray]
    gradients: list[np.ndarray]

    @property
    def average(self) -> np.ndarray:
        return np.mean(self.vectors[len(self.vectors) // 4 :], axis=0)  # the first still come from elsewhere

    @property
    def error(self) -> float:
        """Nats that the average is off on account of draws and rows: half its variance in whitened coordinates."""
        if len(self.gradients) < 2:
            return 0.0  # nothing is known of it
        scatter = np.var(self.gradients, axis=0, ddof=1)
        return 0.5 * float(np.sum(scatter)) / len(self.gradients)

    @property
    def promise(self) -> float:
        """Nats still to be gained, as far as the mean gradient is more than scatter."""
        mean = np.mean(self.gradients, axis=0)
        return max(0.5 * float(mean @ mean) - self.error, 0.0)


class Source:
    """Fresh draws and rows, and what has been taken."""

    def __init__(self, objective: Objective, method: Streaming):
        self.objective, problem = objective, objective.problem  # on all rows
        self.terms, self.n_rows = problem.target.terms, ()
        if self.terms is not None:
            self.n_rows = numbers_of_rows(self.terms)
            self.given = problem.target.given(problem.data)
        self.rows = method.rows or max(_FEWEST_ROWS, 10 * problem.dim)
        draws, least = objective.draws, smallest("matched", problem.dim, objective.draws.groups)
        wanted = max(method.draws or 0, least if method.draws else max(least, _DRAWS))
        self.n_draws, self.kind = wanted + wanted % 2, draws
        self.random = generator(draws.seed, Purpose.FRESH)
        self.steps, self.passes, self.evaluations = 0, 0.0, 0.0  # passes over rows; gradients, by all their rows
        self.orders: list[np.ndarray] = [np.zeros(0, int) for _ in self.n_rows]

    def start(self, base: Base, slack: float, watch: Watch) -> Coordinates:
        """The mode of as many rows as the first steps take, and its curvature; then a frozen fit to them."""
        some = self._problem()
        expander = Expander(some)
        point = np.asarray(base.origin.reference.mean)
        first = expander.expand(point, 0.1 * np.maximum(np.abs(point), 1.0), base.hyper)
        if not first.finite:
            return self.narrowed(Objective(some, self._draws()), base, _FIRST_SCALE)
        mode = expander.find_mode(first, base.hyper, Search(tolerance=0.05))
        member = base.origin.reference.family.member(mode.point, mode.precision, some.space.sizes)
        begun = Base(Coordinates(member, mode.hyper.free), mode.hyper, -np.inf)
        found = _raised(Objective(some, self._draws()), begun, slack, watch)
        finite = np.isfinite(found.bound)
        return Coordinates(found.posterior if finite else member, (found if finite else mode).hyper.free)

    def narrowed(self, objective: Objective, base: Base, widest: float) -> Coordinates:
        """About the given point, as near to it as is needed for a bound to be finite."""
        reference = base.origin.reference
        point, sizes, at = np.asarray(reference.mean), objective.problem.space.sizes, base.origin
        for scale in 0.25 ** np.arange(_NARROWER):
            spread = np.full(point.shape, widest * scale)
            at = Coordinates(reference.family.isotropic(point, spread, sizes), base.hyper.free)
            slope, _ = objective.slope(at, np.zeros(at.size), base.hyper, profile=False)
            if np.isfinite(slope.bound) and np.isfinite(slope.gradient).all():
                break
        return at

    def climb(self, at: Coordinates, hyper: Any, slack: float, watch: Any) -> tuple[Coordinates, Any]:
        """Frozen ascents on more and more rows, each from the top of the one before, up to a part of all of them.

        A posterior of one in r rows is about √r sds off in its means, and right in its scale: from there an ascent on all
        rows needs few passes, and those on the parts take little more than one together.
        """
        while self.rows * _TIMES < max(self.n_rows, default=0):
            self.rows = min(self.rows * _TIMES, -(-max(self.n_rows) // _TIMES))
            before = self.evaluations
            objective = Objective(self._problem(), self.objective.draws)
            self.evaluations = before
            found = _raised(objective, Base(at, hyper, -np.inf), slack, watch)
            part = self.rows / max(self.n_rows)
            self.evaluations += part * objective.n_evaluations
            self.passes += part * (objective.n_evaluations / objective.n - 1.0)
            if not np.isfinite(found.bound) or found.code is Code.MAX_SECONDS:
                break
            at, hyper = Coordinates(found.posterior, found.hyper.free), found.hyper
        return at, hyper

    def fresh(self) -> Objective:
        """The bound on fresh draws and rows."""
        self.steps += 1
        return Objective(self._problem(), self._draws())

    def grow(self) -> None:
        """Twice as many rows, or draws where all rows are taken."""
        if self.n_rows and self.rows < max(self.n_rows):
            self.rows *= 2
        else:
            self.n_draws = max(self.n_draws, min(2 * self.n_draws, _MOST_DRAWS))

    def _draws(self) -> Draws:
        return make(
            "matched", self.n_draws, self.kind.dim, stream(self.kind.seed, Purpose.FRESH, self.steps), self.kind.groups
        )

    def _problem(self) -> Any:
        most = max(self.n_rows, default=0)
        part = min(1.0, self.rows / most) if most else 1.0
        self.passes, self.evaluations = self.passes + part, self.evaluations + part * self.n_draws
        if part == 1.0:
            return self.objective.problem
        places = [self._next(kind, n) if n > self.rows else None for kind, n in enumerate(self.n_rows)]
        weights = [1.0 if some is None else n / len(some) for some, n in zip(places, self.n_rows, strict=True)]
        whole = self.objective.problem
        target = replace(whole.target, function=of_some_rows(self.terms, places), data=None, terms=None)
        data = (some_rows(whole.target.data, places), self.given, np.array(weights))
        here = Here(whole.execution.memory) if isinstance(whole.execution, InBlocks) else whole.execution
        return make_problem(target, whole.space, data, whole.hyper_like, here)

    def _next(self, kind: int, n: int) -> np.ndarray:
        """Rows in an order of chance, all of them before any comes again; read in their own order."""
        if len(self.orders[kind]) < self.rows:
            self.orders[kind] = self.random.permutation(n)
        some, self.orders[kind] = np.split(self.orders[kind], [self.rows])
        return np.sort(some)


def _along_directions(objective: Objective, reached: Ascent, slack: float, watch: Watch, record: Record) -> Ascent:
    """The better of where an ascent from no correlations at all has ended, and of one from there along a few directions.

    Of a family that has such, no gradient turns what is not stretched: without them an ascent may end on a saddle.
    """
    problem, family = objective.problem, reached.posterior.family
    if reached.code is not Code.CONVERGED or not family.directions(problem.dim):
        return reached
    member, n = along_curvature(problem, family, reached.posterior, reached.hyper, objective.draws.seed)
    objective.n_evaluations += n
    at = Coordinates(member, reached.hyper.free)
    slope, totals = objective.slope(at, np.zeros(at.size), reached.hyper, profile=True)
    if not (np.isfinite(slope.bound) and np.isfinite(slope.gradient).all()):
        return reached
    found = Joint().run(objective, Base(at, slope.hyper, float(slope.bound), totals), slack, watch, record)
    if not found.bound > reached.bound:
        return reached
    counted = found.n_objective_evaluations + reached.n_objective_evaluations
    return found._replace(n_objective_evaluations=counted, rise=reached.rise + found.bound - reached.bound)


def _raised(objective: Objective, base: Base, slack: float, watch: Watch) -> Ascent:
    """A frozen ascent on the way, which is not a result: what ends it by hand ends the stream."""
    found = Joint().run(objective, base, slack, watch, lambda *_: None)
    if found.code is Code.INTERRUPTED:
        raise KeyboardInterrupt
    return found


def _astray(objective: Objective, reached: Streamed, base: Base) -> str:
    """Why the bound is not finite where a stream has led, if it can be seen there; far away nothing is seen of its cause."""
    member, problem = reached.at.reference, objective.problem
    far = blame_flight(problem, member, np.asarray(base.origin.reference.mean)) is not None
    why = None if far else blame_reached(problem, member, reached.hyper, objective.draws)
    return "" if why is None else f". {why.rstrip('.')}"


def _kept(state: Any, fresh: Any, optimiser: str) -> Any:
    """What an optimiser has learned of lengths goes on; where it stood belongs to coordinates that are gone."""
    return fresh if optimiser in ("sgd", "schedule_free", "adam", "mechanize") else state
