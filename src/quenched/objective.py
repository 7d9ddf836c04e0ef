"""The bound on the log evidence, its gradient in whitened coordinates, and the bound per draw.

The bound is (1/S) Σ log p(w_s) + entropy(q), or (1/S) Σ log p(Y | w_s) − KL(q ‖ prior) (paper, Eq. 11), with
w_s = m + L z_s. Taking it needs four small programs: place the draws, evaluate the target there, pull the gradients back
to (m, L), and close the sum with the penalty. Only the second knows the target.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from quenched.arrays import Array
from quenched.compiling import small_program
from quenched.draws import Draws
from quenched.execute import SMALL_CHUNK, Evaluation, Wait, compiled, obey_interrupts
from quenched.families import LOG_TWO_PI, Member
from quenched.problem import Problem
from quenched.targets import Form, Hyper, Moments

_VALUES_AT_A_TIME = 256  # values need little memory, and one shape is compiled once


class Totals(NamedTuple):
    """Sums over draws of the target's values and of its gradients, pulled back."""

    value: Array
    of_posterior: Any  # shaped like the posterior
    of_free: Array


class Coordinates(NamedTuple):
    """Whitened coordinates: the zero vector stands for this posterior and these free hyperparameters.

    The reference whitens the scale. It whitens the mean too, unless its family leaves out correlations that the
    target has; then `mean_factor`, a dense factor of the target's covariance, does.
    """

    reference: Member
    free: Array
    mean_factor: Array | None = None

    @property
    def size(self) -> int:
        return sum(int(np.size(leaf)) for leaf in jax.tree.leaves((self.reference, self.free)))

    def read(self, vector: Array) -> tuple[Member, Array]:
        """The posterior and the free hyperparameters at a vector of coordinates."""
        flat, unravel = ravel_pytree(self.reference)
        inner, free = unravel(vector[: flat.size]), self.free + vector[flat.size :]
        if self.mean_factor is None:
            return self.reference.moved(inner), free
        shift = inner.mean
        return self.reference.moved(inner.shifted(-shift)).shifted(self.mean_factor @ shift), free

    def moved(self, vector: np.ndarray) -> "Coordinates":
        """The same kind of coordinates with their origin at a vector of these."""
        posterior, free = read(self, vector)
        return Coordinates(posterior, free, self.mean_factor)


class Slope(NamedTuple):
    """The bound at one point, its gradient in whitened coordinates, and the precisions that go with it."""

    bound: Array
    gradient: Array
    hyper: Hyper


class Objective:
    """The bound of a problem on one frozen set of draws."""

    def __init__(self, problem: Problem, draws: Draws):
        self.problem, self.draws = problem, draws
        self.n = draws.n
        self.executor = problem.executor(draws.n)
        self.chunks = list(cut(draws.points, self.executor.chunk))
        self.half = half_of_mirrored(draws.points) if len(self.chunks) == 1 else None
        self.n_evaluations = 0
        self.wait = Wait(f"the gradients of the log density at {draws.n} draws")

    def on(self, draws: Draws | None = None, rows: Any = None) -> "Objective":
        """The same bound on other draws, or with other rows of data, of which it needs no more than their shapes."""
        problem = self.problem if rows is None else replace(self.problem, data=rows)
        return Objective(problem, self.draws if draws is None else draws)

    def slope(
        self, coordinates: Coordinates, vector: np.ndarray, hyper: Hyper, *, profile: bool
    ) -> tuple[Slope, Totals]:
        """The bound and its gradient at a point, and the totals they were made of."""
        obey_interrupts()
        form, data = self.problem.form, self.problem.data
        # For a few draws one program more would take longer to compile than it could save.
        if len(self.chunks) == 1 and self.executor.traced is not None and self.n > SMALL_CHUNK:
            self.n_evaluations += self.n
            z, counts = self.chunks[0]
            z = z if self.half is None or not coordinates.reference.affine else self.half
            inputs = (coordinates, vector, z, counts, data, float(self.n), hyper)
            return self.wait(all_at_once(self.executor.traced, form, profile, *inputs))
        totals = self.wait(self.totals(*read(coordinates, vector)))
        return self.close(coordinates, vector, totals, hyper, profile=profile), totals

    def totals(self, posterior: Member, free: Array) -> Totals:
        """Evaluate the target at every draw of this posterior."""
        total = nothing(posterior, free)
        for z, counts in self.chunks:
            points = place(posterior, z)
            evaluation = self.executor.evaluate(points, counts, self.problem.data, free)
            total = pull_back(total, posterior, z, counts, evaluation)
        self.n_evaluations += self.n
        return total

    def close(
        self, coordinates: Coordinates, vector: np.ndarray, totals: Totals, hyper: Hyper, *, profile: bool
    ) -> Slope:
        """From totals to the bound and its gradient."""
        return close(self.problem.form, profile, coordinates, vector, totals, float(self.n), hyper)

    def slope_at(self, posterior: Member, hyper: Hyper, *, profile: bool) -> tuple[Slope, Totals]:
        """The bound at a posterior, with its gradient in the whitened coordinates of that posterior."""
        origin = Coordinates(posterior, hyper.free)
        return self.slope(origin, np.zeros(origin.size), hyper, profile=profile)

    def bound(self, posterior: Member, hyper: Hyper, *, profile: bool) -> tuple[float, Hyper, Totals]:
        """The bound at a posterior; with `profile`, at its best precisions, which are returned."""
        slope, totals = self.slope_at(posterior, hyper, profile=profile)
        return float(slope.bound), slope.hyper, totals


