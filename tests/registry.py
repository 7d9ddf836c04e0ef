"""Name -> constructor of everything there are several of: the laws run over these."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
from hypothesis import settings

import quenched as qd
from quenched.families import Diagonal, Family, Full, Member, Role, roles
from quenched.optimise import LBFGS, Minimiser, ScaledConjugateGradients

law = settings(max_examples=6, deadline=None, derandomize=True, database=None)

DRAWS: dict[str, Callable[..., qd.Draws]] = {
    "iid": qd.iid,
    "antithetic": qd.antithetic,
    "sobol": qd.sobol,
    "matched": qd.matched,
}


def halves(dim: int) -> Family:
    """Blocks of two sizes, if there are coordinates for them."""
    first = (dim + 1) // 2
    return qd.Blocks([first, dim - first] if dim > first else [first])


FAMILIES: dict[str, Callable[[int], Family]] = {
    "full": lambda dim: Full(),
    "diagonal": lambda dim: Diagonal(),
    "blocks": halves,
    "warped": lambda dim: qd.Warped(),
    "low rank": lambda dim: qd.LowRank(1),
}


def random_member(family: Family, dim: int, seed: int, warp: float = 0.15) -> Member:
    """A member near a random Gaussian; one that need not be Gaussian is warped by this much, in every way it can be."""
    generator = np.random.default_rng([seed, dim])
    root = generator.standard_normal((dim, dim)) / np.sqrt(dim) + np.eye(dim)
    nearest = family.member(generator.standard_normal(dim), root @ root.T, (dim,))
    warps = warp * np.random.default_rng([seed, dim, 1]).standard_normal(roles(nearest).size)
    return with_numbers(nearest, np.where(roles(nearest) == Role.SHAPE, warps, numbers(nearest)))


def numbers(member: Member) -> np.ndarray:
    """All numbers of a member in one vector."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(member)])


def with_numbers(member: Member, vector: np.ndarray) -> Member:
    """The member of the same kind with these numbers, in NumPy."""
    leaves, structure = jax.tree.flatten(member)
    parts = np.split(vector, np.cumsum([leaf.size for leaf in leaves])[:-1])
    return jax.tree.unflatten(structure, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)])


TRANSFORMS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "real": (qd.real, (3,)),
    "positive": (qd.positive, (3,)),
    "above": (qd.above(-1.5), (3,)),
    "above rows": (qd.above([0.0, 2.0]), (3, 2)),
    "below": (qd.below(2), (2, 2)),
    "below one each": (qd.below([[-1.0], [3.0]]), (2, 2)),
    "interval": (qd.interval(-2.0, 0.5), (2, 2)),
    "ordered": (qd.ordered, (4,)),
    "ordered rows": (qd.ordered, (2, 3)),
    "simplex": (qd.simplex, (4,)),
    "simplex rows": (qd.simplex, (2, 3)),
    "simplex of two": (qd.simplex, (2,)),
    "correlation": (qd.correlation_cholesky, (4, 4)),
    "correlation of two": (qd.correlation_cholesky, (2, 2)),
    "correlations": (qd.correlation_cholesky, (2, 3, 3)),
}

MINIMISERS: dict[str, Callable[[], Minimiser]] = {
    "L-BFGS": LBFGS,
    "scaled conjugate gradients": ScaledConjugateGradients,
}


@cache
def on_host(log_density: Callable) -> qd.targets.Target:
    """The same log density as a NumPy function that returns value and gradient."""
    value_and_grad = jax.jit(jax.value_and_grad(log_density))

    def function(parameters, data):
        value, gradient = value_and_grad(parameters, data)
        return float(value), jax.tree.map(np.asarray, gradient)

    return qd.from_value_and_grad(function)


EXECUTORS: dict[str, Callable[[Callable], tuple[Any, dict[str, Any]]]] = {
    "traced": lambda log_density: (log_density, {}),
    "chunked": lambda log_density: (log_density, {"memory": 10**9}),
    "host": lambda log_density: (on_host(log_density), {}),
}
