"""The best Gaussians of the inner parameters, one for each of many outer points, and the bounds that they reach.

Variational Newton: at the best Gaussian N(m, Λ⁻¹) the mean gradient of the log density is zero and Λ is minus its mean
Hessian, so both are put there until nothing moves: Λ ← E[−∇²], m ← m + Λ⁻¹ E∇. At the top the slope of the bound in the outer
parameters is its slope with the inner Gaussian held (envelope theorem).
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.nesting.algebra import Inverse
from quenched.nesting.mixing import Recent, mix, nothing_recent

_AT_REST = 1e-7  # of a step, in standard deviations
_MOST_STEPS = 60
_SHORTEST = 1e-4  # of a Newton step
_ROUNDING = 1e-11  # of a bound, relative
_LOG_TWO_PI = float(np.log(2.0 * np.pi))


class InnerExpected(NamedTuple):
    """Mean log densities under Gaussians, their mean gradients, and minus their mean Hessians."""

    value: Array  # (lanes,)
    gradient: Array  # (dim, lanes)
    precision: Array  # (entries, lanes)


class Inner(ABC):
    """An inner problem: structure alone. Its arrays are handed over with every call."""

    algebra: Any  # how its matrices are kept
    envelope: ClassVar[bool] = True  # at the top, the slope with the Gaussian held is the whole slope

    @abstractmethod
    def expected(self, thetas: Array, mean: Array, inverse: Inverse, arrays: Any) -> InnerExpected:
        """Under N(mean, covariance) of every lane, at its outer parameters, (lanes, outer)."""

    def worth(self, value: Array, inverse: Inverse) -> Array:
        """What a search raises: the bound."""
        return value + entropy(inverse, self.algebra.dim)

    def closing(self, inverse: Inverse) -> Array | float:
        """What is added to it once it is found."""
        return 0.0

    @abstractmethod
    def value(self, thetas: Array, mean: Array, inverse: Inverse, arrays: Any) -> Array:
        """The mean log densities alone, (lanes,)."""


class Conditionals(NamedTuple):
    """Gaussians of the inner parameters, one in each lane."""

    mean: Array  # (dim, lanes)
    precision: Array  # (entries, lanes)


class Solved(NamedTuple):
    """What searches have found, by lanes."""

    conditionals: Conditionals
    bound: Array
    gradient: Array  # of the bound in the outer parameters, (lanes, outer)
    error: Array  # of the next step, in standard deviations
    n_steps: Array


class _Search(NamedTuple):
    here: Conditionals
    bound: Array
    step: Conditionals  # that Newton's method would make
    error: Array
    rate: Array
    n_steps: Array
    recent: Recent


def solve(inner: Inner, thetas: Array, arrays: Any, guess: Conditionals) -> Solved:
    """Search from a guess in every lane.

    Newton steps are mixed with those before them (Anderson acceleration), since mean and covariance pull at each other. Where
    a bound would fall, or is none, the plain step is taken, and shortened.
    """
    algebra, lanes = inner.algebra, len(thetas)
    unit = jnp.sqrt(guess.precision[algebra.diagonal])
    scale = jnp.concatenate([unit, 1.0 / (unit[algebra.rows] * unit[algebra.columns])])

    def unsettled(search: _Search):
        return ~(search.error <= _AT_REST) & (search.rate >= _SHORTEST) & (search.n_steps < _MOST_STEPS)

    def step(search: _Search):
        here, rate = search.here, search.rate
        mixed, recent = mix(search.recent, *(_flat(part) * scale for part in (here, search.step)))
        begun = search.n_steps >= 0  # the first time round only measures the guess
        recent = jax.tree.map(lambda a, b: jnp.where(begun, a, b), recent, search.recent)
        whole = (rate >= 1.0) & recent.full_enough
        plain = jax.tree.map(lambda x, dx: x + rate * dx, here, search.step)
        there = jax.tree.map(lambda a, b: jnp.where(whole, a, b), _cut(mixed / scale, len(here.mean)), plain)
        inverse = algebra.invert(there.precision)
        expected = inner.expected(thetas, there.mean, inverse, arrays)
        ahead = Conditionals(algebra.solve(inverse, expected.gradient), expected.precision - there.precision)
        change = ahead.precision[algebra.diagonal] / there.precision[algebra.diagonal]
        decrement = jnp.sum(ahead.mean * expected.gradient, axis=0)
        error = jnp.sqrt(jnp.maximum(decrement, 0.0)) + jnp.max(jnp.abs(change), axis=0)
        bound = inner.worth(expected.value, inverse)
        slack = _ROUNDING * (1.0 + jnp.abs(search.bound))
        good = jnp.isfinite(bound) & jnp.isfinite(error) & ~(bound < search.bound - slack)
        n_steps = search.n_steps + 1
        better = _Search(there, bound, ahead, error, jnp.minimum(1.0, 4.0 * rate), n_steps, recent)
        # A mixed step that fails is followed by the plain one, a plain one by half of it.
        shorter = search._replace(
            rate=jnp.where(whole, rate, 0.5 * rate), n_steps=n_steps, recent=nothing_recent(scale)
        )
        moved = jax.tree.map(lambda a, b: jnp.where(good, a, b), better, shorter)
        running = unsettled(search)
        return jax.tree.map(lambda a, b: jnp.where(running, a, b), moved, search)

    first = _Search(
        here=guess,
        bound=jnp.full(lanes, -jnp.inf),
        step=jax.tree.map(jnp.zeros_like, guess),
        error=jnp.full(lanes, jnp.inf),
        rate=jnp.ones(lanes),
        n_steps=jnp.full(lanes, -1),
        recent=nothing_recent(scale),
    )
    last = jax.lax.while_loop(lambda search: jnp.any(unsettled(search)), step, first)
    inverse = algebra.invert(last.here.precision)
    held = lambda thetas: jnp.sum(inner.value(thetas, last.here.mean, inverse, arrays))
    bound = last.bound + inner.closing(inverse)
    return Solved(last.here, bound, jax.grad(held)(thetas), last.error, last.n_steps)


def _flat(both: Conditionals) -> Array:
    return jnp.concatenate([both.mean, both.precision])


def _cut(flat: Array, dim: int) -> Conditionals:
    return Conditionals(flat[:dim], flat[dim:])


def entropy(inverse: Inverse, dim: int) -> Array:
    """Of Gaussians with these precisions."""
    return 0.5 * (dim * (1.0 + _LOG_TWO_PI) - inverse.log_determinant)
