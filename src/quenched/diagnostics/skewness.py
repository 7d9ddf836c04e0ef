"""A hint at the skewness of the target along each coordinate."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import program
from quenched.draws import Purpose, antithetic, stream
from quenched.families import Member
from quenched.objective import Problem, cut, place
from quenched.targets import Hyper

_MOST_DRIVING = 4
_DRIVES = 0.25  # summed squares of relative changes of curvature within one standard deviation
_MOST_ON_HOST = 2000  # coordinates of a sparse posterior; of more, gradients of whole draws would take too long


class Skewness(NamedTuple):
    """Along each coordinate of the real line, to first order."""

    value: np.ndarray
    error: np.ndarray
    driving: list[int]  # coordinates with which the spread of the others changes most, the strongest first


def skewness(problem: Problem, posterior: Member, hyper: Hyper, n: int, seed: int) -> Skewness:
    """E_q[h′(u) (u² − 1)] with h = log p and u the standardised coordinate.

    Where p differs from q by a factor 1 + s/6 (u³ − 3u), this is s, the skewness, by Stein's identity. The draws are
    mirrored, so whatever is quadratic in log p cancels exactly: a Gaussian target has none, whichever the family. For
    a posterior that is not Gaussian it is what is left of the skewness, along the coordinates of its draws.
    """
    if posterior.on_host and problem.dim > _MOST_ON_HOST:
        return Skewness(np.zeros(problem.dim), np.full(problem.dim, np.inf), [])
    z = antithetic(n // 2 * 2, problem.dim, stream(seed, Purpose.SKEWNESS)).points
    gradients = _gradients(problem, np.asarray(place(posterior, z)), hyper)
    standardised = _standardised_on_host if posterior.on_host else _standardised
    u, along = map(np.asarray, standardised(posterior, z, gradients))
    products = along * (u**2 - 1.0)
    pairs = 0.5 * (products[: len(z) // 2] + products[len(z) // 2 :])
    return Skewness(pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs)), _driving(u, along))


def _driving(u: np.ndarray, along: np.ndarray) -> list[int]:
    """The few coordinates, if they are few, along which the curvature of the others changes most.

    By Stein's identity E_q[h′_j u_j u_k] is the mean change of the curvature along u_j with u_k. The halves of the
    draws, which are mirrored, tell it from its noise.
    """
    n, half = len(u), len(u) // 2
    parts = []
    for chosen in (np.arange(n) % half < half // 2, np.arange(n) % half >= half // 2):
        change = u[chosen].T @ (along[chosen] * u[chosen]) / chosen.sum()  # (k, j)
        np.fill_diagonal(change, 0.0)
        parts.append(change)
    strength = np.sum(parts[0] * parts[1], axis=1)  # unbiased, whatever the noise
    order = np.argsort(-strength)
    few = [int(k) for k in order[:_MOST_DRIVING] if strength[k] > max(_DRIVES, 0.2 * strength[order[0]])]
    others = np.sum(np.maximum(np.delete(strength, few), 0.0))
    return few if others < np.sum(strength[few]) and 2 * len(few) <= u.shape[1] else []  # all drive none


def _standardised_on_host(posterior: Any, z: Array, gradients: Array) -> tuple[Array, Array]:
    u, along = posterior.straightened(z, gradients)
    return u, posterior.factor.solve(along.T).T / np.sqrt(posterior.factor.variances)


@program
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