def cut(points: np.ndarray, chunk: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Chunks of equal size with counts; the last is filled up with points that do not count."""
    for first in range(0, len(points), chunk):
        part = points[first : first + chunk]
        fill = chunk - len(part)
        counts = np.concatenate([np.ones(len(part)), np.zeros(fill)])
        yield np.concatenate([part, np.repeat(part[:1], fill, axis=0)]), counts


@small_program
def place(posterior: Member, z: Array) -> Array:
    """The point of every draw; for a Gaussian, w = m + L z."""
    return posterior.transform(z)


def place_mirrored(posterior: Member, half: Array) -> Array:
    """w = m ± L z for draws that come with their mirror images: half the work, there and back."""
    points = posterior.transform(half)
    return jnp.concatenate([points, 2.0 * posterior.mean - points])


def half_of_mirrored(points: np.ndarray) -> Array | None:
    """The first half of draws whose second half is its negative."""
    half = len(points) // 2
    return points[:half] if len(points) % 2 == 0 and np.array_equal(points[:half], -points[half:]) else None


@small_program
def pull_back(total: Totals, posterior: Member, z: Array, counts: Array, evaluation: Evaluation) -> Totals:
    """Add a chunk: from gradients at the draws to gradients in (m, L) (paper, Eqs. 12 and 13, before the penalty)."""
    _, pull = jax.vjp(lambda member: member.transform(z), posterior)
    (of_posterior,) = pull(jnp.where(counts[:, None] > 0, evaluation.gradients, 0.0))
    value = jnp.sum(jnp.where(counts > 0, evaluation.values, 0.0))
    return jax.tree.map(jnp.add, total, Totals(value, of_posterior, evaluation.free_gradient))


@partial(small_program, static_argnums=(0, 1))
def close(
    form: Form, profile: bool, coordinates: Coordinates, vector: Array, totals: Totals, n: float, hyper: Hyper
) -> Slope:
    """The bound and its gradient in whitened coordinates.

    Precisions at their closed-form optimum may be held fixed while differentiating (envelope theorem), so profiling
    them out costs nothing.
    """
    posterior, _ = coordinates.read(vector)
    mean_value = totals.value / n
    if profile:
        hyper = form.updated(hyper, Moments(mean_value, posterior.second_moment()))
    weight = form.weight(hyper)

    def linearised(vector):
        member, free = coordinates.read(vector)
        products = jax.tree.map(lambda a, b: jnp.sum(a * b), totals.of_posterior, member)
        expected = sum(jax.tree.leaves(products), start=totals.of_free @ free)
        penalty = form.penalty(member, hyper)
        return weight * expected / n + penalty, penalty

    gradient, penalty = jax.grad(linearised, has_aux=True)(vector)
    return Slope(form.offset(hyper) + weight * mean_value + penalty, gradient, hyper)


read = small_program(Coordinates.read)


@partial(compiled, static_argnums=(0, 1, 2))
def all_at_once(evaluate, form, profile, coordinates, vector, z, counts, data, n, hyper) -> tuple[Slope, Totals]:
    """The same four programs as one, when all draws fit into one chunk of a traced target."""
    posterior, free = coordinates.read(vector)
    totals = totals_at(evaluate, posterior, free, z, counts, data)
    return close(form, profile, coordinates, vector, totals, n, hyper), totals


def totals_at(evaluate, posterior: Member, free: Array, z: Array, counts: Array, data: Any) -> Totals:
    """Totals of a traced target over one chunk of draws; half as many draws as counts stand for their mirror images too."""
    mirrored = len(z) < len(counts)
    points, pull = jax.vjp(lambda member: place_mirrored(member, z) if mirrored else place(member, z), posterior)
    evaluation = evaluate(points, counts, data, free)
    (of_posterior,) = pull(jnp.where(counts[:, None] > 0, evaluation.gradients, 0.0))
    value = jnp.sum(jnp.where(counts > 0, evaluation.values, 0.0))
    return Totals(value, of_posterior, evaluation.free_gradient)


def nothing(posterior: Member, free: Array) -> Totals:
    """Totals of no draws."""
    return jax.tree.map(lambda leaf: np.zeros(np.shape(leaf)), Totals(np.zeros(()), posterior, free))


def log_ratios(problem: Problem, posterior: Member, hyper: Hyper, z: np.ndarray) -> np.ndarray:
    """log p(w) − log q(w) at each draw: its mean is the bound, unbiased when the draws are fresh."""
    executor = problem.executor(len(z))
    wait = Wait(f"the log density at {_VALUES_AT_A_TIME} draws")
    values, priors = [], []
    for part, counts in cut(z, _VALUES_AT_A_TIME):
        points = place(posterior, part)
        used = counts > 0
        values.append(np.asarray(wait(executor.values(points, problem.data, hyper.free)))[used])
        priors.append(np.asarray(problem.form.log_prior(points, hyper))[used])
    weight, offset = float(problem.form.weight(hyper)), float(problem.form.offset(hyper))
    log_p = offset + weight * np.concatenate(values) + np.concatenate(priors)
    return log_p - np.asarray(log_q(posterior, z))


@small_program
def log_q(posterior: Member, z: Array) -> Array:
    """The log density of a posterior at its own draws."""
    return -0.5 * jnp.sum(z**2, axis=-1) - 0.5 * z.shape[-1] * LOG_TWO_PI - posterior.log_slope(z)
