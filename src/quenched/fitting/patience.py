"""Ascents on few draws that take long are asked on the way whether they still follow the target, or their draws alone.

What a small set promises beyond a few dozen turns is mostly its own: other draws take it back many times over. Then it is
broken off, and more draws are taken from where it stands: such last nats would take most evaluations of a hard fit.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from quenched.draws import Draws
from quenched.fitting.drive import Driver, Entries, Summit
from quenched.fitting.method import Joint, Method
from quenched.fitting.rows import put, rows
from quenched.fitting.settings import Settings
from quenched.results import Code

PATIENCE = 40  # turns, more than most ascents take
_PER_COORDINATE, _AT_LEAST = 0.05, 0.5  # nats that other draws take back where they are the draws' own


class Tops(NamedTuple):
    """Where ascents ended, and what other draws take back of those that were broken off; NaN of the others."""

    tops: Summit
    taken_back: np.ndarray


def may_be_broken_off(settings: Settings, draws: Draws) -> bool:
    """Whether more draws can be taken instead of the last nats of these."""
    method = settings.method
    longer = isinstance(method, Joint) and method.max_evaluations > PATIENCE
    return longer and settings.family.affine and 2 * draws.n <= settings.most_draws


def climb(driver: Driver, entries: Entries, draws: Draws, method: Method, slack: float) -> Tops:
    """Raise bounds; those that are still rising after a while go on only where other draws agree."""
    assert isinstance(method, Joint)  # as `may_be_broken_off` says
    tops = driver.climb(entries, draws, replace(method, max_evaluations=PATIENCE), slack, None)
    taken_back = np.full(len(tops.bound), np.nan)
    slow = np.flatnonzero(tops.begun & (tops.code == Code.MAX_EVALUATIONS))
    if not len(slow) or driver.stopped:
        return Tops(tops, taken_back)
    standing = _standing(entries, tops, slow)
    with np.errstate(invalid="ignore"):
        lost = np.nan_to_num(standing.bound - driver.judge(standing, draws.another()).bound, nan=np.inf)
    follows = lost > _PER_COORDINATE * driver.batch.problem.dim + _AT_LEAST
    taken_back[slow[follows]] = lost[follows]
    going = slow[~follows]
    tops = tops._replace(code=np.where(np.isnan(taken_back), tops.code, Code.CONVERGED))
    if len(going):
        left = replace(method, max_evaluations=method.max_evaluations - PATIENCE)
        further = driver.climb(_standing(entries, tops, going), draws, left, slack, None)
        tops = _with(tops, going, further)
    return Tops(tops, taken_back)


def _standing(entries: Entries, tops: Summit, places: np.ndarray) -> Entries:
    """Where some ascents stand, in the coordinates in which they began."""
    factor = None if entries.factor is None else entries.factor[places]
    return Entries(entries.index[places], *rows((tops.posterior, tops.hyper, tops.bound), places), factor=factor)


def _with(tops: Summit, places: np.ndarray, further: Summit) -> Summit:
    """Some ascents, gone on with; those that never had their turn again stand where they did."""
    begun = np.flatnonzero(further.begun)
    there = places[begun]
    copied: Callable = lambda tree: jax.tree.map(np.array, tree)
    posterior, hyper, bound, code, rise = (copied(part) for part in tops[:5])
    further = rows(further._replace(notes={}), begun)._replace(notes=further.notes)
    put((posterior, hyper, bound, code), there, further[:4])
    rise[there] += further.rise
    code[np.setdiff1d(places, there)] = Code.MAX_SECONDS
    notes = tops.notes | {int(places[place]): note for place, note in further.notes.items()}
    return Summit(posterior, hyper, bound, code, rise, tops.begun, notes)
