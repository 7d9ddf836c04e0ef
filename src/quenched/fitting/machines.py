"""Machines side by side in one compiled program, an entry each.

There is a fixed number of lanes, and all take their turns at once. An entry that has finished leaves its lane to the next
that waits; when nobody waits, the lanes close up. So one that takes long holds up nobody, and one that has finished costs
nothing more. Where there are more entries than lanes, every core has lanes of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import compiled, known, let_go_with_functions
from quenched.execute import Effort, Wait
from quenched.fitting.callers import Callers
from quenched.fitting.rows import Widths, choose_rows, put, rows, take
from quenched.objective import Rows

_TURNS = 4  # between two looks at which lanes have finished
_REFILL = 0.25  # of the lanes that must be free before others enter
EACH: Any = Rows(own=0, shared=None)  # axes along which data are mapped
# XLA hands reductions and small products on the CPU to a library. For many short vectors side by side its calls cost
# more than the loops that XLA makes itself (two to three times, in the gradients of eight schools).
_OWN_LOOPS = (("xla_cpu_experimental_ynn_fusion_type", ""),)
# Turns of eight schools, 64 at a time, compile in 6.1 s of processor time with all that XLA has and in 3.6 s with some, and
# then run as fast; with little they compile in 1.1 s and run two to three times as long.
_OPTIONS = {
    Effort.ALL: _OWN_LOOPS,
    Effort.SOME: (
        *_OWN_LOOPS,
        ("xla_cpu_use_fusion_emitters", False),
        ("xla_backend_optimization_level", 1),
        ("xla_cpu_parallel_codegen_split_count", 1),
    ),
    Effort.LITTLE: Effort.LITTLE.value,
}


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


class Carried(NamedTuple):
    """Machines side by side."""

    state: Any
    running: Array


class Done(NamedTuple):
    """What came of it, in the order of the entries."""

    reports: Any  # rows of NumPy arrays; None if nobody began
    begun: np.ndarray  # False for entries that never got a lane
    ended: np.ndarray  # False for those that were stopped on the way


@dataclass
class Team:
    """Lanes that take their turns together."""

    place: int  # among the teams
    lanes: Any  # as they are carried; or, under way, a future of it
    data: Rows  # of the problem in each lane
    slots: np.ndarray  # the entry in each lane
    alive: np.ndarray  # False for lanes that nobody is in


def drive(
    machines: Machines,
    context: Any,
    index: np.ndarray,
    inputs: Any,
    data: Rows,
    widths: Widths,
    stop: Callable[[int], bool],
    call: Callers,
    effort: Effort = Effort.LITTLE,
) -> Done:
    """Carry every entry to the end of its machine.

    `inputs` are rows in the order of `index`, which names the problem of each; `data` are those of all problems
    there are, on the device. `stop` is told how many have ended, and may call the work off. Turns are compiled with `effort`.
    """
    crowd, stopped = _Crowd(machines, context, index, inputs, data, widths, call, effort), False
    wait = Wait(f"{widths.fit(len(index))} problems at a time")
    teams = crowd.teams()
    while teams:
        team = teams.pop(0)
        team.lanes = wait(team.lanes.result())
        running = np.asarray(team.lanes.running)
        crowd.ended[team.slots[team.alive & ~running]] = True
        stopped = stopped or stop(int(crowd.ended.sum()))
        if stopped:
            crowd.leave(team, team.alive)
        else:
            crowd.change(team, team.alive & ~running)
            if team.alive.any():
                crowd.advance(team)
                teams.append(team)
    return Done(crowd.reports, crowd.begun, crowd.ended)


class _Crowd:
    """Entries that wait, and what has come of others."""

    def __init__(self, machines, context, index, inputs, data, widths: Widths, call: Callers, effort: Effort):
        self.machines, self.inputs, self.data, self.index = machines, inputs, data, index
        self.context = jax.device_put(jax.tree.map(np.asarray, context))  # once, and of types that are not weak
        self.widths, self.call, self.effort, self.n = widths, call, effort, len(index)
        self.begun, self.ended = np.zeros(self.n, bool), np.zeros(self.n, bool)
        self.waiting = 0  # the first that waits
        self.reports: Any = None

    def teams(self) -> list[Team]:
        """All of them, under way."""
        width, teams = self.widths.fit(self.n), []
        while self.waiting < self.n and len(teams) < self.call.n:
            lanes = np.arange(width)
            slots, alive = (self.waiting + lanes) % self.n, self.waiting + lanes < self.n
            teams.append(Team(len(teams), *self._entered(slots, alive), slots, alive))
            self.waiting = min(self.waiting + width, self.n)
            self.advance(teams[-1])
            teams[0].lanes.result()  # what they all call is compiled by the first
        return teams

    def advance(self, team: Team) -> None:
        """A few turns, which may not be over yet."""
        team.lanes = self.call(team.place, _advance, self.effort, self.machines, team.lanes, team.data, self.context)

    def change(self, team: Team, done: np.ndarray) -> None:
        """Where enough lanes are done, others take their places; where nobody waits, the lanes close up."""
        width, free = len(team.slots), int((done | ~team.alive).sum())
        waits, fits = self.waiting < self.n, self.widths.fit(max(width - free, 1)) < width
        if free == width or (free >= _REFILL * width if waits else fits):
            self.leave(team, done)
            if waits:
                self._fill(team)
            elif fits and free < width:
                self._close_up(team, self.widths.fit(width - free))

    def leave(self, team: Team, leaving: np.ndarray) -> None:
        """Write down what has come of those that leave."""
        found = jax.tree.map(np.asarray, _report(Effort.LITTLE, self.machines, team.lanes, self.context))
        if self.reports is None:
            self.reports = jax.tree.map(lambda leaf: np.zeros((self.n, *leaf.shape[1:]), leaf.dtype), found)
        put(self.reports, team.slots[leaving], rows(found, leaving))
        team.alive = team.alive & ~leaving

    def _fill(self, team: Team) -> None:
        entering = np.flatnonzero(~team.alive)[: self.n - self.waiting]
        team.slots = team.slots.copy()
        team.slots[entering] = np.arange(self.waiting, self.waiting + len(entering))
        self.waiting += len(entering)
        fresh = np.isin(np.arange(len(team.slots)), entering)
        new, team.data = self._entered(team.slots, fresh)
        team.lanes = _merge(Effort.LITTLE, fresh, new, team.lanes) if team.alive.any() else new
        team.alive = team.alive | fresh

    def _close_up(self, team: Team, width: int) -> None:
        keep = np.concatenate([np.flatnonzero(team.alive), np.flatnonzero(~team.alive)])[:width]
        team.slots, team.alive = team.slots[keep], team.alive[keep]
        team.lanes, team.data = take(team.lanes, keep), data_of(team.data, keep)

    def _entered(self, slots: np.ndarray, alive: np.ndarray) -> tuple[Carried, Rows]:
        self.begun[slots[alive]] = True
        lanes = _begin(Effort.LITTLE, self.machines, rows(self.inputs, slots), alive, self.context)
        return lanes, data_of(self.data, self.index[slots])


def compile_machines(machines: Machines, context: Any, inputs: Any, data: Rows, width: int, effort: Effort) -> None:
    """Compile what `drive` asks for, by lanes that nobody is in; `inputs` are a row, `data` those of a problem, in a row."""
    little, nobody, first = Effort.LITTLE, np.zeros(width, bool), np.zeros(width, int)
    context = jax.device_put(jax.tree.map(np.asarray, context))
    begin = lambda: _begin(little, machines, rows(inputs, first), nobody, context)
    lanes = _advance(effort, machines, begin(), data_of(data, first), context)
    _report(little, machines, _merge(little, nobody, begin(), lanes), context)


def data_of(data: Rows, places: np.ndarray) -> Rows:
    """The data of the problems at some places."""
    return data._replace(own=take(data.own, places))


def lane_program(**settings: Any) -> Callable[[Callable], Callable]:
    """`compiled`, with the effort that a call is given first."""

    def decorate(function: Callable) -> Callable:
        @cache
        def made(effort: Effort) -> Callable:
            return compiled(function, compiler_options=known(_OPTIONS[effort]), **settings)

        @wraps(function)
        def call(effort: Effort, *inputs):
            return made(effort)(*inputs)

        def let_go() -> None:
            for effort in Effort if made.cache_info().currsize else ():
                made(effort).clear_cache()

        let_go_with_functions(let_go)
        return call

    return decorate


@lane_program(static_argnums=0)
def _begin(machines: Machines, inputs: Any, alive: Array, context: Any) -> Carried:
    state = jax.vmap(lambda row: machines.begin(row, context))(inputs)
    # Types that are not weak: a program would be compiled twice, for the first turns and for those after.
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), state)
    return Carried(state, alive & jax.vmap(lambda one: one.running)(state))


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
        ahead = jax.vmap(lambda one, own: machines.turn(one, own.one, context), (0, EACH))(state, data)
        ahead = choose_rows(running, ahead, state)
        return Carried(ahead, running & jax.vmap(lambda one: one.running)(ahead)), turns + 1

    return jax.lax.while_loop(unfinished, together, (lanes, jnp.asarray(0)))[0]


@lane_program(static_argnums=0)
def _report(machines: Machines, lanes: Carried, context: Any) -> Any:
    return jax.vmap(lambda state: machines.report(state, context))(lanes.state)


@lane_program(donate_argnums=2)
def _merge(fresh: Array, new: Carried, old: Carried) -> Carried:
    return choose_rows(fresh, new, old)
