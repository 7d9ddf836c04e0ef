"""The driver that takes many entries together: machines side by side in one compiled program.

There is a fixed number of lanes, and all take their turns at once. An entry that has finished leaves its lane to the next
that waits; when nobody waits, the lanes close up. So one that takes long holds up nobody, and one that has finished costs
nothing more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array, choose
from quenched.bound import Chunks, cut_up, ratios_in_chunks, slope_in_chunks
from quenched.coordinates import Coordinates
from quenched.draws import CHECK_BATCH, Draws
from quenched.execute import Traceable, Wait, obey_interrupts, shared_by_functions
from quenched.fitting.ascent import Climb, Climber, Limits
from quenched.fitting.compiling import lane_program
from quenched.fitting.drive import Driver, Entries, Judged, Summit
from quenched.fitting.method import Joint
from quenched.fitting.newton import Expansion, Mode, Newton, NewtonMachine, Search
from quenched.fitting.rows import Widths, choose_rows, put, rows, take
from quenched.outcome import Code
from quenched.problem import Rows
from quenched.targets import Form, Hyper

_TURNS = 4  # between two looks at which lanes have finished
_REFILL = 0.125  # of the lanes that must be free before others enter
_COLUMNS = 32  # of a Hessian at a time
_POINTS_AT_A_TIME = (16, 64)  # of one problem: the fewest, the most
_CACHED = 2**25  # bytes of intermediates beyond which more points at a time are slower
_VECTORS = 50  # as long as the posterior has numbers
_HEAVY = 2**20  # bytes at a time that make a problem a heavy one
_NARROW, _WIDEST = 32, 128  # lanes
_MEMORY = 2**28  # bytes for evaluating the target, unless told otherwise
_EACH: Any = Rows(own=0, shared=None)  # axes along which data are mapped


class Machines(Protocol):
    """A kind of machine, to be compiled: hashable, so that it keys the program."""

    def begin(self, inputs: Any, context: Any) -> Any:
        """Its state, given a row of inputs; with fields or properties `running` and `due`."""
        ...

    def amend(self, state: Any, context: Any) -> Any:
        """What is rare and dear, for those whose state says that it is due."""
        ...

    def turn(self, state: Any, data: Any, context: Any) -> Any:
        """One evaluation, and the machine told of it."""
        ...

    def report(self, state: Any, context: Any) -> Any:
        """What has come of it."""
        ...


@dataclass(frozen=True)
class Ascents:
    """Climbs on some draws. The context is (limits, chunks, noise)."""

    evaluate: Callable
    form: Form
    climber: Climber

    def begin(self, inputs, context):
        coordinates, hyper, rival = inputs
        return self.climber.begin(coordinates, hyper, context[0].moves, rival)

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
        rise = state.bound - state.first
        return posterior, hyper, state.bound, state.code, rise, state.count, state.count + state.renewals


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


class Carried(NamedTuple):
    """Machines side by side."""

    state: Any
    running: Array


class Done(NamedTuple):
    """What came of it, in the order of the entries."""

    reports: Any  # rows of NumPy arrays; None if nobody began
    begun: np.ndarray  # False for entries that never got a lane
    ended: np.ndarray  # False for those that were stopped on the way


def drive(
    machines: Machines,
    context: Any,
    index: np.ndarray,
    inputs: Any,
    data: Rows,
    widths: Widths,
    stop: Callable[[int], bool],
) -> Done:
    """Carry every entry to the end of its machine.

    `inputs` are rows in the order of `index`, which names the problem of each; `data` are those of all problems
    there are, on the device. `stop` is told how many have ended, and may call the work off.
    """
    n = len(index)
    begun, ended = np.zeros(n, bool), np.zeros(n, bool)

    def enter(slots: np.ndarray, alive: np.ndarray) -> tuple[Carried, Rows]:
        own = _of(data, index[slots])
        lanes = _begin(machines, rows(inputs, slots), context)
        begun[slots[alive]] = True
        return lanes._replace(running=lanes.running & alive), own

    width = widths.fit(n)
    slots, alive = np.arange(width) % n, np.arange(width) < n
    waiting = min(width, n)
    lanes, own = enter(slots, alive)
    reports: Any = None
    wait = Wait(f"{width} problems at a time")
    while alive.any():
        lanes = wait(_advance(machines, lanes, own, context))
        running = np.asarray(lanes.running)
        stopped = stop(int(ended.sum()))
        leaving = alive if stopped else alive & ~running
        if leaving.any():
            found = jax.tree.map(np.asarray, _report(machines, lanes, context))
            if reports is None:
                reports = jax.tree.map(lambda leaf: np.zeros((n, *leaf.shape[1:]), leaf.dtype), found)
            put(reports, slots[leaving], rows(found, leaving))
            ended[slots[leaving & ~running]] = True
            alive = alive & ~leaving
        if stopped:
            break
        free = int((~alive).sum())
        if waiting < n and free >= _REFILL * width:
            entering = np.flatnonzero(~alive)[: n - waiting]
            slots = slots.copy()
            slots[entering] = np.arange(waiting, waiting + len(entering))
            fresh = np.isin(np.arange(width), entering)
            new, own = enter(slots, fresh)
            lanes, alive = _merge(jnp.asarray(fresh), new, lanes), alive | fresh
            waiting += len(entering)
        elif waiting >= n and alive.any() and widths.fit(int(alive.sum())) < width:
            width = widths.fit(int(alive.sum()))
            keep = np.flatnonzero(alive)
            keep = np.concatenate([keep, np.flatnonzero(~alive)[: width - len(keep)]])
            slots, alive = slots[keep], alive[keep]
            lanes, own = take(lanes, jnp.asarray(keep)), _of(own, keep)
    return Done(reports, begun, ended)


def _of(data: Rows, places: np.ndarray) -> Rows:
    return data._replace(own=take(data.own, jnp.asarray(places)))


@partial(jax.jit, static_argnums=0)
def _begin(machines: Machines, inputs: Any, context: Any) -> Carried:
    state = jax.vmap(lambda row: machines.begin(row, context))(inputs)
    # Types that are not weak: a program would be compiled twice, for the first turns and for those after.
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), state)
    return Carried(state, jax.vmap(lambda one: one.running)(state))


@lane_program(static_argnums=0, donate_argnums=1)
def _advance(machines: Machines, lanes: Carried, data: Rows, context: Any) -> Carried:
    """A few turns of all lanes."""

    def unfinished(carry):
        lanes, turns = carry
        return (turns < _TURNS) & lanes.running.any()

    def amended(state, due):
        return choose_rows(due, jax.vmap(lambda one: machines.amend(one, context))(state), state)

    def together(carry):
        (state, running), turns = carry
        # Only few turns need it: it has a branch of its own.
        due = state.due & running
        state = jax.lax.cond(due.any(), amended, lambda state, due: state, state, due)
        ahead = jax.vmap(lambda one, own: machines.turn(one, own.one, context), (0, _EACH))(state, data)
        ahead = choose_rows(running, ahead, state)
        return Carried(ahead, running & jax.vmap(lambda one: one.running)(ahead)), turns + 1

    return jax.lax.while_loop(unfinished, together, (lanes, jnp.asarray(0)))[0]


@partial(jax.jit, static_argnums=0)
def _report(machines: Machines, lanes: Carried, context: Any) -> Any:
    return jax.vmap(lambda state: machines.report(state, context))(lanes.state)


shared_by_functions(_begin.clear_cache)  # pyright: ignore
shared_by_functions(_report.clear_cache)  # pyright: ignore


@partial(jax.jit, donate_argnums=2)
def _merge(fresh: jax.Array, new: Carried, old: Carried) -> Carried:
    return choose_rows(fresh, new, old)


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
        problem = self.batch.problem
        numbers = problem.dim * (self.coupled + 3) // 2
        each = _POINTS_AT_A_TIME[0] * problem.work.bytes_of_a_point + 8 * _VECTORS * numbers
        most = min(_WIDEST, max(1, int((problem.execution.memory or _MEMORY) // each)))
        return Widths(1 if each > _HEAVY else min(_NARROW, self.batch.n), most)

    @cached_property
    def points_at_a_time(self) -> int:
        """Draws of each problem that are evaluated together."""
        fewest, most = _POINTS_AT_A_TIME
        return int(np.clip(_CACHED // (self.widths.most * self.batch.problem.work.bytes_of_a_point), fewest, most))

    def __init__(self, batch, watch, costs, *, coupled: int, first: int):
        super().__init__(batch, watch, costs)
        self.coupled, self.first = coupled, first

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
        return self._ascents(entries, draws, limits, Climber(), rivals, "short fits", n_bounds=0)

    def climb(self, entries, draws, method, slack, record) -> Summit:
        assert isinstance(method, Joint)  # as `in_lanes` says
        limits = method.limits(entries.posterior, slack)
        rivals = np.full(len(entries.index), -np.inf)
        return self._ascents(entries, draws, limits, Climber(method.minimiser), rivals, f"{draws.n} draws", n_bounds=1)

    def _ascents(self, entries, draws, limits, climber, rivals, doing, n_bounds) -> Summit:
        coordinates = Coordinates(entries.posterior, entries.hyper.free, entries.factor)
        if limits.moves is None:
            limits = limits._replace(moves=np.ones(rows(coordinates, 0).size, bool))
        machines = Ascents(self.programs.evaluate, self.batch.problem.form, climber)
        context = (limits, self._chunks(draws, entries), self.batch.problem.noise)
        done = self._drive(machines, context, entries.index, (coordinates, entries.hyper, rivals), doing)
        posterior, hyper, bound, code, rise, count, turns = done.reports
        self.costs.add(entries.index, draws.n * turns, n_bounds * count)
        code = np.where(done.begun & ~done.ended, self._stop, code)
        return Summit(posterior, hyper, bound, code, rise, done.begun, {})

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
            found = jax.tree.map(np.asarray, program(*rows(inputs, places), _of(self._data, index[places])))
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
    return jax.vmap(one, (0, _EACH, 0))(points, data, hyper)


@lane_program(static_argnums=(0, 1, 2))
def _judge(evaluate, form: Form, profile: bool, chunks: Chunks, origin: Coordinates, hyper: Hyper, data: Rows):
    def one(origin, hyper, data):
        vector = jnp.zeros(origin.size)
        here, totals = slope_in_chunks(evaluate, form, profile, origin, vector, hyper, data.one, chunks)
        finite = jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(totals)]).all()
        return here.bound, here.hyper, finite, 0.5 * here.gradient @ here.gradient

    return jax.vmap(one, (0, 0, _EACH))(origin, hyper, data)


@lane_program(static_argnums=(0, 1))
def _log_ratios(values, form: Form, z: Array, used: Array, posterior: Any, hyper: Hyper, data: Rows) -> Array:
    one = lambda posterior, hyper, data: ratios_in_chunks(values, form, z, used, posterior, hyper, data.one)
    return jax.vmap(one, (0, 0, _EACH))(posterior, hyper, data)
