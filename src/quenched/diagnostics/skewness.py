"""A hint at the skewness of the target along each coordinate."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.draws import Purpose, antithetic, stream
from quenched.families import Member
from quenched.objective import cut, place
from quenched.problem import Problem
from quenched.targets import Hyper


class Skewness(NamedTuple):
    """Along each coordinate of the real line, to first order."""

    value: np.ndarray
    error: np.ndarray


def skewness(problem: Problem, posterior: Member, hyper: Hyper, n: int, seed: int) -> Skewness:
    """E_q[h′(u) (u² − 1)] with h = log p and u the standardised coordinate.

    Where p differs from q by a factor 1 + s/6 (u³ − 3u), this is s, the skewness, by Stein's identity. The draws are
    mirrored, so whatever is quadratic in log p cancels exactly: a Gaussian target has none, whichever the family. For
    a posterior that is not Gaussian it is what is left of the skewness, along the coordinates of its draws.
    """
    z = antithetic(n // 2 * 2, problem.dim, stream(seed, Purpose.SKEWNESS)).points
    gradients = _gradients(problem, np.asarray(place(posterior, z)), hyper)
    u, along = map(np.asarray, _standardised(posterior, z, gradients))
    products = along * (u**2 - 1.0)
    pairs = 0.5 * (products[: len(z) // 2] + products[len(z) // 2 :])
    return Skewness(pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs)))


@jax.jit
def _standardised(posterior: Member, z: Array, gradients: Array) -> tuple[Array, Array]:
    """Standardised coordinates, and the gradients along them."""
    points, pull = jax.vjp(posterior.transform, z)
    (pulled,) = pull(gradients)
    if not posterior.affine:
        return z, pulled + jax.grad(lambda z: posterior.log_slope(z).sum())(z)
    spread = jnp.sqrt(posterior.variance())
    return (points - posterior.mean) / spread, (posterior.transform(pulled) - posterior.mean) / spread


def _gradients(problem: Problem, points: np.ndarray, hyper: Hyper) -> np.ndarray:
    """Of the log likelihood; the prior, if it is exact, is quadratic and adds nothing."""
    executor = problem.executor(len(points))
    parts = [
        np.asarray(executor.evaluate(part, counts, problem.data, hyper.free).gradients)[counts > 0]
        for part, counts in cut(points, executor.chunk)
    ]
    return float(problem.form.weight(hyper)) * np.nan_to_num(np.concatenate(parts))
