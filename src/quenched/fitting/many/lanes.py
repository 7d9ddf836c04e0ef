"""Lanes: a fixed number of problems under way together, in one compiled program.

All lanes take their turns at once. A problem that has finished leaves its lane to the next that waits; when nobody waits,
the lanes close up. So a problem that takes long holds up nobody, and one that has finished costs nothing more.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.fitting.many.rows import Widths, put, rows, take, where

_REFILL = 0.125  # of the lanes that must be free before others enter


class Work(NamedTuple):
    """One kind of work on a problem, as programs over lanes. What they carry has a field `running`."""

    begin: Callable[[Any, Any], Any]  # inputs, data
    advance: Callable[[Any, Any], Any]  # what is carried, data
    report: Callable[[Any], Any]


class Done(NamedTuple):
    """What came of it, in the order of the problems."""

    reports: Any  # rows of NumPy arrays
    begun: np.ndarray  # False for problems that never got a lane
    ended: np.ndarray  # False for those that were stopped on the way


def drive(
    work: Work, problems: np.ndarray, inputs: Any, data: Any, widths: Widths, stop: Callable[[int], bool]
) -> Done:
    """Carry every problem through its work.

    `inputs` are rows in the order of `problems`; `data` are rows of all problems there are, on the device. `stop` is told
    how many have ended, and may call the work off.
    """
    n = len(problems)
    begun, ended = np.zeros(n, bool), np.zeros(n, bool)
    width = widths.fit(n)
    slots, alive = np.arange(width) % n, np.arange(width) < n
    waiting = min(width, n)
    lanes, own = _enter(work, problems, slots, alive, inputs, data)
    begun[slots] = True
    reports: Any = None
    while alive.any():
        lanes = work.advance(lanes, own)
        running = np.asarray(lanes.running)
        stopped = stop(int(ended.sum()))
        leaving = alive if stopped else alive & ~running
        if leaving.any():
            found = jax.tree.map(np.asarray, work.report(lanes))
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
            new, own = _enter(work, problems, slots, fresh, inputs, data)
            lanes, alive = _merge(jnp.asarray(fresh), new, lanes), alive | fresh
            begun[slots[entering]] = True
            waiting += len(entering)
        elif waiting >= n and alive.any() and widths.fit(int(alive.sum())) < width:
            width = widths.fit(int(alive.sum()))
            keep = np.flatnonzero(alive)
            keep = np.concatenate([keep, np.flatnonzero(~alive)[: width - len(keep)]])
            slots, alive = slots[keep], alive[keep]
            lanes, own = take((lanes, own), jnp.asarray(keep))
    return Done(reports, begun, ended)


def _enter(work: Work, problems: np.ndarray, slots: np.ndarray, alive: np.ndarray, inputs: Any, data: Any):
    own = take(data, jnp.asarray(problems[slots]))
    lanes = work.begin(rows(inputs, slots), own)
    return lanes._replace(running=lanes.running & alive), own


@partial(jax.jit, donate_argnums=2)
def _merge(fresh: jax.Array, new: Any, old: Any) -> Any:
    return where(fresh, new, old)
