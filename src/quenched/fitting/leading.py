"""The directions in which a target departs most from independent parameters: by Lanczos, on differences of gradients.

In units of the standard deviations of a diagonal fit, −∇² log p has eigenvalues λ: far below one along directions that are
wider than the parameters are alone, far above one along narrow ones. Lanczos finds both ends with a few products, each of
which is the difference of two gradients; no second derivatives are asked for, so a function on the host will do.
"""

import jax
import numpy as np

from quenched.arrays import Array
from quenched.draws import Purpose, generator
from quenched.families import Family, Member, ask, leading
from quenched.objective import Problem, cut
from quenched.targets import Hyper

_STEP = 1.0  # posterior sds to either side: curvature as wide as the posterior is, not at a point
_FLATTEST = 1e-6  # eigenvalue: of a direction a thousand times wider


def along_curvature(problem: Problem, family: Family, posterior: Member, hyper: Hyper, seed: int) -> tuple[Member, int]:
    """The member around a posterior that stretches along the leading directions there, and the gradients it took."""
    mean, sds = np.asarray(posterior.mean), np.sqrt(np.asarray(ask(posterior, "variance")))
    rank = family.directions(len(mean))
    steps = min(len(mean), 4 * rank + 30)

    def product(vector: np.ndarray) -> np.ndarray:
        beside = _STEP * sds * vector
        ahead, behind = _gradients(problem, np.stack([mean + beside, mean - beside]), hyper)
        return -sds * (ahead - behind) / (2.0 * _STEP)

    values, directions = lanczos(product, len(mean), steps, generator(seed, Purpose.PROBES))
    values = np.maximum(values, _FLATTEST)
    chosen = leading(values, rank)
    # A direction is made wider on top of what standard deviations hold already, so those stay as they are.
    return family.along(mean, sds, directions[:, chosen], values[chosen] ** -0.5), 2 * steps


def lanczos(product, dim: int, steps: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors (dim, steps) of a symmetric matrix as far as some products tell; orthogonal throughout."""
    basis, diagonal, beside = np.zeros((steps, dim)), np.zeros(steps), np.zeros(steps)
    vector = random.standard_normal(dim)
    for step in range(steps):
        basis[step] = vector / np.linalg.norm(vector)
        image = product(basis[step])
        diagonal[step] = basis[step] @ image
        vector = image
        for _ in range(2):  # the second time removes what rounding left over
            vector = vector - basis[: step + 1].T @ (basis[: step + 1] @ vector)
        beside[step] = np.linalg.norm(vector)
        if beside[step] <= 1e-10 * np.abs(diagonal[: step + 1]).max():
            vector = random.standard_normal(dim)  # the space is used up: go on in another
            vector = vector - basis[: step + 1].T @ (basis[: step + 1] @ vector)
            beside[step] = 0.0
    inside = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    values, vectors = np.linalg.eigh(inside)
    return values, basis.T @ vectors


def _gradients(problem: Problem, points: np.ndarray, hyper: Hyper) -> np.ndarray:
    """Of log p, the prior included."""
    executor, form, found = problem.executor(len(points)), problem.form, []
    for part, counts in cut(points, executor.chunk):
        gradients = np.asarray(executor.evaluate(part, counts, problem.data, hyper.free).gradients)
        found.append(gradients[counts > 0])
    prior: Array = jax.grad(lambda rows: jax.numpy.sum(form.log_prior(rows, hyper)))(points)
    return float(form.weight(hyper)) * np.concatenate(found) + np.asarray(prior)
