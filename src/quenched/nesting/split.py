"""Outer and inner parameters: which leaves of the start are which, and the way from the two to one vector and back."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.text import did_you_mean, shown
from quenched.transforms import Space


@dataclass(frozen=True)
class Split:
    """The leaves of a space, some of them outer. It holds no array, so that compiled programs are found again."""

    space: Space
    outer: tuple[int, ...]  # places of the outer leaves

    @cached_property
    def is_outer(self) -> np.ndarray:
        """For every coordinate of the real line."""
        leaves = np.isin(np.arange(len(self.space.leaves)), self.outer)
        return np.repeat(leaves, self.space.sizes)

    @cached_property
    def outer_places(self) -> np.ndarray:
        return np.flatnonzero(self.is_outer)

    @cached_property
    def inner_places(self) -> np.ndarray:
        return np.flatnonzero(~self.is_outer)

    @cached_property
    def order(self) -> np.ndarray:
        """Where each coordinate is in (outer, inner)."""
        return np.argsort(np.concatenate([self.outer_places, self.inner_places]))

    def join(self, theta: Array, inner: Array) -> Array:
        """One vector of the real line."""
        return jnp.concatenate([theta, inner])[self.order]

    def outer_start(self, point: np.ndarray) -> OrderedDict[str, np.ndarray]:
        """The outer part of a vector, cut into leaves on the real line, by name."""
        begins = np.cumsum([0, *self.space.sizes])
        leaves = [(i, self.space.leaves[i]) for i in self.outer]
        return OrderedDict((leaf.name, point[begins[i] : begins[i + 1]].reshape(leaf.real_shape)) for i, leaf in leaves)

    def outer_rows(self, pieces: Any) -> np.ndarray:
        """Such pieces for many points, along their first axis, as rows."""
        found = [np.asarray(pieces[self.space.leaves[i].name]) for i in self.outer]
        return np.concatenate([piece.reshape(len(piece), -1) for piece in found], axis=1)

    def outer_pieces(self, rows: np.ndarray) -> OrderedDict[str, np.ndarray]:
        """And back."""
        cuts = np.cumsum([self.space.sizes[i] for i in self.outer])[:-1]
        leaves = [self.space.leaves[i] for i in self.outer]
        parts = zip(leaves, np.split(rows, cuts, axis=1), strict=True)
        return OrderedDict((leaf.name, part.reshape(len(rows), *leaf.real_shape)) for leaf, part in parts)


def split(space: Space, outer: Sequence[str]) -> Split:
    """The leaves of these names are outer.

    Raises
    ------
    ValueError
        For a name that is none, or when nothing is left inside.
    """
    names = [leaf.name for leaf in space.leaves]
    try:
        outer = [outer] if isinstance(outer, str) else list(outer)
        named = all(isinstance(name, (str, int)) for name in outer)
    except Exception:  # of whatever it is, when it is looked at
        named = False
    if not named:
        raise ValueError(f"outer={shown(outer)}: give a list of names of parameters; start has {', '.join(names)}.")
    for name in outer:
        if name not in names:
            hint = did_you_mean(name, names)
            raise ValueError(
                f"outer: there is no parameter {shown(name)}; start has {', '.join(map(repr, names))}{hint}"
            )
    chosen = tuple(place for place, name in enumerate(names) if name in set(outer))
    found = Split(space, chosen)
    if not len(found.outer_places):
        raise ValueError(f"outer={shown(list(outer))}: names no parameter; give the few that the others depend on.")
    if not len(found.inner_places):
        raise ValueError(
            f"outer={shown(list(outer))}: names every parameter, and nothing is left inside; use quenched.fit(...) instead."
        )
    return found
