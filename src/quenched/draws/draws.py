"""Frozen draws: the standard-normal points Z, drawn once and then kept.

Randomness enters through an explicit seed (`streams`). The raw points of a kind and seed are a
sequence: asking for more keeps those already drawn as a prefix, which is what lets a fit grow its draws and start warm.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from quenched.draws.groups import Groups, read_groups, steps
from quenched.draws.matching import match, mirror, smallest_matched
from quenched.draws.sobol import sobol_normals
from quenched.draws.streams import Purpose, generator, stream
from quenched.lately import Lately
from quenched.numbers import real_array, seed_number, whole_number
from quenched.text import shown

_MOST_NUMBERS = 2**40  # of a set of draws: more fit into no machine
_BYTES_KEPT = 2**26  # of draws that are asked for again


@dataclass(frozen=True, eq=False)
class Draws:
    """A frozen set of draws.

    Attributes
    ----------
    kind
        How they were made: a key of `kinds`.
    points
        Array (n, dim).
    seed
        What the random numbers came from.
    groups
        Sets of coordinates that are matched among themselves, and may overlap; None matches all together. Only matched
        draws have any.

    Examples
    --------
    >>> draws = qd.matched(8, 3)
    >>> draws.points.shape, draws.kind
    ((8, 3), 'matched')
    """

    kind: str
    points: np.ndarray = field(repr=False)
    seed: int
    groups: Groups | None = field(default=None, repr=False)

    def __post_init__(self):
        if not isinstance(self.kind, str) or self.kind not in kinds:
            raise ValueError(f"kind={shown(self.kind)} is not a kind of draws; use one of {', '.join(kinds)}.")
        points = real_array("points", self.points)
        if points.ndim != 2 or not points.size:
            raise ValueError(f"points has shape {points.shape}; give an array (draws, coordinates), not empty.")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "seed", seed_number("seed", self.seed))
        if self.groups is not None:
            object.__setattr__(self, "groups", read_groups(self.groups, points.shape[1]))

    @property
    def n(self) -> int:
        """How many draws."""
        return self.points.shape[0]

    @property
    def dim(self) -> int:
        """Coordinates of each."""
        return self.points.shape[1]

    @property
    def frozen(self) -> bool:
        """Nobody can write to the points; those that a person gives may be anyone's."""
        return not self.points.flags.writeable

    def grow(self, n: int) -> "Draws":
        """More draws of the same kind and seed: the raw ones are kept, and the whole set is matched again."""
        if whole_number("n", n, 1) < self.n:
            raise ValueError(f"n={n}: draws grow, and there are {self.n} already.")
        return make(self.kind, n, self.dim, self.seed, self.groups)

    def another(self) -> "Draws":
        """As many of the same kind, independent of these."""
        return make(self.kind, self.n, self.dim, stream(self.seed, Purpose.SHORTFALL), self.groups)


def iid(n: int, dim: int, seed: int = 0) -> Draws:
    """Independent draws, as in the paper.

    Examples
    --------
    >>> qd.iid(100, 2, seed=1).points.shape
    (100, 2)
    """
    return make("iid", n, dim, seed)


def antithetic(n: int, dim: int, seed: int = 0) -> Draws:
    """Independent draws and their mirror images: odd moments are exact.

    Examples
    --------
    >>> points = qd.antithetic(6, 2).points
    >>> bool(np.allclose(points.sum(axis=0), 0.0))
    True
    """
    return make("antithetic", n, dim, seed)


def sobol(n: int, dim: int, seed: int = 0) -> Draws:
    """Scrambled Sobol points through the normal quantile; best at powers of two.

    Examples
    --------
    >>> qd.sobol(64, 3).points.shape
    (64, 3)
    """
    return make("sobol", n, dim, seed)


