"""What a fit asks of whoever does the work, on rows: entries that each name the problem they belong to.

There are two drivers. `Alone` takes entries one by one on the host: a single fit, functions that JAX cannot trace, methods
with a loop of their own; it can be interrupted and says what is wrong in words. `Lanes` takes many together in compiled
programs. Start, rounds and monitor are written over this face and do not know which of the two they have.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from quenched.arrays import Array
from quenched.draws import Draws
from quenched.families import Member
from quenched.fitting.ascent import Limits
from quenched.fitting.method import Method
from quenched.fitting.newton import Expansion, Mode, Search
from quenched.fitting.progress import Watcher
from quenched.fitting.rows import rows
from quenched.objective import Batch, Totals
from quenched.targets import Hyper

Record = Callable[[int, Member, Hyper, float], None]  # told of the end of a round of a problem


class Entries(NamedTuple):
    """Posteriors of some problems, in rows."""

    index: np.ndarray  # of the problem of each
    posterior: Member
    hyper: Hyper
    bound: np.ndarray  # on the draws; of no meaning before they have been judged
    factor: np.ndarray | None = None  # of the target's covariance, where the family cannot hold its correlations
    known: list[Totals | None] | None = None  # totals of each on the draws, where they have been taken

    def some(self, places: np.ndarray | list[int]) -> "Entries":
        """Those at some places; `factor` goes."""
        index, posterior, hyper, bound = rows((self.index, self.posterior, self.hyper, self.bound), places)
        known = None if self.known is None else [self.known[int(place)] for place in np.arange(len(self.index))[places]]
        return Entries(index, posterior, hyper, bound, known=known)


class Judged(NamedTuple):
    """What posteriors are worth on some draws."""

    bound: np.ndarray
    hyper: Hyper  # with the best precisions
    finite: np.ndarray  # the target and its gradient are finite at every draw
    promise: np.ndarray  # nats to be gained on these draws, by the gradient in whitened coordinates
    totals: list[Totals | None] | None = None


class Summit(NamedTuple):
    """Where ascents ended, in rows."""

    posterior: Member
    hyper: Hyper
    bound: np.ndarray
    code: np.ndarray
    rise: np.ndarray  # since they began
    begun: np.ndarray  # False for those that never had their turn
    notes: dict[int, str]  # by row


class Costs:
    """Gradient evaluations of each problem, and evaluations of its bound."""

    def __init__(self, n: int):
        self.gradients, self.bounds = np.zeros(n, int), np.zeros(n, int)

    def add(self, index: np.ndarray | int, gradients: Array | int, bounds: Array | int = 0) -> None:
        """An index may be there several times."""
        for counted, more in ((self.gradients, gradients), (self.bounds, bounds)):
            if isinstance(index, np.ndarray):
                np.add.at(counted, index, more)
            else:
                counted[index] += more


class Driver(ABC):
    """Does the work of a fit."""

    explains: ClassVar[bool]  # says in words what is wrong, and has other ways out

    def __init__(self, batch: Batch, watch: Watcher, costs: Costs):
        self.batch, self.watch, self.costs = batch, watch, costs
        self.interrupted = False
        self.stuck = False  # in a program that does not return: others would not either

    @property
    def stopped(self) -> bool:
        """Time is up, or someone has had enough."""
        return self.interrupted or self.watch.expired

    def affordable(self, n: int) -> int:
        """How many of n check draws are taken."""
        return n

    def prepare(self, problem: int, posterior: Member, hyper: Hyper, draws: Draws) -> None:  # noqa: B027
        """Told of a posterior like those that are to be judged soon, while there is other work to be done."""

    @abstractmethod
    def expand(self, index: np.ndarray, points: np.ndarray, hyper: Hyper) -> Expansion:
        """The targets to second order, each at its own point."""

    @abstractmethod
    def modes(self, index: np.ndarray, at: Expansion, hyper: Hyper, search: Search) -> tuple[np.ndarray, Mode]:
        """Climb from expansions to modes: which were looked for at all, and what was found of those."""

    @abstractmethod
    def judge(self, entries: Entries, draws: Draws, *, profile: bool = True) -> Judged:
        """The bounds of posteriors; with `profile`, each at its best precisions."""

    @abstractmethod
    def short_fits(self, entries: Entries, draws: Draws, limits: Limits, rivals: np.ndarray) -> Summit:
        """A few turns of the ascent, for as long as each may beat its rival."""

    @abstractmethod
    def climb(self, entries: Entries, draws: Draws, method: Method, slack: float, record: Record | None) -> Summit:
        """Raise bounds to their tops, but for a part of `slack` nats. `record` is told of rounds that a method has inside."""

    @abstractmethod
    def log_ratios(self, entries: Entries, z: np.ndarray) -> np.ndarray:
        """log p − log q of each entry at each of the draws, (entries, draws)."""
