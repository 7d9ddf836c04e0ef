"""Machines side by side in one compiled program, an entry each.

There is a fixed number of lanes, and all take their turns at once. An entry that has finished leaves its lane to the next
that waits; when nobody waits, the lanes close up. So one that takes long holds up nobody, and one that has finished costs
nothing more.
"""

from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import known, let_go_with_functions, program
from quenched.execute import Wait, compiled
from quenched.fitting.rows import Widths, choose_rows, put, rows, take
from quenched.objective import Rows

_TURNS = 4  # between two looks at which lanes have finished
_REFILL = 0.125  # of the lanes that must be free before others enter
EACH: Any = Rows(own=0, shared=None)  # axes along which data are mapped
# XLA hands reductions and small products on the CPU to a library. For many short vectors side by side its calls cost
# more than the loops that XLA makes itself (two to three times, in the gradients of eight schools).
_OWN_LOOPS = (("xla_cpu_experimental_ynn_fusion_type", ""),)


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
        own = data_of(data, index[slots])
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
            lanes, own = take(lanes, jnp.asarray(keep)), data_of(own, keep)
    return Done(reports, begun, ended)


def data_of(data: Rows, places: np.ndarray) -> Rows:
    """The data of the problems at some places."""
    return data._replace(own=take(data.own, jnp.asarray(places)))


def lane_program(**settings: Any) -> Callable[[Callable], Callable]:
    """`jax.jit`, with the compiler's own loops where it knows that option."""

    def decorate(function: Callable) -> Callable:
        @cache
        def made() -> Callable:
            return compiled(function, compiler_options=known(_OWN_LOOPS), **settings)

        @wraps(function)
        def call(*inputs):
            return made()(*inputs)

        let_go_with_functions(lambda: made().clear_cache() if made.cache_info().currsize else None)
        return call

    return decorate


@partial(program, of_functions=True, static_argnums=0)
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
        ahead = jax.vmap(lambda one, own: machines.turn(one, own.one, context), (0, EACH))(state, data)
        ahead = choose_rows(running, ahead, state)
        return Carried(ahead, running & jax.vmap(lambda one: one.running)(ahead)), turns + 1

    return jax.lax.while_loop(unfinished, together, (lanes, jnp.asarray(0)))[0]


@partial(program, of_functions=True, static_argnums=0)
def _report(machines: Machines, lanes: Carried, context: Any) -> Any:
    return jax.vmap(lambda state: machines.report(state, context))(lanes.state)


@partial(program, donate_argnums=2)
def _merge(fresh: jax.Array, new: Carried, old: Carried) -> Carried:
    return choose_rows(fresh, new, old)
