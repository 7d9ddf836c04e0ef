"""The bound on the log evidence and its gradient in whitened coordinates, as functions that JAX can trace.

The bound is (1/S) Σ log p(w_s) + entropy(q), or (1/S) Σ log p(Y | w_s) − KL(q ‖ prior) (paper, Eq. 11), with
w_s = m + L z_s. Draws are taken in chunks of one size, and how many chunks there are is a number, not a shape: draws that
have grown need no new compilation. Sums that are already known can be handed in; then no draw is looked at again.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.execute import Evaluation
from quenched.families import LOG_TWO_PI, Member
from quenched.objective.coordinates import Coordinates
from quenched.targets import Form, Hyper, Moments

_MOST_CHUNKS = 128  # that every program has room for, ...
_MOST_NUMBERS = 2**20  # ... unless they hold more numbers than this


class Totals(NamedTuple):
    """Sums over draws of the target's values and of its gradients, pulled back."""

    value: Array
    of_posterior: Any  # shaped like the posterior
    of_free: Array


class Slope(NamedTuple):
    """The bound at one point, its gradient in whitened coordinates, and the precisions that go with it."""

    bound: Array
    gradient: Array
    hyper: Hyper


class Chunks(NamedTuple):
    """A set of draws, cut up."""

    z: Array  # (capacity, chunk, dim), or half a chunk of draws that stand for their mirror images too
    counts: Array  # (capacity, chunk): zero for draws that only fill up
    used: Array  # number of chunks
    n: Array  # number of draws

    @property
    def none(self) -> "Chunks":
        """None of these draws."""
        return self._replace(used=np.zeros_like(self.used))


def cut_up(points: np.ndarray, size: int, *, mirrored: bool) -> Chunks:
    """Cut draws into chunks of a size; `mirrored` ones are cut by pairs, if they are pairs.

    The mirror images of draws are those of their points too, if the posterior is an affine map.
    """
    half = half_of_mirrored(points) if mirrored and size % 2 == 0 else None
    times, n = (1, len(points)) if half is None else (2, len(points))
    points, size = (points, size) if half is None else (half, size // 2)
    used, dim = -(-len(points) // size), points.shape[1]
    room = min(_MOST_CHUNKS, max(1, _MOST_NUMBERS // (size * dim)))
    capacity = max(room, 1 << (used - 1).bit_length())
    filled = np.zeros((capacity * size, dim))
    filled[: len(points)] = points
    counts = np.tile((np.arange(capacity * size) < len(points)).astype(float).reshape(capacity, size), times)
    return Chunks(filled.reshape(capacity, size, dim), counts, np.asarray(used), np.asarray(float(n)))


def half_of_mirrored(points: np.ndarray) -> Array | None:
    """The first half of draws whose second half is its negative."""
    half = len(points) // 2
    return points[:half] if len(points) % 2 == 0 and np.array_equal(points[:half], -points[half:]) else None


def slope_in_chunks(
    evaluate,
    form: Form,
    profile: bool,
    coordinates: Coordinates,
    vector: Array,
    hyper: Hyper,
    data: Any,
    chunks: Chunks,
    known: Totals | None = None,
) -> tuple[Slope, Totals]:
    """The bound, its gradient, and the totals they were made of; `known` are those of draws beside the chunks."""
    (posterior, free), pull = jax.vjp(coordinates.read, vector)

    def add(index, so_far):
        more = totals_at(evaluate, posterior, free, chunks.z[index], chunks.counts[index], data)
        return jax.tree.map(jnp.add, so_far, more)

    begun = jax.tree.map(jnp.asarray, nothing(posterior, free) if known is None else known)
    totals = jax.lax.fori_loop(0, chunks.used, add, begun)
    return _closed(form, profile, posterior, pull, totals, chunks.n, hyper), totals


def nothing(posterior: Member, free: Array) -> Totals:
    """Totals of no draws."""
    return jax.tree.map(lambda leaf: np.zeros(np.shape(leaf)), Totals(np.zeros(()), posterior, free))


def totals_at(evaluate, posterior: Member, free: Array, z: Array, counts: Array, data: Any) -> Totals:
    """Totals of a traced target over one chunk of draws; half as many draws as counts stand for their mirror images too."""
    mirrored = len(z) < len(counts)
    points, pull = jax.vjp(lambda member: _both(member, z) if mirrored else member.transform(z), posterior)
    evaluation = evaluate(points, counts, data, free)
    (of_posterior,) = pull(jnp.where(counts[:, None] > 0, evaluation.gradients, 0.0))
    value = jnp.sum(jnp.where(counts > 0, evaluation.values, 0.0))
    return Totals(value, of_posterior, evaluation.free_gradient)


def _both(posterior: Member, half: Array) -> Array:
    """w = m ± L z for draws that come with their mirror images: half the work, there and back."""
    points = posterior.transform(half)
    return jnp.concatenate([points, 2.0 * posterior.mean - points])


def pull_back(total: Totals, posterior: Member, z: Array, counts: Array, evaluation: Evaluation) -> Totals:
    """Add a chunk: from gradients at the draws to gradients in (m, L) (paper, Eqs. 12 and 13, before the penalty)."""
    more = totals_at(lambda *_: evaluation, posterior, evaluation.free_gradient, z, counts, None)
    return jax.tree.map(jnp.add, total, more)


def close(
    form: Form, profile: bool, coordinates: Coordinates, vector: Array, totals: Totals, n: Array, hyper: Hyper
) -> Slope:
    """From totals to the bound and its gradient in whitened coordinates.

    Precisions at their closed-form optimum may be held fixed while differentiating (envelope theorem), so profiling
    them out costs nothing.
    """
    (posterior, _), pull = jax.vjp(coordinates.read, vector)
    return _closed(form, profile, posterior, pull, totals, n, hyper)


def _closed(form: Form, profile: bool, posterior: Member, pull, totals: Totals, n: Array, hyper: Hyper) -> Slope:
    """`pull` takes gradients in the posterior and the free hyperparameters back to whitened coordinates."""
    mean_value = totals.value / n
    if profile:
        hyper = form.updated(hyper, Moments(mean_value, posterior.second_moment()))
    weight = form.weight(hyper)
    penalty, of_penalty = jax.value_and_grad(form.penalty)(posterior, hyper)
    of_posterior = jax.tree.map(lambda a, b: weight * a / n + b, totals.of_posterior, of_penalty)
    (gradient,) = pull((of_posterior, weight * totals.of_free / n))
    return Slope(form.offset(hyper) + weight * mean_value + penalty, gradient, hyper)


def ratios_in_chunks(values, form: Form, z: Array, used: Array, posterior: Member, hyper: Hyper, data: Any) -> Array:
    """log p(w) − log q(w) at each of the first `used` chunks of draws: (chunks, chunk)."""

    def fill(index, so_far):
        points = posterior.transform(z[index])
        log_p = form.offset(hyper) + form.weight(hyper) * values(points, data, hyper.free)
        return so_far.at[index].set(log_p + form.log_prior(points, hyper) - log_q(posterior, z[index]))

    return jax.lax.fori_loop(0, used, fill, jnp.zeros(z.shape[:2]))


def log_q(posterior: Member, z: Array) -> Array:
    """The log density of a posterior at its own draws."""
    return -0.5 * (z**2).sum(axis=-1) - 0.5 * z.shape[-1] * LOG_TWO_PI - posterior.log_slope(z)
