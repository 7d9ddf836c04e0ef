"""The outer problem: the log density of the outer parameters, with the best Gaussian of the inner ones in place of them."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import program
from quenched.draws import Purpose, make, stream
from quenched.execute import Identified
from quenched.families import lengthen, log_slopes, no_tails, turns
from quenched.nesting.algebra import Dense
from quenched.nesting.at_mode import AtMode
from quenched.nesting.by_draws import ByDraws, DrawArrays
from quenched.nesting.by_terms import TermArrays, read_terms
from quenched.nesting.few import insist_few_inside
from quenched.nesting.guess import Guess, constant, learned
from quenched.nesting.newton import Conditionals, Inner, Solved, solve
from quenched.nesting.remembered import Near, Remembered
from quenched.nesting.split import Split
from quenched.numbers import native
from quenched.posterior import Posterior
from quenched.precision import in_double
from quenched.targets import Target, fingerprint

_COLD = 1e2  # precision of the first guess
_DRAWS = 8  # for each inner coordinate, of a log density without known terms
_LANES = (64, 16)  # solved together: of small inner problems, and of those
_CROWDED = 64  # with so many entries for each coordinate that they would not stay near the processor,
_LONG = 50_000  # or whose rows are asked at so many points that a few outer points alone are not to pay for 64
_DIFFERENCE = 1e-3  # of outer coordinates
_AT_REST = 1e-4  # error of a search beyond which it has failed


class Handed(NamedTuple):
    """The data of the outer log density."""

    arrays: Any  # of the inner problem
    guess: Guess


def solve_from(inner: Inner, thetas: Array, handed: Handed, near: Near | None) -> Solved:
    """Search from a neighbour, or where the guess says; from its centre where that is no Gaussian."""
    algebra, guess = inner.algebra, handed.guess
    guess = guess.at(thetas, algebra) if near is None else near.begin(guess, thetas, algebra)
    sound = jnp.isfinite(inner.algebra.invert(guess.precision).log_determinant)
    guess = jax.tree.map(lambda a, b: jnp.where(sound, a, b), guess, handed.guess.fallback)
    return solve(inner, thetas, handed.arrays, guess)


@dataclass(frozen=True, eq=False)
class Outer:
    """An outer problem and how far its inner ones are known."""

    inner: Inner
    split: Split
    handed: Handed
    remembered: Remembered
    tails: np.ndarray  # of the outer coordinates: what is fitted has them shortened

    @property
    def lanes(self) -> int:
        """Inner problems that are solved together."""
        return _lanes(self.inner, self.handed.arrays)

    @property
    def target(self) -> Target:
        """The bounds that the best inner Gaussians reach, as a log density of the outer parameters, their tails shortened.

        It is called from the host: the search inside is one program, compiled once, and not a part of each of those that
        a fit has its log density in.
        """
        return Target(self.log_densities, on_host=True, batched=True)

    def log_densities(self, pieces: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Values and gradients for outer parameters by name, with the draws along their first axis."""
        points = self.split.outer_rows(pieces)
        with in_double():
            thetas, slopes = lengthen(points, self.tails), log_slopes(points, self.tails)
            found = self.solved(thetas)
            gradient = found.gradient if self.inner.envelope else self._differences(thetas)
            values = _where_found(found) + np.sum(slopes, axis=1)
            gradient = gradient * np.exp(slopes) + turns(points, self.tails)
        return values, self.split.outer_pieces(np.where(np.isfinite(values)[:, None], gradient, np.nan))

    def thetas(self, posterior: Posterior, draws: np.ndarray) -> np.ndarray:
        """The outer points of some draws from a posterior whose tails are shortened."""
        return lengthen(np.asarray(posterior.transform(draws)), self.tails)

    def values(self, thetas: np.ndarray) -> np.ndarray:
        """The same, of rows of outer coordinates and without slopes."""
        return _where_found(self.solved(thetas))

    def _differences(self, thetas: np.ndarray) -> np.ndarray:
        """Slopes by central differences."""
        n = thetas.shape[1]
        steps = _DIFFERENCE * np.concatenate([np.eye(n), -np.eye(n)])
        around = self.solved((thetas + steps[:, None]).reshape(-1, n))
        ahead, behind = around.bound.reshape(2, n, -1)
        return (ahead - behind).T / (2.0 * _DIFFERENCE)

    def solved(self, thetas: np.ndarray) -> Solved:
        """The inner problems at these outer points, on the host. Searches that fail begin once more, narrow."""
        found = self._solved(thetas, self.handed, self.remembered)
        failed = np.flatnonzero(~(found.error <= _AT_REST) & np.isfinite(thetas).all(axis=1))
        if len(failed):
            self._again(found, thetas, failed)
        self.remembered.keep(thetas, found.conditionals, found.error <= _AT_REST)
        return found

    def _again(self, found: Solved, thetas: np.ndarray, failed: np.ndarray) -> None:
        """Once more for some of them; what is found then is put in its place."""
        guess = self.handed.guess.narrow(self.inner.algebra)
        again = self._solved(thetas[failed], self.handed._replace(guess=guess), _nothing(self.inner, self.lanes))
        better = again.error <= _AT_REST
        into = failed[better]
        for whole, part in zip(jax.tree.leaves(found.conditionals), jax.tree.leaves(again.conditionals), strict=True):
            whole[:, into] = part[:, better]
        for whole, part in zip(found[1:], again[1:], strict=True):
            whole[into] = part[better]

    def _solved(self, thetas: np.ndarray, handed: Handed, remembered: Remembered) -> Solved:
        found = []
        with in_double():
            lanes = self.lanes
            for first in range(0, len(thetas), lanes):
                part = thetas[first : first + lanes]
                fill = np.repeat(part[:1], lanes - len(part), axis=0)  # one shape is compiled
                points = np.concatenate([part, fill])
                near = remembered.near(points, np.asarray(handed.guess.scale))
                found.append(jax.tree.map(np.asarray, _solve(self.inner, points, handed, near)))
        return Solved(
            Conditionals(
                *(np.concatenate(parts, axis=1)[:, : len(thetas)] for parts in zip(*(f[0] for f in found), strict=True))
            ),
            *(np.concatenate(parts)[: len(thetas)] for parts in list(zip(*found, strict=True))[1:]),
        )

    def with_guess(self, thetas: np.ndarray, solved: Conditionals) -> "Outer":
        """The same, with searches that begin near what was found."""
        handed = Handed(self.handed.arrays, learned(thetas, solved, self.inner.algebra))
        return replace(self, handed=handed)


