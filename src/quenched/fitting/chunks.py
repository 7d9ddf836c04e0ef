"""The bound of many problems on one set of draws, in one program whatever their number.

Draws are evaluated in chunks of a fixed size, and how many chunks there are is a number, not a shape: draws that have
doubled need no new compilation.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.draws import Draws
from quenched.families import Member
from quenched.objective import Coordinates, Slope, Totals, close, half_of_mirrored, nothing, totals_at
from quenched.targets import Form, Hyper

_CAPACITY = 128  # chunks that every program has room for


class Chunks(NamedTuple):
    """A set of draws, cut up."""

    z: Array  # (capacity, chunk, dim), or half a chunk of draws that stand for their mirror images too
    counts: Array  # (capacity, chunk): zero for draws that only fill up
    used: Array  # number of chunks
    n: Array  # number of draws


def cut_up(draws: Draws, first: int, most: int, *, affine: bool) -> Chunks:
    """Cut draws that have grown from `first` into chunks of at most `most`: their size stays the same as draws grow.

    The mirror images of draws are those of their points too, if the posterior is an affine map.
    """
    half = half_of_mirrored(draws.points) if affine else None
    times = 1 if half is None else 2
    points = draws.points if half is None else half
    begun = first // times
    size = -(-begun // -(-begun * times // most))
    used = -(-len(points) // size)
    capacity = max(_CAPACITY, 1 << (used - 1).bit_length())
    filled = np.zeros((capacity * size, draws.dim))
    filled[: len(points)] = points
    counts = np.tile((np.arange(capacity * size) < len(points)).astype(float).reshape(capacity, size), times)
    shape = (capacity, size, draws.dim)
    return Chunks(filled.reshape(shape), counts, np.asarray(used), np.asarray(float(draws.n)))


def total(evaluate, posterior: Member, free: Array, data: Any, chunks: Chunks) -> Totals:
    """Totals of one problem over all its draws."""

    def add(index, so_far):
        more = totals_at(evaluate, posterior, free, chunks.z[index], chunks.counts[index], data)
        return jax.tree.map(jnp.add, so_far, more)

    return jax.lax.fori_loop(0, chunks.used, add, jax.tree.map(jnp.asarray, nothing(posterior, free)))


def slope_in_chunks(
    evaluate,
    form: Form,
    coordinates: Coordinates,
    vector: Array,
    hyper: Hyper,
    data: Any,
    chunks: Chunks,
    profile: bool = True,
) -> tuple[Slope, Totals]:
    """The bound of one problem, its gradient, and the totals they were made of."""
    totals = total(evaluate, *coordinates.read(vector), data, chunks)
    return close(form, profile, coordinates, vector, totals, chunks.n, hyper), totals
