"""The driver that takes many entries together, in lanes of one compiled program (`machines`)."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, ClassVar

import jax
import numpy as np

from quenched.arrays import Array
from quenched.draws import CHECK_BATCH, Draws
from quenched.execute import Effort, Traceable, effort
from quenched.families import Member
from quenched.fitting.ahead import Ahead, compiled_for
from quenched.fitting.ascent import Climber, Learned, Limits
from quenched.fitting.callers import Callers, enough_callers
from quenched.fitting.drive import Driver, Entries, Judged, Summit
from quenched.fitting.machines import EACH, Done, Machines, compile_machines, data_of, drive, lane_program
from quenched.fitting.method import Joint
from quenched.fitting.newton import Expansion, Mode, NewtonMachine, Search
from quenched.fitting.rows import Widths, equal_rows, put, repeated, rows
from quenched.fitting.side_by_side import Ascents, Climbed, Searches, expansion
from quenched.interrupts import obey_interrupts
from quenched.objective import Chunks, Coordinates, Rows, cut_up, ratios_in_chunks
from quenched.results import Code
from quenched.targets import Form, Hyper

_POINTS_AT_A_TIME = (16, 64)  # of one problem: the fewest, the most
_CACHED = 2**24  # bytes of intermediates beyond which more points at a time are slower
_VECTORS = 50  # as long as the posterior has numbers
_HEAVY = 2**20  # bytes at a time that make a problem a heavy one
_WIDEST = 64  # lanes
_MANY = 512  # problems for which it pays to compile well what is quick anyway
_FILLS = 4  # times that the lanes are filled, before fewer and fewer are left
_MEMORY = 2**28  # bytes for evaluating the target, unless told otherwise


class Lanes(Driver):
    """Many entries at a time, of problems whose function JAX can trace."""

    explains: ClassVar[bool] = False

    @property
    def programs(self) -> Traceable:
        assert self.batch.problem.programs is not None  # functions on the host are fitted one by one
        return self.batch.problem.programs.inside

    @cached_property
    def widths(self) -> Widths:
        """Entries at a time: as many as memory allows; and where each is quick, never fewer: every width is compiled."""
        each = _POINTS_AT_A_TIME[0] * self.batch.problem.work.bytes_of_a_point + self._vectors
        most = min(_WIDEST, max(1, int(self._memory // (self.call.n * each))))
        return Widths(1 if each > _HEAVY else most, most)

    @cached_property
    def _effort_at_once(self) -> Effort:
        """To compile what is called once for each problem."""
        return effort(self.batch.problem.work.bytes_of_a_point)

    @cached_property
    def _effort(self) -> Effort:
        """To compile what is called again and again: the more problems, the more it pays."""
        little = self._effort_at_once is Effort.LITTLE
        return (Effort.LITTLE if self.batch.n < _MANY else Effort.SOME) if little else Effort.ALL

    @cached_property
    def call(self) -> Callers:
        return enough_callers()

    @property
    def _memory(self) -> int:
        return int(self.batch.problem.execution.memory or _MEMORY)

    @property
    def _vectors(self) -> int:
        """Bytes of an ascent, and of what it leaves to the next."""
        return 8 * _VECTORS * (self.batch.problem.dim * (self.coupled + 3) // 2)

    def parts(self, index: np.ndarray) -> Iterator[np.ndarray]:
        """As many problems as can be remembered at a time, and enough to fill the lanes."""
        size = max(_FILLS * self.call.n * self.widths.most, int(self._memory // self._vectors))
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
        self._ahead: Ahead | None = None
        self._climbed: dict[int, tuple[tuple[Member, Learned], int]] = {}  # by problem: the last ascents, and its row

    def expand(self, index, points, hyper):
        look = lambda points, hyper, data: _expand(
            self._effort_at_once, self.programs.second_order, points, data, hyper
        )
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
        """By the first turn of an ascent: no other program need be compiled."""
        found = self._ascents(entries, draws, Limits(max_evaluations=1), Climber(), profile=profile).reports
        return Judged(found.bound, found.hyper, found.finite, found.promise)

    def short_fits(self, entries: Entries, draws: Draws, limits: Limits, rivals: np.ndarray) -> Summit:
        return self._summit(self._ascents(entries, draws, limits, Climber(), rivals=rivals, doing="short fits"))

    def climb(self, entries, draws, method, slack, record) -> Summit:
        assert isinstance(method, Joint)  # as `in_lanes` says
        limits, climber = method.limits(entries.posterior, slack), Climber(method.minimiser)
        coordinates = Coordinates(entries.posterior, entries.hyper.free, entries.factor)
        known = self._learned(entries, coordinates) if entries.posterior.affine else None
        done = self._ascents(entries, draws, limits, climber, known=known, doing=f"{draws.n} draws")
        found: Climbed = done.reports
        self.costs.add(entries.index, 0, found.count)
        if entries.posterior.affine:
            source = (found.posterior, found.learned)
            self._climbed.update({problem: (source, row) for row, problem in enumerate(entries.index.tolist())})
        return self._summit(done)

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
        self,
        entries: Entries,
        draws: Draws,
        limits: Limits,
        climber: Climber,
        *,
        rivals: np.ndarray | None = None,
        known: tuple[Learned | None, np.ndarray] | None = None,
        doing: str = "",
        profile: bool = True,
    ) -> Done:
        """From `known`, what earlier ascents have learned. What has a name may be called off."""
        n, coordinates = len(entries.index), Coordinates(entries.posterior, entries.hyper.free, entries.factor)
        rivals = np.full(n, -np.inf) if rivals is None else rivals
        inputs = (coordinates, entries.hyper, rivals, known or (None, np.zeros(n, bool)))
        self._wait_for("ascents")
        context = self._context(limits, rows(coordinates, 0), self._chunks(draws, entries.posterior))
        done = self._drive(self._machines(climber, profile), context, entries.index, inputs, doing)
        self.costs.add(entries.index, draws.n * done.reports.turns)
        return done

    def _machines(self, climber: Climber, profile: bool = True) -> Ascents:
        return Ascents(self.programs.evaluate, self.batch.problem.form, climber, profile)

    def _context(self, limits: Limits, coordinates: Coordinates, chunks: Chunks) -> tuple:
        moves = np.ones(coordinates.size, bool) if limits.moves is None else limits.moves
        return limits._replace(moves=moves), chunks, self.batch.problem.noise

    def _summit(self, done: Done) -> Summit:
        found: Climbed = done.reports
        code = np.where(done.begun & ~done.ended, self._stop, found.code)
        return Summit(found.posterior, found.hyper, found.bound, code, found.rise, done.begun, {})

    @property
    def _stop(self) -> Code:
        return Code.INTERRUPTED if self.interrupted else Code.MAX_SECONDS

    def log_ratios(self, entries, z):
        self._wait_for("ratios")
        found = self._apply(entries.index, self._ratios(z), entries.posterior, entries.hyper)
        return found.reshape(len(entries.index), -1)[:, : len(z)]

    def _ratios(self, z: np.ndarray) -> Callable:
        size = self.points_at_a_time
        used = -(-len(z) // size)
        filled = np.zeros((max(-(-CHECK_BATCH // size), used) * size, z.shape[1]))
        filled[: len(z)] = z
        chunks = jax.device_put(filled.reshape(-1, size, z.shape[1]))
        return partial(_log_ratios, self._effort, self.programs.values, self.batch.problem.form, chunks, used)

    def prepare(self, problem, posterior, hyper, draws):
        """Compile what comes after the search for modes, by lanes that nobody is in and draws of which there are none."""
        coordinates, width = Coordinates(posterior, hyper.free), self.widths.fit(self.batch.n)
        chunks, function = self._chunks(draws, posterior), self.batch.problem.function

        def ascents() -> None:
            inputs = repeated((coordinates, hyper, -np.inf, (None, False)), 1)
            context = self._context(Limits(), coordinates, chunks)
            compile_machines(self._machines(Climber()), context, inputs, self._data, width, self._effort)

        def ratios() -> None:
            data = data_of(self._data, np.zeros(width, int))
            self._ratios(np.zeros((0, self.batch.problem.dim)))(*repeated((posterior, hyper), width), data)

        kind = (width, self._effort, chunks.z.shape, *compiled_for((posterior, self._data)))
        self._ahead = Ahead(function, kind, {"ascents": ascents, "ratios": ratios})

    def _wait_for(self, name: str) -> None:
        if self._ahead is not None:
            self._ahead.wait(name)

    def _chunks(self, draws: Draws, posterior: Member) -> Chunks:
        # Their size stays the same as draws grow.
        parts = -(-self.first // self.points_at_a_time)
        size = 2 * -(-self.first // (2 * parts))
        return cut_up(draws.points, size, mirrored=posterior.affine)

    def _drive(self, machines: Machines, context: Any, index: np.ndarray, inputs: Any, doing: str) -> Done:
        def stop(n_ended: int) -> bool:
            if not doing:
                obey_interrupts()
                return False
            self.watch.say(f"{doing}: {n_ended} of {len(index)} problems")
            try:
                obey_interrupts()
            except KeyboardInterrupt:  # what the lanes have reached is kept
                self.interrupted = True
            return self.stopped

        return drive(machines, context, index, inputs, self._data, self.widths, stop, self.call, self._effort)

    @property
    def _data(self) -> Rows:
        assert self.batch.data is not None  # there are many problems
        return self.batch.data

    def _apply(self, index: np.ndarray, program: Callable, *inputs: Any) -> Any:
        """program(*inputs, data) for rows of inputs; answers with NumPy rows."""
        results, under_way, first = None, deque(), 0
        while first < len(index) or under_way:
            obey_interrupts()
            if first < len(index):
                width = self.widths.fit(len(index) - first)
                places = np.minimum(np.arange(first, first + width), len(index) - 1)  # the last group is filled up
                given = (*rows(inputs, places), data_of(self._data, index[places]))
                under_way.append((places, self.call(first // width, program, *given)))
                first += width
                if len(under_way) < self.call.n and first < len(index) and results is not None:  # compiled by the first
                    continue
            places, called = under_way.popleft()
            found = jax.tree.map(np.asarray, called.result())
            if results is None:
                results = jax.tree.map(lambda leaf: np.zeros((len(index), *leaf.shape[1:]), leaf.dtype), found)
            put(results, places, found)
        return results


@lane_program(static_argnums=0)
def _expand(second_order: Callable, points: Array, data: Rows, hyper: Hyper) -> Expansion:
    one = lambda point, own, hyper: expansion(second_order, point, own.one, hyper)
    return jax.vmap(one, (0, EACH, 0))(points, data, hyper)


@lane_program(static_argnums=(0, 1))
def _log_ratios(values, form: Form, z: Array, used: Array, posterior: Any, hyper: Hyper, data: Rows) -> Array:
    one = lambda posterior, hyper, data: ratios_in_chunks(values, form, z, used, posterior, hyper, data.one)
    return jax.vmap(one, (0, 0, EACH))(posterior, hyper, data)
