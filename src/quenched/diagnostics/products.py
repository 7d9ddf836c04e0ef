"""The curvature of the bound times many vectors at once.

A product by differences takes two gradients at every draw, and so do all others. Where many products are wanted it is
cheaper to know the target to second order at each draw, once: the bound of these expansions has the same curvature at
the posterior, and its products are a few products of matrices, whatever the target costs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import compiled
from quenched.diagnostics.curvature import Curvature
from quenched.execute import Evaluation
from quenched.families import ask
from quenched.fitting import Expander
from quenched.objective import Coordinates, close, half_of_mirrored, nothing, place, totals_at
from quenched.targets import Form, Hyper

Products = Callable[[np.ndarray], np.ndarray]  # of rows, as many as it was made for

_CHUNK = 64  # draws at a time
_MOST_NUMBERS = 2**27  # of all expansions together
_VECTORS = 2**23  # numbers in the vectors that are multiplied at a time
_WIDEST = 64
_TYPICAL = 10  # products that a right-hand side takes


class Plan(NamedTuple):
    """How products are to be taken, and what that costs."""

    expand: bool
    n_gradients: int  # gradient evaluations it is worth


def plan(curvature: Curvature, n: int) -> Plan:
    """For n right-hand sides."""
    objective, dim = curvature.objective, curvature.coordinates.reference.dim
    by_differences = 2 * _TYPICAL * n * objective.n
    by_expansions = objective.executor.second_order_cost(dim) * objective.n
    fit = objective.n * dim**2 <= _MOST_NUMBERS
    return Plan(fit and by_expansions < by_differences, min(by_expansions, by_differences) if fit else by_differences)


def width(curvature: Curvature, n: int) -> int:
    """Rows to multiply at a time, of n."""
    return int(np.clip(_VECTORS // curvature.size, 1, min(n, _WIDEST)))


def by_differences(curvature: Curvature) -> Products:
    """One product after the other: two gradients at every draw each."""
    return lambda rows: np.stack([curvature.times(row) for row in rows])


def by_expansions(curvature: Curvature, tell: Callable[[int], None]) -> Products | None:
    """Products of the target's expansions at the draws; None where these are not finite.

    `tell` hears at how many draws the target has been expanded.
    """
    problem, coordinates, hyper = curvature.objective.problem, curvature.coordinates, curvature.hyper
    draws, expander, reference = curvature.objective.draws.points, Expander(problem), coordinates.reference
    points, spread = np.asarray(place(reference, draws)), np.sqrt(np.asarray(ask(reference, "variance")))
    gradients, hessians = np.empty(points.shape), np.empty((*points.shape, points.shape[1]))
    for index, point in enumerate(points):
        tell(index)
        at = expander.expand(point, spread, hyper)
        if not at.finite:
            return None
        gradients[index], hessians[index] = at.gradient, at.hessian
    curvature.objective.n_evaluations += expander.n_evaluations
    half = half_of_mirrored(draws) if reference.affine else None
    chunks = _cut(draws if half is None else half, _Expansions(points, gradients, hessians))
    program = partial(_products, problem.form, float(len(draws)), *jax.device_put((coordinates, hyper, chunks)))
    return lambda rows: np.asarray(program(_whole(rows, coordinates.size)))


class _Expansions(NamedTuple):
    """The target to second order, at many points."""

    point: Any
    gradient: Any
    hessian: Any


def _cut(z: np.ndarray, at: _Expansions) -> tuple[np.ndarray, np.ndarray, _Expansions]:
    """Draws in chunks of one size, which of them count, and the expansions there; the last chunk is filled up.

    There are as many expansions as draws, or twice as many: then they go on with those at the mirror images.
    """
    n, times = len(z), len(at.point) // len(z)
    chunk = min(_CHUNK, n)
    index = np.arange(-(-n // chunk) * chunk)
    cut = lambda rows: rows[np.minimum(index, n - 1)].reshape(-1, chunk, *rows.shape[1:])
    both = lambda rows: np.concatenate([cut(part) for part in np.split(rows, times)], axis=1)
    counts = (index < n).astype(float).reshape(-1, chunk)
    return cut(z), np.tile(counts, times), _Expansions(*map(both, at))


def _whole(rows: np.ndarray, size: int) -> np.ndarray:
    """With zeros for what is held."""
    return np.concatenate([rows, np.zeros((len(rows), size - rows.shape[1]))], axis=1)


def _quadratic(points: Array, counts: Array, at: Any, free: Array) -> Evaluation:
    """The expansions in the place of the target; their values play no part in a curvature."""
    gradients = at.gradient + jnp.einsum("sij,sj->si", at.hessian, points - at.point)
    return Evaluation(jnp.zeros(len(points)), gradients, jnp.zeros_like(free))


@partial(compiled, static_argnums=0)
def _products(form: Form, n: float, coordinates: Coordinates, hyper: Hyper, chunks: Any, directions: Array) -> Array:
    """Minus the derivative of the bound's gradient at the origin, along each direction."""

    def gradient(vector):
        posterior, free = coordinates.read(vector)

        def add(so_far, part):
            z, counts, at = part
            return jax.tree.map(jnp.add, so_far, totals_at(_quadratic, posterior, free, z, counts, at)), None

        none = jax.tree.map(jnp.asarray, nothing(posterior, free))
        totals, _ = jax.lax.scan(add, none, chunks)
        return close(form, False, coordinates, vector, totals, n, hyper).gradient

    origin = jnp.zeros(coordinates.size)
    along = lambda direction: jax.jvp(gradient, (origin,), (direction,))[1]
    return -jax.vmap(along)(directions)
