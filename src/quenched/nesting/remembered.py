"""Inner Gaussians that were solved for lately, so that searches near them begin there.

An ascent asks for the same draws again and again, each time a little further on. From its neighbour a search takes two or three
steps, from a polynomial in the outer parameters twice as many.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.nesting.guess import Guess
from quenched.nesting.newton import Conditionals

_NUMBERS = 2e7  # that may be held
_NEAR = 1.0  # in the units of the guess, within which a neighbour helps


class Near(NamedTuple):
    """For every lane an outer point and the inner Gaussian there; `known` says where there is one."""

    known: Array
    thetas: Array
    conditionals: Conditionals

    def begin(self, guess: Guess, thetas: Array, algebra: Any) -> Conditionals:
        """The neighbour's Gaussian, moved and stretched as the guess says; where there is none, the guess."""
        here, there = guess.at(thetas, algebra), guess.at(jnp.where(self.known[:, None], self.thetas, thetas), algebra)
        ratio = jnp.sqrt(here.precision[algebra.diagonal] / there.precision[algebra.diagonal])
        precision = self.conditionals.precision * ratio[algebra.rows] * ratio[algebra.columns]
        moved = Conditionals(self.conditionals.mean + here.mean - there.mean, precision)
        return jax.tree.map(lambda a, b: jnp.where(self.known, a, b), moved, here)


class Remembered:
    """The last few solutions, the newest first."""

    def __init__(self, dim: int, entries: int, least: int):
        self.shapes = (dim, entries)
        rows = int(_NUMBERS / (dim + entries))
        self.most = rows if rows >= least else 0  # too large to keep: none are
        self.blocks: list[tuple[np.ndarray, Conditionals]] = []

    def keep(self, thetas: np.ndarray, found: Conditionals, sound: np.ndarray) -> None:
        """Some more."""
        if not self.most or not sound.any():
            return
        kept = np.flatnonzero(sound)[: self.most]
        self.blocks.insert(0, (thetas[kept], Conditionals(*(part[:, kept] for part in found))))
        held = np.cumsum([len(block) for block, _ in self.blocks])
        del self.blocks[max(1, int(np.searchsorted(held, self.most, side="right"))) :]

    def near(self, thetas: np.ndarray, unit: np.ndarray) -> Near | None:
        """The nearest of them to each of these points."""
        if not self.most:
            return None
        n = len(thetas)
        nothing = Conditionals(*(np.ones((size, n)) for size in self.shapes))
        found = Near(np.zeros(n, bool), np.zeros_like(thetas), nothing)
        nearest = np.full(n, _NEAR**2)
        for others, conditionals in self.blocks:
            apart = np.sum(((thetas[:, None] - others) / unit) ** 2, axis=2)
            place = np.argmin(apart, axis=1)
            nearer = np.flatnonzero(apart[np.arange(n), place] < nearest)
            nearest[nearer] = apart[nearer, place[nearer]]
            found.known[nearer], found.thetas[nearer] = True, others[place[nearer]]
            for into, part in zip(found.conditionals, conditionals, strict=True):
                into[:, nearer] = part[:, place[nearer]]
        return found
