"""The driver that takes many entries together, in lanes of one compiled program (`machines`)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array, choose
from quenched.draws import CHECK_BATCH, Draws
from quenched.execute import Traceable, obey_interrupts
from quenched.families import Member
from quenched.fitting.ascent import Climb, Climber, Learned, Limits
from quenched.fitting.drive import Driver, Entries, Judged, Summit
from quenched.fitting.machines import EACH, Done, Machines, data_of, drive, lane_program
from quenched.fitting.method import Joint
from quenched.fitting.newton import Expansion, Mode, Newton, NewtonMachine, Search
from quenched.fitting.rows import Widths, equal_rows, put, rows
from quenched.objective import Chunks, Coordinates, Rows, cut_up, ratios_in_chunks, slope_in_chunks
from quenched.results import Code
from quenched.targets import Form, Hyper

_COLUMNS = 32  # of a Hessian at a time
_POINTS_AT_A_TIME = (16, 64)  # of one problem: the fewest, the most
_CACHED = 2**25  # bytes of intermediates beyond which more points at a time are slower
_VECTORS = 50  # as long as the posterior has numbers
_HEAVY = 2**20  # bytes at a time that make a problem a heavy one
_NARROW, _WIDEST = 32, 128  # lanes
_FILLS = 4  # times that the lanes are filled, before fewer and fewer are left
_MEMORY = 2**28  # bytes for evaluating the target, unless told otherwise


@dataclass(frozen=True)
class Ascents:
    """Climbs on some draws. The context is (limits, chunks, noise)."""

    evaluate: Callable
    form: Form
    climber: Climber
    teaches: bool  # others may go on from where they end

    def begin(self, inputs, context):
        coordinates, hyper, rival, (learned, knows) = inputs
        moves = context[0].moves
        first = self.climber.begin(coordinates, hyper, moves, rival)
        if learned is None:
            return first
        again = self.climber.again(learned, hyper, moves)
        return jax.tree.map(partial(jnp.where, knows), again, first)

    def amend(self, state: Climb, context):
        return self.climber.renewed(state, context[0].moves)

    def turn(self, state: Climb, data, context):
        limits, chunks, noise = context
        vector = state.state.trial
        slope, _ = slope_in_chunks(self.evaluate, self.form, True, state.coordinates, vector, state.hyper, data, chunks)
        return self.climber.tell(state, slope, limits, noise)

    def report(self, state: Climb, context):
        posterior, free = state.coordinates.read(state.state.position)
        hyper = state.hyper._replace(free=free)
        rise, turns = state.bound - state.first, state.count + state.renewals
        learned = state.learned if self.teaches else None
        return posterior, hyper, state.bound, state.code, rise, state.count, turns, learned


@dataclass(frozen=True)
class Searches:
    """Searches for modes. The context is the limits of the search."""

    second_order: Callable
    machine: NewtonMachine

    def begin(self, inputs, context):
        return self.machine.begin(*inputs)

    def amend(self, state: Newton, context):
        return self.machine.with_eigenvalues(state)

    def turn(self, state: Newton, data, context):
        trial = _expansion(self.second_order, state.trial, data, state.hyper)
        told = self.machine.tell(state, trial.value, context)
        return choose(told.rising, lambda: self.machine.take(told, trial, context), lambda: told)

    def report(self, state: Newton, context):
        return self.machine.report(state)


class Lanes(Driver):
    """Many entries at a time, of problems whose function JAX can trace."""

    explains: ClassVar[bool] = False

    @property
    def programs(self) -> Traceable:
        assert self.batch.problem.programs is not None  # functions on the host are fitted one by one
        return self.batch.problem.programs.inside

    @cached_property
    def widths(self) -> Widths:
        """Entries at a time: as many as memory allows; and where each is quick, not so few that compiling costs more."""
        each = _POINTS_AT_A_TIME[0] * self.batch.problem.work.bytes_of_a_point + self._vectors
        most = min(_WIDEST, max(1, int(self._memory // each)))
        return Widths(1 if each > _HEAVY else min(_NARROW, self.batch.n), most)

    @property
    def _memory(self) -> int:
        return int(self.batch.problem.execution.memory or _MEMORY)

    @property
    def _vectors(self) -> int:
        """Bytes of an ascent, and of what it leaves to the next."""
        return 8 * _VECTORS * (self.batch.problem.dim * (self.coupled + 3) // 2)

    def parts(self, index: np.ndarray) -> Iterator[np.ndarray]:
        """As many problems as can be remembered at a time, and enough to fill the lanes."""
        size = max(_FILLS * self.widths.most, int(self._memory // self._vectors))
        for part in np.array_split(index, max(1, -(-len(index) // size))):
            if not self.stopped:
                self._climbed.clear()
                yield part

    @cached_property
    def points_at_a_time(self) -> int:
        """Draws of each problem that are evaluated together."""
        fewest, most = _POINTS_AT_A_TIME
        return int(np.clip(_CACHED // (self.widths.most * self.batch.problem.work.bytes_of_a_point), fewest, most))

    def __init__(self, batch, watch, costs, *, coupled: int, first: int):
        super().__init__(batch, watch, costs)
        self.coupled, self.first = coupled, first
        self._climbed: dict[int, tuple[tuple[Member, Learned], int]] = {}  # by problem: the last ascents, and its row

    def expand(self, index, points, hyper):
        look = lambda points, hyper, data: _expand(self.programs.second_order, points, data, hyper)
        self.costs.add(index, self._cost)
        return self._apply(index, look, points, hyper)

    @cached_property
    def _cost(self) -> int:
        problem = self.batch.problem
        return problem.executor(1).second_order_cost(problem.dim)

    def modes(self, index, at: Expansion, hyper: Hyper, search: Search) -> tuple[np.ndarray, Mode]:
        machines = Searches(self.programs.second_order, NewtonMachine(self.batch.problem.form))
        done = self._drive(machines, search, index, (at, hyper), "looking for a start")
        found: Mode = rows(done.reports, done.begun)
        self.costs.add(index[done.begun], self._cost * (found.n_expansions - 1))
        return done.begun, found

    def judge(self, entries, draws, *, profile=True):
        form, chunks = self.batch.problem.form, self._chunks(draws, entries)
        program = partial(_judge, self.programs.evaluate, form, profile, chunks)
        coordinates = Coordinates(entries.posterior, entries.hyper.free, entries.factor)
        found = self._apply(entries.index, program, coordinates, entries.hyper)
        self.costs.add(entries.index, draws.n)
        return Judged(*found)

    def short_fits(self, entries: Entries, draws: Draws, limits: Limits, rivals: np.ndarray) -> Summit:
        return self._ascents(entries, draws, limits, Climber(), rivals, "short fits", climbs=False)[0]

    def climb(self, entries, draws, method, slack, record) -> Summit:
        assert isinstance(method, Joint)  # as `in_lanes` says
        limits = method.limits(entries.posterior, slack)
        rivals = np.full(len(entries.index), -np.inf)
        climber, doing = Climber(method.minimiser), f"{draws.n} draws"
        summit, learned = self._ascents(entries, draws, limits, climber, rivals, doing, climbs=True)
        if learned is not None:
            source = (summit.posterior, learned)
            self._climbed.update({problem: (source, row) for row, problem in enumerate(entries.index.tolist())})
        return summit

    def _learned(self, entries: Entries, coordinates: Coordinates) -> tuple[Learned | None, np.ndarray]:
        """By the last ascents of these problems, in rows; and which of those have ended at these posteriors."""
        learned, knows = None, np.zeros(len(entries.index), bool)
        kept = [self._climbed.get(problem, (None, 0)) for problem in entries.index.tolist()]
        for source in {id(source): source for source, _ in kept if source is not None}.values():
            here = np.array([place for place, (own, _) in enumerate(kept) if own is source])
            ended, taught = rows(source, [kept[place][1] for place in here])
            if jax.tree.structure(taught.coordinates) != jax.tree.structure(coordinates):
                continue
            same = equal_rows(ended, rows(entries.posterior, here))
            learned = learned or jax.tree.map(lambda leaf: np.zeros((len(knows), *leaf.shape[1:]), leaf.dtype), taught)
            put(learned, here[same], rows(taught, same))
            knows[here[same]] = True
        return (learned if knows.any() else None), knows

    def _ascents(
        self, entries, draws, limits, climber, rivals, doing, *, climbs: bool
    ) -> tuple[Summit, Learned | None]:
        """Whoever climbs to the top has its turns counted as evaluations of the bound, and goes on from what was learned."""
        coordinates = Coordinates(entries.posterior, entries.hyper.free, entries.factor)
        if limits.moves is None:
            limits = limits._replace(moves=np.ones(rows(coordinates, 0).size, bool))
        teaches = climbs and entries.posterior.affine
        known = self._learned(entries, coordinates) if teaches else (None, np.zeros(len(entries.index), bool))
        machines = Ascents(self.programs.evaluate, self.batch.problem.form, climber, teaches)
        context = (limits, self._chunks(draws, entries), self.batch.problem.noise)
        done = self._drive(machines, context, entries.index, (coordinates, entries.hyper, rivals, known), doing)
        posterior, hyper, bound, code, rise, count, turns, learned = done.reports
        self.costs.add(entries.index, draws.n * turns, climbs * count)
        code = np.where(done.begun & ~done.ended, self._stop, code)
        return Summit(posterior, hyper, bound, code, rise, done.begun, {}), learned

    @property
    def _stop(self) -> Code:
        return Code.INTERRUPTED if self.interrupted else Code.MAX_SECONDS

    def log_ratios(self, entries, z):
        size = self.points_at_a_time
        used = -(-len(z) // size)
        filled = np.zeros((max(-(-CHECK_BATCH // size), used) * size, z.shape[1]))
        filled[: len(z)] = z
        chunks = filled.reshape(-1, size, z.shape[1])
        program = partial(_log_ratios, self.programs.values, self.batch.problem.form, chunks, used)
        found = self._apply(entries.index, program, entries.posterior, entries.hyper)
        return found.reshape(len(entries.index), -1)[:, : len(z)]

    def _chunks(self, draws: Draws, entries: Entries) -> Chunks:
        # Their size stays the same as draws grow.
        parts = -(-self.first // self.points_at_a_time)
        size = 2 * -(-self.first // (2 * parts))
        return cut_up(draws.points, size, mirrored=entries.posterior.affine)

    def _drive(self, machines: Machines, context: Any, index: np.ndarray, inputs: Any, doing: str) -> Done:
        def stop(n_ended: int) -> bool:
            self.watch.say(f"{doing}: {n_ended} of {len(index)} problems")
            try:
                obey_interrupts()
            except KeyboardInterrupt:  # what the lanes have reached is kept
                self.interrupted = True
            return self.stopped

        return drive(machines, context, index, inputs, self._data, self.widths, stop)

    @property
    def _data(self) -> Rows:
        assert self.batch.data is not None  # there are many problems
        return self.batch.data

    def _apply(self, index: np.ndarray, program: Callable, *inputs: Any) -> Any:
        """program(*inputs, data) for rows of inputs; answers with NumPy rows."""
        results: Any = None
        first = 0
        while first < len(index):
            obey_interrupts()
            width = self.widths.fit(len(index) - first)
            places = np.minimum(np.arange(first, first + width), len(index) - 1)  # the last group is filled up
            found = jax.tree.map(np.asarray, program(*rows(inputs, places), data_of(self._data, index[places])))
            if results is None:
                results = jax.tree.map(lambda leaf: np.zeros((len(index), *leaf.shape[1:]), leaf.dtype), found)
            put(results, places, found)
            first += width
        return results


def _expansion(second_order: Callable, point: Array, data: Any, hyper: Hyper) -> Expansion:
    return Expansion(point, *second_order(point, data, hyper.free, min(_COLUMNS, len(point))))


@lane_program(static_argnums=0)
def _expand(second_order: Callable, points: Array, data: Rows, hyper: Hyper) -> Expansion:
    one = lambda point, own, hyper: _expansion(second_order, point, own.one, hyper)
    return jax.vmap(one, (0, EACH, 0))(points, data, hyper)


@lane_program(static_argnums=(0, 1, 2))
def _judge(evaluate, form: Form, profile: bool, chunks: Chunks, origin: Coordinates, hyper: Hyper, data: Rows):
    def one(origin, hyper, data):
        vector = jnp.zeros(origin.size)
        here, totals = slope_in_chunks(evaluate, form, profile, origin, vector, hyper, data.one, chunks)
        finite = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(totals)]).all()
        return here.bound, here.hyper, finite, 0.5 * here.gradient @ here.gradient

    return jax.vmap(one, (0, 0, EACH))(origin, hyper, data)


@lane_program(static_argnums=(0, 1))
def _log_ratios(values, form: Form, z: Array, used: Array, posterior: Any, hyper: Hyper, data: Rows) -> Array:
    one = lambda posterior, hyper, data: ratios_in_chunks(values, form, z, used, posterior, hyper, data.one)
    return jax.vmap(one, (0, 0, EACH))(posterior, hyper, data)
