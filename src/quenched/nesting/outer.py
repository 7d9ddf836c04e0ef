"""The outer problem: the log density of the outer parameters, with the best Gaussian of the inner ones in place of them."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.draws import Purpose, make, stream
from quenched.nesting.algebra import Dense
from quenched.nesting.at_mode import AtMode
from quenched.nesting.by_draws import ByDraws, DrawArrays
from quenched.nesting.by_terms import read_terms
from quenched.nesting.guess import Guess, constant, learned
from quenched.nesting.newton import Conditionals, Inner, Solved, differentiable, solve
from quenched.nesting.split import Split
from quenched.targets import Target, fingerprint

_COLD = 1e2  # precision of the first guess
_DRAWS = 8  # for each inner coordinate, of a log density without known terms
_LANES = 256  # solved together
_DIFFERENCE = 1e-3  # of outer coordinates
_AT_REST = 1e-4  # error of a search beyond which it has failed


class Handed(NamedTuple):
    """The data of the outer log density."""

    arrays: Any  # of the inner problem
    guess: Guess


@dataclass(frozen=True)
class OuterLogDensity:
    """The bound that the best inner Gaussian reaches, as a function of the outer parameters on the real line, by name."""

    inner: Inner
    split: Split

    def __call__(self, pieces: Any, data: Handed) -> Array:
        return differentiable(partial(_values_and_gradients, self.inner))(self.split.outer_vector(pieces), data)


def _values_and_gradients(inner: Inner, thetas: Array, handed: Handed) -> tuple[Array, Array]:
    found = solve_from(inner, thetas, handed)
    if not inner.envelope:
        found = found._replace(gradient=_differences(inner, thetas, handed, found))
    # What has no top has no bound: the fit keeps away from there.
    failed = ~(found.error <= _AT_REST)
    return jnp.where(failed, -jnp.inf, found.bound), jnp.where(failed[:, None], jnp.nan, found.gradient)


def _differences(inner: Inner, thetas: Array, handed: Handed, found: Solved) -> Array:
    """Slopes by central differences, from where the searches have ended."""
    n = thetas.shape[1]
    steps = _DIFFERENCE * jnp.concatenate([jnp.eye(n), -jnp.eye(n)])
    around = (thetas[None] + steps[:, None]).reshape(-1, n)  # one search for all of them
    guess = jax.tree.map(lambda part: jnp.tile(part, (1, 2 * n)), found.conditionals)
    ahead, behind = solve(inner, around, handed.arrays, guess).bound.reshape(2, n, -1)
    return (ahead - behind).T / (2.0 * _DIFFERENCE)


def solve_from(inner: Inner, thetas: Array, handed: Handed) -> Solved:
    """Search where the guess says; from its centre where that is no Gaussian."""
    guess = handed.guess.at(thetas)
    sound = jnp.isfinite(inner.algebra.invert(guess.precision).log_determinant)
    guess = jax.tree.map(lambda a, b: jnp.where(sound, a, b), guess, handed.guess.fallback)
    return solve(inner, thetas, handed.arrays, guess)


@dataclass(frozen=True, eq=False)
class Outer:
    """An outer problem and how far its inner ones are known."""

    function: OuterLogDensity
    handed: Handed

    @property
    def inner(self) -> Inner:
        return self.function.inner

    def solved(self, thetas: np.ndarray) -> Solved:
        """The inner problems at these outer points, on the host."""
        found = []
        for first in range(0, len(thetas), _LANES):
            part = thetas[first : first + _LANES]
            fill = np.repeat(part[:1], min(_LANES, len(thetas)) - len(part), axis=0)  # one shape is compiled
            lanes = _solve(self.inner, np.concatenate([part, fill]), self.handed)
            found.append(jax.tree.map(lambda array: np.asarray(array), lanes))
        joined = Solved(
            Conditionals(
                *(np.concatenate(parts, axis=1)[:, : len(thetas)] for parts in zip(*(f[0] for f in found), strict=True))
            ),
            *(np.concatenate(parts)[: len(thetas)] for parts in list(zip(*found, strict=True))[1:]),
        )
        return joined

    def with_guess(self, thetas: np.ndarray, solved: Conditionals) -> "Outer":
        """The same, with searches that begin near what was found."""
        return Outer(self.function, Handed(self.handed.arrays, learned(thetas, solved)))


@partial(jax.jit, static_argnums=0)
def _solve(inner: Inner, thetas: Array, handed: Handed) -> Solved:
    return solve_from(inner, thetas, handed)


def make_outer(
    target: Target, split: Split, point: np.ndarray, data: Any, seed: int, *, at_mode: bool = False
) -> Outer:
    """The outer problem of a target; `point` is the start on the real line. `at_mode` puts Laplace's Gaussians inside."""
    dim = len(split.inner_places)
    if target.terms is not None:
        inner, arrays = read_terms(target, split, point, data, seed)
        seen = tuple(fingerprint(rows.term.function) for rows in inner.rows if rows.term is not None)
    else:
        n = max(64, _DRAWS * dim)
        inner = ByDraws(Dense(dim), target, split)
        arrays = DrawArrays(make("matched", n, dim, stream(seed, Purpose.DRAWS, 1)).points, target.handed(data))
        seen = (fingerprint(target.function),)
    inner = AtMode(inner.algebra, inner) if at_mode else inner
    known = None if any(one is None for one in seen) else (seen, split, _structure(inner))
    function = OuterLogDensity(inner, split)
    if known is not None:
        function = _kept(_Key(known, function))
    theta = point[split.outer_places]
    precision = np.zeros((inner.algebra.size, 1))
    precision[inner.algebra.diagonal] = _COLD
    cold = Conditionals(point[split.inner_places][:, None], precision)
    return Outer(function, Handed(arrays, constant(theta, cold)))


def _structure(inner: Any) -> Hashable:
    if isinstance(inner, AtMode):
        return "mode", _structure(inner.of)
    if isinstance(inner, ByDraws):
        return inner.algebra
    return inner.algebra, tuple((rows.sights, rows.outside, rows.term and rows.term.parts) for rows in inner.rows)


class _Key:
    """What makes two outer log densities the same."""

    def __init__(self, identity: Hashable, function: OuterLogDensity):
        self.identity, self.function = identity, function

    def __hash__(self) -> int:
        return hash(self.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.identity == other.identity


@lru_cache(maxsize=32)
def _kept(key: _Key) -> OuterLogDensity:
    return key.function
