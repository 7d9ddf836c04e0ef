"""The bound on the log evidence, its gradient in whitened coordinates, and the bound per draw.

The bound is (1/S) Σ log p(w_s) + entropy(q), or (1/S) Σ log p(Y | w_s) − KL(q ‖ prior) (paper, Eq. 11), with
w_s = m + L z_s. Taking it needs four small programs: place the draws, evaluate the target there, pull the gradients back
to (m, L), and close the sum with the penalty. Only the second knows the target.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from quenched.draws import Draws
from quenched.execute import Evaluation
from quenched.families import LOG_TWO_PI, Gaussian
from quenched.optimise import Minimiser, State
from quenched.problem import Problem
from quenched.targets import Form, Hyper, Moments


class Totals(NamedTuple):
    """Sums over draws of the target's values and of its gradients, pulled back."""

    value: Array
    of_posterior: Any  # shaped like the posterior
    of_free: Array


class Coordinates(NamedTuple):
    """Whitened coordinates: the zero vector stands for this posterior and these free hyperparameters."""

    reference: Gaussian
    free: Array

    @property
    def size(self) -> int:
        return ravel_pytree(self.reference)[0].size + self.free.size

    def read(self, vector: Array) -> tuple[Gaussian, Array]:
        """The posterior and the free hyperparameters at a vector of coordinates."""
        flat, unravel = ravel_pytree(self.reference)
        inner = unravel(vector[: flat.size])
        return self.reference.compose(inner), self.free + vector[flat.size :]


class Objective:
    """The bound of a problem on one frozen set of draws."""

    def __init__(self, problem: Problem, draws: Draws):
        self.problem = problem
        self.n = draws.n
        self.executor = problem.executor(draws.n)
        self.chunks = [
            (jnp.asarray(z), jnp.asarray(counts)) for z, counts in _cut(draws.points, self.executor.chunk)
        ]
        self.n_evaluations = 0

    def totals(self, posterior: Gaussian, free: Array) -> Totals:
        """Evaluate the target at every draw of this posterior."""
        total = None
        for z, counts in self.chunks:
            points = place(posterior, z)
            evaluation = self.executor.evaluate(points, counts, self.problem.data, free)
            part = pull_back(posterior, z, counts, evaluation)
            total = part if total is None else add(total, part)
        self.n_evaluations += self.n
        assert total is not None
        return total

    def bound(self, posterior: Gaussian, hyper: Hyper, *, profile: bool) -> tuple[float, Hyper]:
        """The bound at a posterior; with `profile`, at its best precisions, which are returned."""
        value, updated = close(self.problem.form, profile, posterior, self.totals(posterior, hyper.free), self.n, hyper)
        return float(value), updated


def _cut(points: np.ndarray, chunk: int):
    """Chunks of equal size; the last is filled up with points that do not count."""
    for first in range(0, len(points), chunk):
        part = points[first : first + chunk]
        fill = chunk - len(part)
        counts = np.concatenate([np.ones(len(part)), np.zeros(fill)])
        yield np.concatenate([part, np.repeat(part[:1], fill, axis=0)]), counts


@jax.jit
def place(posterior: Gaussian, z: Array) -> Array:
    """w = m + L z."""
    return posterior.transform(z)


@jax.jit
def pull_back(posterior: Gaussian, z: Array, counts: Array, evaluation: Evaluation) -> Totals:
    """From gradients at the draws to gradients in (m, L): Eqs. (11) and (12) of the paper, before the penalty."""
    _, pull = jax.vjp(lambda member: member.transform(z), posterior)
    (of_posterior,) = pull(jnp.where(counts[:, None] > 0, evaluation.gradients, 0.0))
    value = jnp.sum(jnp.where(counts > 0, evaluation.values, 0.0))
    return Totals(value, of_posterior, jnp.asarray(evaluation.free_gradient))


@jax.jit
def add(one: Totals, other: Totals) -> Totals:
    return jax.tree.map(jnp.add, one, other)


def _close(form: Form, profile: bool, posterior: Gaussian, totals: Totals, n: int, hyper: Hyper):
    mean_value = totals.value / n
    if profile:
        hyper = form.updated(hyper, Moments(mean_value, posterior.second_moment()))
    return form.offset(hyper) + form.weight(hyper) * mean_value + form.penalty(posterior, hyper), hyper


close = partial(jax.jit, static_argnums=(0, 1))(_close)


def bound_and_gradient(
    form: Form, profile: bool, coordinates: Coordinates, vector: Array, totals: Totals, n: int, hyper: Hyper
) -> tuple[Array, Array, Hyper]:
    """The bound and its gradient in whitened coordinates.

    Precisions at their closed-form optimum may be held fixed while differentiating (envelope theorem), so profiling
    them out costs nothing.
    """
    posterior, _ = coordinates.read(vector)
    bound, hyper = _close(form, profile, posterior, totals, n, hyper)
    weight = form.weight(hyper) / n

    def linearised(vector):
        member, free = coordinates.read(vector)
        products = jax.tree.map(lambda a, b: jnp.sum(a * b), totals.of_posterior, member)
        expected = sum(jax.tree.leaves(products), start=totals.of_free @ free)
        return weight * expected + form.penalty(member, hyper)

    return bound, jax.grad(linearised)(vector), hyper


class Progress(NamedTuple):
    """One step of an ascent, as the host sees it."""

    state: State
    trial: Gaussian
    trial_free: Array
    hyper: Hyper  # at the point just evaluated
    steepness: Array  # largest component of the gradient at the accepted point
    moved: Array  # largest coordinate of the accepted point


@partial(jax.jit, static_argnums=(0, 1, 2))
def advance(
    minimiser: Minimiser,
    form: Form,
    profile: bool,
    state: State,
    coordinates: Coordinates,
    totals: Totals,
    n: int,
    hyper: Hyper,
    active: Array,
) -> Progress:
    """Tell the minimiser the bound at its trial point and learn where it wants to look next.

    This is the one place where the bound, which is raised, changes sign. `active` is zero for coordinates that are held.
    """
    bound, gradient, hyper = bound_and_gradient(form, profile, coordinates, state.trial, totals, n, hyper)
    state = minimiser.step(state, -bound, -gradient * active)
    trial, trial_free = coordinates.read(state.trial)
    steepness, moved = jnp.max(jnp.abs(state.gradient)), jnp.max(jnp.abs(state.position))
    return Progress(state, trial, trial_free, hyper, steepness, moved)


def log_ratios(problem: Problem, posterior: Gaussian, hyper: Hyper, z: np.ndarray) -> np.ndarray:
    """log p(w) − log q(w) at each draw: its mean is the bound, unbiased when the draws are fresh."""
    executor = problem.executor(len(z))
    values, priors = [], []
    for part, counts in _cut(z, executor.chunk):
        points = place(posterior, jnp.asarray(part))
        used = counts > 0
        values.append(np.asarray(executor.values(points, problem.data, hyper.free))[used])
        priors.append(np.asarray(_log_prior(problem.form, points, hyper))[used])
    log_p = float(problem.form.offset(hyper)) + float(problem.form.weight(hyper)) * np.concatenate(values)
    log_q = -0.5 * np.sum(z**2, axis=1) - 0.5 * problem.dim * LOG_TWO_PI - float(posterior.log_determinant())
    return log_p + np.concatenate(priors) - log_q


_log_prior = partial(jax.jit, static_argnums=0)(lambda form, points, hyper: form.log_prior(points, hyper))
