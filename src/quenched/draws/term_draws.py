"""Frozen points in the small spaces that terms see: Gauss–Hermite nodes for one number, matched draws for several.

Rows that share their draws share their errors, which then add up. So rows are dealt to several sets with scrambles of their
own, whose errors average out.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from quenched.draws.draws import make
from quenched.draws.streams import Purpose, stream
from quenched.numbers import seed_number, whole_number

_NODES = (16, 32)  # the fewest and the most for one number, which takes half as many as there are draws of several
_MORE_NODES = 5  # that the other set has: quadrature knows no seed
_PER_NUMBER = 4  # draws for each number that a term sees, at least
_SCRAMBLED = 64  # numbers; terms that see more share one set of draws
_SCRAMBLES = 16


class Points(NamedTuple):
    """Frozen points with their weights: (sets, draws, size) and (draws,)."""

    z: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class TermDraws:
    """Frozen draws of a sum of terms.

    Attributes
    ----------
    n
        Draws in each set.
    seed
        What the random numbers came from.
    other
        Whether this is the second set, by which the first is judged.
    """

    n: int
    seed: int
    other: bool = False
    kind: ClassVar[str] = "projected"
    groups: ClassVar[None] = None

    def grow(self, n: int) -> "TermDraws":
        """More draws of the same seed."""
        if n < self.n:
            raise ValueError(f"n={n}: draws grow, and there are {self.n} already.")
        return replace(self, n=n)

    def another(self, index: int = 0) -> "TermDraws":
        """As many, independent of these."""
        return TermDraws(self.n, stream(self.seed, Purpose.SHORTFALL, index), other=not self.other)

    def points(self, size: int, term: int) -> Points:
        """Those of a term that sees so many numbers."""
        if size == 1:
            return _hermite(int(np.clip(self.n // 2, *_NODES)) + _MORE_NODES * self.other)
        n = self.draws_for(size)
        sets = _SCRAMBLES if size <= _SCRAMBLED else 1
        seeds = [stream(self.seed, Purpose.TERMS, term * _SCRAMBLES + place) for place in range(sets)]
        z = np.stack([make("matched", n, size, seed).points for seed in seeds])
        return Points(z, np.full(n, 1.0 / n))

    def draws_for(self, size: int) -> int:
        """How many draws a term of several numbers gets: as many as it needs, if it sees many."""
        return max(self.n, _PER_NUMBER * size)


def term_draws(n: int, seed: int) -> TermDraws:
    """So many draws for every term.

    Raises
    ------
    ValueError
        When their number is odd, or too small.
    """
    n = whole_number("draws", n, 8)
    if n % 2:
        raise ValueError(f"draws={n}: matched draws come in pairs; use {n + 1}.")
    return TermDraws(n, seed_number("seed", seed))


def _hermite(n: int) -> Points:
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return Points(nodes[None, :, None], weights / weights.sum())
