"""What the rows of a sum of terms see of the inner parameters, for given outer ones, and at which points they are asked.

A row sees v = A u of the inner parameters, besides the outer ones. Where its log density depends on fewer combinations (a sum
of effects is one number) those are taken; where it is quadratic in them, as a Gaussian prior is, the fewest points that are
exact for quadratics are enough.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import program
from quenched.draws import Purpose, generator, make, stream
from quenched.nesting.maps import Maps, SharedMaps, make_maps
from quenched.nesting.split import Split
from quenched.targets import LocalTerm, SparseRows, log_density_of

_NODES = 16  # of Gauss-Hermite quadrature in one number
_TENSOR = 10  # for each of two
_DRAWS = 16  # for each number, of more
_SAME = 1e-9  # relative
_TRIED = 3  # points at which a structure is looked for


@dataclass(frozen=True)
class TermRows:
    """Terms of one kind: structure alone."""

    term: Any  # None for a log-Jacobian
    sights: tuple[Any, ...]
    outside: tuple[bool, ...]  # by piece: whether it is of an outer leaf

    def numbers(self, seen: Array, theta: Array, outer: tuple[Any, ...]) -> Array:
        """All numbers that one row sees, in the order of its pieces: inner ones as given, outer ones gathered."""
        pieces, first, place = [], 0, 0
        for sight, outside in zip(self.sights, self.outside, strict=True):
            if outside:
                pieces.append(outer[place].gather(theta))
                place += 1
            else:
                pieces.append(seen[first : first + sight.size])
                first += sight.size
        return jnp.concatenate(pieces)

    def at(self, combinations: Array, theta: Array, own: "Own", given: Any) -> Array:
        """The log density of one row at the combinations that it depends on."""
        return self.log_density(jnp.sum(own.back * combinations, axis=1), theta, own, given)

    def log_density(self, seen: Array, theta: Array, own: "Own", given: Any) -> Array:
        """Of one row at the inner numbers that it sees."""
        numbers = self.numbers(seen, theta, own.outer)
        return log_density_of(self.term, self.sights, numbers, own.held, given)


class Gathered(NamedTuple):
    """Outer numbers of the rows: coordinates (rows, size), and for linear predictors the coefficients (rows, columns)."""

    places: Array
    design: Array | None = None

    def gather(self, theta: Array) -> Array:
        """Of one row."""
        found = theta[self.places]
        return found if self.design is None else self.design @ found


class Own(NamedTuple):
    """Arrays with the rows along their first axis."""

    held: Any
    outer: tuple[Gathered, ...]
    back: Any = None  # (rows, numbers, combinations): numbers that give these combinations


class RowArrays(NamedTuple):
    """All arrays of a term."""

    own: Own
    maps: Maps | SharedMaps  # from inner coordinates to combinations of them
    z: Array  # points, (n, combinations)
    weights: Array


def read_rows(
    term: LocalTerm, split: Split, algebra: Any, point: np.ndarray, given: Any, seed: int
) -> tuple[TermRows, RowArrays]:
    """One term, divided; `point` is a vector of the real line around which structure is looked for."""
    outside = _outside(term, split)
    rows = TermRows(term.term, term.sights, outside)
    to_outer = np.cumsum(split.is_outer) - 1
    outer = tuple(_gathered(piece, to_outer, term.n) for piece, out in zip(term.pieces, outside, strict=True) if out)
    own = Own(term.held, outer)
    columns, values = _maps(term, outside, split)
    centre = np.einsum("nsk,nk->ns", values, point[split.inner_places][columns])
    forth, quadratic = _structure(rows, own, centre, point[split.outer_places], given)
    z, weights = _points(forth.shape[1], quadratic, seed)
    values = np.einsum("nrs,nsk->nrk", forth, values)
    own = own._replace(back=np.swapaxes(forth, 1, 2).copy())
    return rows, RowArrays(own, make_maps(columns, values, algebra), z, weights)


def seen_by(term: LocalTerm, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Inner coordinates of the rows of a term, (rows, few), and which of them they really see."""
    columns, values = _maps(term, _outside(term, split), split)
    return columns, np.any(values != 0.0, axis=1)


def _outside(term: LocalTerm, split: Split) -> tuple[bool, ...]:
    return tuple(bool(split.is_outer[piece.coordinates()].all()) for piece in term.pieces)


def _gathered(piece: Any, to_outer: np.ndarray, n: int) -> Gathered:
    if isinstance(piece.design, SparseRows):
        return Gathered(to_outer[piece.positions[piece.design.columns]], np.asarray(piece.design.values))
    if piece.design is not None:
        places = np.broadcast_to(to_outer[piece.positions], (n, *piece.positions.shape))
        return Gathered(places, np.asarray(piece.design))
    return Gathered(np.broadcast_to(to_outer[piece.positions], (n, piece.size)))


