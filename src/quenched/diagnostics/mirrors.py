"""Copies of a posterior elsewhere: places that the log density cannot tell from it.

The components of a mixture may be exchanged, the factors of a product may change their signs together. A Gaussian holds
one such copy; its evidence is that of one.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.draws import Purpose, generator
from quenched.families import Member, ask
from quenched.objective import Problem, cut, place
from quenched.targets import Hyper
from quenched.transforms import Leaf, real

_SAMPLES = 3
_SAME = 1e-8  # relative difference of log densities that is none
_ELSEWHERE = 4.0  # posterior standard deviations
_MOST_ENTRIES, _MOST_LEAVES = 50, 8
Leaves = list[np.ndarray]


class Mirror(NamedTuple):
    """A change of the parameters that the log density does not notice."""

    says: str  # what is changed
    copies: int

    @property
    def nats(self) -> float:
        """By which the log evidence of all copies is higher, if they do not overlap."""
        return math.log(self.copies)


def mirrors(problem: Problem, posterior: Member, hyper: Hyper, seed: int) -> list[Mirror]:
    """Changes that take the posterior to another place of the same log density."""
    if problem.programs is None or problem.space.joint is not None:
        return []  # a call of a function on the host may take long; and a foreign map has no Jacobian that we know
    space = problem.space
    z = generator(seed, Purpose.MIRRORS).standard_normal((_SAMPLES, problem.dim))
    samples = np.concatenate([np.asarray(posterior.mean)[None], np.asarray(place(posterior, z))])
    natural = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.vmap(space.to_natural)(jnp.asarray(samples)))]
    sd, found = np.sqrt(np.asarray(ask(posterior, "variance"))), []
    here = _log_densities(problem, samples, hyper)
    for mirror, change in _changes(space.leaves):
        moved = jax.tree.unflatten(space.structure, change(natural))
        with np.errstate(invalid="ignore", divide="ignore"):
            image = np.asarray(jax.vmap(space.to_real)(moved))
        if not np.isfinite(image).all() or np.abs((image[0] - samples[0]) / sd).max() < _ELSEWHERE:
            continue
        there = _log_densities(problem, image, hyper)
        if np.all(np.abs(there - here) <= _SAME * np.maximum(np.abs(here), 1.0)):
            found.append(mirror)
    return found


def _changes(leaves: tuple[Leaf, ...]) -> Iterator[tuple[Mirror, Callable[[Leaves], Leaves]]]:
    """Exchanging the first two entries along axes of one length, and signs of one or two arrays."""
    lengths = sorted({leaf.shape[0] for leaf in leaves if leaf.shape and 2 <= leaf.shape[0] <= _MOST_ENTRIES})
    for length in lengths:
        axes = [next((1 + axis for axis, n in enumerate(leaf.shape) if n == length), None) for leaf in leaves]
        leading = [1 if axis == 1 else None for axis in axes]
        for chosen in [axes] if leading == axes else [axes, leading]:
            names = [leaf.name for leaf, axis in zip(leaves, chosen, strict=True) if axis]
            says = f"the {length} entries of {', '.join(names)} are exchanged"
            yield Mirror(says, math.factorial(length)), lambda natural, chosen=chosen: _exchanged(natural, chosen)
    free = [index for index, leaf in enumerate(leaves) if leaf.transform == real][:_MOST_LEAVES]
    pairs = [(a, b) for a in free for b in free if a < b]
    for which in [*((one,) for one in free), *pairs]:
        says = f"the sign of {' and '.join(leaves[one].name for one in which)} is changed"
        yield Mirror(says, 2), lambda natural, which=which: _negated(natural, which)


def _exchanged(natural: Leaves, axes: list[int | None]) -> Leaves:
    def swap(leaf: np.ndarray, axis: int | None) -> np.ndarray:
        if axis is None:
            return leaf
        order = np.arange(leaf.shape[axis])
        order[:2] = 1, 0
        return np.take(leaf, order, axis=axis)

    return [swap(leaf, axis) for leaf, axis in zip(natural, axes, strict=True)]


def _negated(natural: Leaves, which: tuple[int, ...]) -> Leaves:
    return [-leaf if index in which else leaf for index, leaf in enumerate(natural)]


def _log_densities(problem: Problem, points: np.ndarray, hyper: Hyper) -> np.ndarray:
    """In natural units, where a change that is none to the user is none here."""
    executor, form = problem.executor(len(points)), problem.form
    values = np.concatenate(
        [
            np.asarray(executor.values(part, problem.data, hyper.free))[counts > 0]
            for part, counts in cut(points, executor.chunk)
        ]
    )
    joint = form.offset(hyper) + form.weight(hyper) * values
    if form.prior(hyper) is not None:
        joint = joint + np.asarray(form.log_prior(points, hyper))
    if problem.target.adds_jacobian or problem.target.on_real_line:
        joint = joint - np.asarray(jax.vmap(problem.space.log_jacobian)(jnp.asarray(points)))
    return np.asarray(joint)
