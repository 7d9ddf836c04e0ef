"""What happened in a fit: its status, its rounds, and the optima it met."""

from collections.abc import Iterator
from enum import IntEnum, StrEnum
from typing import NamedTuple

import numpy as np


class Status(StrEnum):
    """What happened; the message of each says what to do next.

    Examples
    --------
    >>> fit = qd.fit(lambda w: -0.5 * w**2, 0.0)
    >>> fit.status == qd.Status.CONVERGED, fit.status == "converged"
    (True, True)
    """

    CONVERGED = "converged"
    MAX_EVALUATIONS = "max_evaluations"
    MAX_SECONDS = "max_seconds"
    NO_ASCENT = "no_ascent"
    NOT_FINITE = "not_finite"
    INTERRUPTED = "interrupted"
    GIVEN = "given"
    NO_MAXIMUM = "no_maximum"

    @property
    def message(self) -> str:
        """What happened and what to do next, in words."""
        return self.told("fit")

    def told(self, start: str) -> str:
        """The same, with where it can be gone on from."""
        return {
            "converged": "Converged.",
            "max_evaluations": "Stopped at the method's limit of evaluations or rounds before converging; "
            f"resume with start={start}, or raise the limit.",
            "max_seconds": f"Stopped at max_seconds before converging; resume with start={start}.",
            "no_ascent": "Stopped where no step raises the bound although its gradient is not zero: check that "
            "the log density is smooth and its gradient right.",
            "not_finite": "The log density is not finite where it is needed.",
            "interrupted": f"Interrupted; what was reached is kept. Resume with start={start}.",
            "given": "The posterior was given; nothing was raised.",
            "no_maximum": "The log density has no maximum here: it is flat, or still rises. Start elsewhere, give a proper "
            "prior, or let qd.fit choose by the bound.",
        }[self.value]


class Code(IntEnum):
    """A status as a number, which a compiled program can hold; and RUNNING, which is none yet."""

    RUNNING = 0
    CONVERGED = 1
    MAX_EVALUATIONS = 2
    MAX_SECONDS = 3
    NO_ASCENT = 4
    NOT_FINITE = 5
    INTERRUPTED = 6
    GIVEN = 7
    NO_MAXIMUM = 8

    @property
    def status(self) -> Status:
        """Under the same name."""
        return Status[self.name]


class Round(NamedTuple):
    """One outer pass: the bound on the draws and on the check draws, and what the draws may have cost."""

    n_draws: int
    bound: float
    check_bound: float
    check_error: float
    n_evaluations: int
    shortfall: float = float("nan")  # nats below the best of the family, on account of the draws


class History(tuple[Round, ...]):
    """Rounds in order. `history.bound` (or `history["bound"]`) is that field over all rounds, as an array.

    Examples
    --------
    >>> history = qd.fit(lambda w: -0.5 * w**2, 0.0).history
    >>> len(history) == len(history["bound"]) and bool(history[-1].bound == history.bound[-1])
    True
    """

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in Round._fields:
            raise AttributeError(name)
        return np.array([getattr(entry, name) for entry in tuple(self)])

    def __getitem__(self, key):
        return getattr(self, key) if isinstance(key, str) else super().__getitem__(key)

    def __iter__(self) -> Iterator[Round]:
        return super().__iter__()


class Optimum(NamedTuple):
    """A distinct optimum found from one or more of the starts."""

    bound: float
    mean: np.ndarray  # on the real line
    n_starts: int