def _maps(term: LocalTerm, outside: tuple[bool, ...], split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Inner coordinates (rows, few) and their coefficients (rows, inner numbers, few)."""
    to_inner = np.cumsum(~split.is_outer) - 1
    inner = [piece for piece, out in zip(term.pieces, outside, strict=True) if not out]
    size = sum(piece.size for piece in inner)
    columns, values, first = [np.zeros((term.n, 0), int)], [np.zeros((term.n, size, 0))], 0
    for piece in inner:
        found, coefficients = _coefficients(piece, term.n)
        own = np.zeros((term.n, size, found.shape[1]))
        own[:, first : first + piece.size] = coefficients
        columns.append(to_inner[found])
        values.append(own)
        first += piece.size
    return np.concatenate(columns, axis=1), np.concatenate(values, axis=2)


def _coefficients(piece: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (rows, k) of one piece and what multiplies them, (rows, size, k)."""
    unit = np.eye(piece.size)
    if piece.design is None:
        return np.broadcast_to(piece.positions, (n, piece.size)), np.broadcast_to(unit, (n, *unit.shape))
    sparse = isinstance(piece.design, SparseRows)
    coefficients = piece.design.values if sparse else np.asarray(piece.design)
    positions = (
        piece.positions[piece.design.columns]
        if sparse
        else np.broadcast_to(piece.positions, (n, *piece.positions.shape))
    )
    spread = np.einsum("nc,sj->nscj", coefficients, unit)
    return positions.reshape(n, -1), spread.reshape(n, piece.size, -1)


def _structure(rows: TermRows, own: Own, centre: np.ndarray, theta: np.ndarray, given: Any) -> tuple[np.ndarray, bool]:
    """The combinations of the inner numbers that rows depend on, (rows, combinations, numbers), and whether all are quadratic."""
    n, size = centre.shape
    if not size:
        return np.zeros((n, 0, 0)), True
    random = generator(0, Purpose.DRAWS)
    thetas = theta + 0.5 * random.standard_normal((_TRIED, len(theta)))
    at = lambda: centre + random.standard_normal((_TRIED, *centre.shape))
    probe = lambda points: [np.asarray(found) for found in _probe(rows, points, thetas, own, given)]
    points, forth = at(), np.broadcast_to(np.eye(size), (n, size, size))
    there, slopes, curved = probe(points)
    if not np.isfinite(slopes).all() or not np.any(slopes):
        return forth, False
    for fewer in (_alike(slopes), _of_each(slopes)):
        if fewer.shape[1] < forth.shape[1]:
            projected = probe(np.einsum("nrs,nrt,pnt->pns", fewer, fewer, points))[0]
            if np.all(np.abs(projected - there) <= _SAME * (1.0 + np.abs(there))):
                forth = fewer
    others = probe(at())[2]
    return forth, bool(np.allclose(curved, others, rtol=_SAME, atol=_SAME * np.abs(curved).max()))


def _alike(slopes: np.ndarray) -> np.ndarray:
    """The combinations in which all rows slope: a sum of effects is one, whatever the row."""
    _, n, size = slopes.shape
    flat = slopes.reshape(-1, size)
    lengths = np.linalg.norm(flat, axis=1)
    directions = flat[lengths > 1e-8 * lengths.max()]
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    _, singular, right = np.linalg.svd(directions, full_matrices=False)
    forth = right[: int(np.sum(singular > _SAME * singular[0]))]
    return np.broadcast_to(forth, (n, *forth.shape))


def _of_each(slopes: np.ndarray) -> np.ndarray:
    """For every row one combination of its own, along its longest slope: effects times what differs from row to row."""
    lengths = np.linalg.norm(slopes, axis=2)
    longest = np.argmax(lengths, axis=0)
    chosen = slopes[longest, np.arange(len(longest))]
    level = lengths.max(axis=0)[:, None]
    return np.where(level > 0.0, chosen / np.where(level > 0.0, level, 1.0), np.eye(slopes.shape[2])[0])[:, None]


@partial(program, of_functions=True, static_argnums=0)
def _probe(rows: TermRows, points: Array, thetas: Array, own: Own, given: Any) -> tuple[Array, Array, Array]:
    """Values, slopes and curvatures of all rows at some points, (points, rows, ...)."""
    value = lambda v, theta, own: rows.log_density(v, theta, own, given)
    of_row = lambda *inputs: (value(*inputs), jax.grad(value)(*inputs), jax.hessian(value)(*inputs))
    return jax.vmap(jax.vmap(of_row, in_axes=(0, None, 0)), in_axes=(0, 0, None))(points, thetas, own)


def _points(size: int, quadratic: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Frozen points with weights: exact for quadratics at the least."""
    if not size:
        return np.zeros((1, 0)), np.ones(1)
    if quadratic:
        half = np.sqrt(size) * np.eye(size)
        return np.concatenate([half, -half]), np.full(2 * size, 0.5 / size)
    if size <= 2:
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES if size == 1 else _TENSOR)
        grid = np.stack(np.meshgrid(*[nodes] * size, indexing="ij"), axis=-1).reshape(-1, size)
        product = np.prod(np.stack(np.meshgrid(*[weights] * size, indexing="ij"), axis=-1).reshape(-1, size), axis=1)
        return grid, product / product.sum()
    n = max(64, _DRAWS * size)
    return make("matched", n, size, stream(seed, Purpose.DRAWS, size)).points, np.full(n, 1.0 / n)