def matched(n: int, dim: int, seed: int = 0, *, groups: Groups | None = None) -> Draws:
    """Scrambled Sobol points, mirrored and whitened: mean 0 and covariance I hold exactly.

    So Gaussian posteriors are found exactly, and others with fewer draws than independent points would take.

    With `groups`, sets of coordinates such as every (global, local) pair, they hold within each set, and the number of
    draws need only be twice the size of the largest: for models that couple no others.

    Examples
    --------
    >>> points = qd.matched(16, 3).points
    >>> bool(np.allclose(points.T @ points / 16, np.eye(3))), bool(np.allclose(points.mean(axis=0), 0.0))
    (True, True)
    """
    return make("matched", n, dim, seed, groups)


def make(kind: str, n: int, dim: int, seed: int = 0, groups: Groups | None = None) -> Draws:
    """Make draws of any kind by name."""
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"kind={shown(kind)} is not a kind of draws; use one of {', '.join(kinds)}.")
    n, dim, seed = whole_number("n", n, 1), whole_number("dim", dim, 1), seed_number("seed", seed)
    if n * dim > _MOST_NUMBERS:
        raise ValueError(f"n={n}: so many draws of {dim} coordinates fit into no machine; use fewer.")
    if groups is not None:
        if kind != "matched":
            raise ValueError(f"groups: {kind} draws are not matched, so there are none; use kind='matched'.")
        groups = read_groups(groups, dim)
    least = smallest(kind, dim, groups)
    if n < least or (kind in _MIRRORED and n % 2):
        even = " and an even number" if kind in _MIRRORED else ""
        what = f"{dim} coordinates" if groups is None else f"groups of up to {max(map(len, groups))} coordinates"
        if groups is not None and steps(groups) is None:
            what = f"groups that overlap in a ring, so that all {dim} coordinates are matched together,"
        raise ValueError(f"n={n}: {kind} draws of {what} need at least {least} draws{even}.")
    return _made(kind, n, dim, seed, groups)


def _make(kind: str, n: int, dim: int, seed: int, groups: Groups | None) -> Draws:
    points = kinds[kind].finish(kinds[kind].raw(n, dim, seed), groups)
    points.setflags(write=False)  # frozen, and shared between the fits that ask for the same
    return Draws(kind, points, seed, groups)


_made = Lately(_make, lambda draws: draws.points.nbytes, _BYTES_KEPT)


def replicates(draws: Draws, count: int, seed: int) -> tuple[list[Draws], Draws]:
    """Independent sets of the same kind and size, and one larger set made of the raw points of them all.

    What sets of this size have in common, and the larger one has not, is the bias of their size.
    """
    kind = kinds[draws.kind]
    seeds = [stream(seed, Purpose.REPLICATES, index) for index in range(count)]
    raw = [kind.raw(draws.n, draws.dim, own) for own in seeds]
    finish = lambda points: kind.finish(points, draws.groups)
    sets = [Draws(draws.kind, finish(points), own, draws.groups) for points, own in zip(raw, seeds, strict=True)]
    return sets, Draws(draws.kind, finish(np.concatenate(raw)), seed, draws.groups)


def smallest(kind: str, dim: int, groups: Groups | None = None) -> int:
    """The fewest draws of a kind."""
    if kind == "matched":
        return smallest_matched(dim, groups)
    return 2 if kind in _MIRRORED else 1


def _raw_normal(n: int, dim: int, seed: int) -> np.ndarray:
    return generator(seed, Purpose.DRAWS).standard_normal((n, dim))


def _raw_sobol(n: int, dim: int, seed: int) -> np.ndarray:
    return sobol_normals(n, dim, generator(seed, Purpose.DRAWS))[0]


_MIRRORED = ("antithetic", "matched")


class Kind(NamedTuple):
    """How draws are made: raw points from a seed, then whatever is done to the whole set of them."""

    raw: Callable[[int, int, int], np.ndarray]
    finish: Callable[[np.ndarray, Groups | None], np.ndarray]


kinds: dict[str, Kind] = {
    "iid": Kind(_raw_normal, lambda raw, groups: raw),
    "antithetic": Kind(lambda n, *rest: _raw_normal(n // 2, *rest), lambda raw, groups: mirror(raw)),
    "sobol": Kind(_raw_sobol, lambda raw, groups: raw),
    "matched": Kind(lambda n, *rest: _raw_sobol(n // 2, *rest), lambda raw, groups: mirror(match(raw, groups))),
}