def _where_found(solved: Solved) -> np.ndarray:
    """What has no top has no bound: the fit keeps away from there."""
    return np.where(solved.error <= _AT_REST, solved.bound, -np.inf)


@partial(program, of_functions=True, static_argnums=0)
def _solve(inner: Inner, thetas: Array, handed: Handed, near: Near | None) -> Solved:
    return solve_from(inner, thetas, handed, near)


def _lanes(inner: Inner, arrays: Any) -> int:
    terms = arrays.terms if isinstance(arrays, TermArrays) else ()
    points = sum(len(rows.own.back) * len(rows.z) for rows in terms)
    return _LANES[inner.algebra.size > _CROWDED * inner.algebra.dim or points > _LONG]


def _nothing(inner: Inner, lanes: int) -> Remembered:
    return Remembered(inner.algebra.dim, inner.algebra.size, least=lanes)


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
        insist_few_inside(Dense(dim))
        inner = ByDraws(Dense(dim), target, split)
        handed = jax.tree.map(native, target.handed(data))
        arrays = DrawArrays(make("matched", n, dim, stream(seed, Purpose.DRAWS, 1)).points, handed)
        seen = (fingerprint(target.function),)
    inner: Any = AtMode(inner.algebra, inner) if at_mode else inner
    known = None if any(one is None for one in seen) else (seen, split, _structure(inner))
    if known is not None:
        inner = _kept(Identified(known, inner))
    theta = point[split.outer_places]
    precision = np.zeros((inner.algebra.size, 1))
    precision[inner.algebra.diagonal] = _COLD
    cold = Conditionals(point[split.inner_places][:, None], precision)
    handed = Handed(arrays, constant(theta, cold, inner.algebra))
    return Outer(inner, split, handed, _nothing(inner, _lanes(inner, arrays)), no_tails(len(theta)))


def _structure(inner: Any) -> Hashable:
    if isinstance(inner, AtMode):
        return "mode", _structure(inner.of)
    if isinstance(inner, ByDraws):
        return inner.algebra
    return inner.algebra, tuple((rows.sights, rows.outside, rows.term and rows.term.parts) for rows in inner.rows)


@lru_cache(maxsize=32)
def _kept(key: Identified) -> Inner:
    return key.thing
