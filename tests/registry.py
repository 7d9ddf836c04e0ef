"""Name -> constructor of everything there are several of: the laws run over these."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
from hypothesis import settings

import quenched as qd
from quenched.families import Diagonal, Family, Full, Member, WarpedGaussian
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
}


def random_member(family: Family, dim: int, seed: int) -> Member:
    """A member of the family nearest to a random Gaussian."""
    generator = np.random.default_rng([seed, dim])
    root = generator.standard_normal((dim, dim)) / np.sqrt(dim) + np.eye(dim)
    return family.member(generator.standard_normal(dim), root @ root.T, (dim,))


def random_warped(dim: int, seed: int, size: float = 0.15, bend: bool = True) -> WarpedGaussian:
    """A warped member that is stretched and bent in every way it can be."""
    plain = random_member(qd.Warped(bend=bend), dim, seed)
    generator = np.random.default_rng([seed, dim, 1])
    warp = {name: size * generator.standard_normal(getattr(plain, name).shape) for name in ("skew", "spread", "bends")}
    return WarpedGaussian(plain.gaussian, **warp)


TRANSFORMS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "real": (qd.real, (3,)),
    "positive": (qd.positive, (3,)),
    "interval": (qd.interval(-2.0, 0.5), (2, 2)),
    "ordered": (qd.ordered, (4,)),
    "ordered rows": (qd.ordered, (2, 3)),
    "simplex": (qd.simplex, (4,)),
    "simplex rows": (qd.simplex, (2, 3)),
    "simplex of two": (qd.simplex, (2,)),
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
