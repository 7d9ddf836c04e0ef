"""Which parameter makes the log density infinite: the message a user can act on."""

import jax
import jax.numpy as jnp
import numpy as np

from quenched.draws import Draws
from quenched.families import Member, ask
from quenched.objective import Objective, place
from quenched.problem import Problem
from quenched.transforms import Space, real

_CLEARLY = 3.0  # standard deviations from zero
_FAR = 1e5  # standard deviations, in units of the start, that no posterior has


def blame_start(problem: Problem, point: np.ndarray, value: float, gradient: np.ndarray) -> str:
    """Say what is wrong at the start, and where."""
    if np.isfinite(value):
        bad = [int(index) for index in np.flatnonzero(~np.isfinite(gradient))]
        return (
            f"start: the log density is {value:.6g}, but its gradient is not finite in {_listed(problem, point, bad)}. "
            "Look for a square root, a logarithm or a division at zero there, or start elsewhere."
        )
    guilty = _coordinates_that_help(problem, point)
    who = f"; it becomes finite when {_listed(problem, point, guilty)} is moved" if guilty else ""
    return (
        f"start: the log density is {value} at the start{who}. Start inside the support, or give the parameter a "
        "transform (positive, interval(a, b), ...) that keeps it there."
    )


def blame_draws(problem: Problem, point: np.ndarray, posterior: Member, draws: Draws) -> str:
    """Say at which draw around the start, or whether at the start itself, the log density or its gradient is not finite."""
    one = problem.executor(1).evaluate(point[None], np.ones(1), problem.data, problem.hyper.free)
    value, gradient = float(one.values[0]), np.asarray(one.gradients[0])
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        return blame_start(problem, point, value, gradient)
    objective = Objective(problem, draws)
    for z, counts in objective.chunks:
        points = place(posterior, z)
        evaluation = objective.executor.evaluate(points, counts, problem.data, problem.hyper.free)
        values, gradients = np.asarray(evaluation.values), np.asarray(evaluation.gradients)
        for index in np.flatnonzero(np.asarray(counts) > 0):
            point = np.asarray(points[index])
            if not np.isfinite(values[index]):
                guilty = _coordinates_that_help(problem, point)
                who = _listed(problem, point, guilty or [int(np.argmax(np.abs(np.asarray(z[index]))))])
                return f"draws: the log density is {values[index]} at a draw close to the start, where {who}."
            bad = [int(i) for i in np.flatnonzero(~np.isfinite(gradients[index]))]
            if bad:
                return (
                    f"draws: the gradient is not finite at a draw close to the start in {_listed(problem, point, bad)}."
                )
    return "draws: the log density is not finite at a draw close to the start."


def blame_flight(problem: Problem, posterior: Member, start: np.ndarray) -> str | None:
    """Say along which parameters a fit has run away, if it has: the log density does not fall off there."""
    reach = np.nan_to_num(np.sqrt(np.asarray(ask(posterior, "variance"))), nan=np.inf)
    if not reach.max() > _FAR * (1.0 + np.abs(start).max()):
        return None
    names = problem.space.coordinate_names()
    guilty = [names[index] for index in np.argsort(-reach) if reach[index] >= 0.1 * reach.max()]
    listed = ", ".join(guilty[:4]) + (f" and {len(guilty) - 4} more" if len(guilty) > 4 else "")
    return (
        f"The fit has run away along {listed}: the log density does not fall off there, or too slowly for a posterior to "
        "exist. Give a proper prior, or a transform (interval(a, b), ...) that bounds the parameter."
    )


def sign_remark(space: Space, start: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> str:
    """Name the parameters that have changed their sign for good: some log densities accept a negative scale.

    Parameters
    ----------
    space
        Of the parameters; only those without a transform are looked at.
    start, mean, sd
        Vectors on the real line: where the fit began, and the posterior.

    Returns
    -------
    str
        Empty where there is nothing to remark.
    """
    free = np.repeat([leaf.transform == real for leaf in space.leaves], space.sizes)
    changed = np.flatnonzero(free & (start * mean < 0.0) & (np.abs(mean) > _CLEARLY * sd))
    if not changed.size:
        return ""
    names = space.coordinate_names()
    listed = [f"{names[i]} began at {start[i]:.3g} and ended at {mean[i]:.3g} ± {sd[i]:.2g}" for i in changed[:3]]
    more = f"; {changed.size - 3} more changed their sign" if changed.size > 3 else ""
    return f"{'; '.join(listed)}{more}. If only one sign makes sense, give a transform (positive, below(0.0), ...)."


def _coordinates_that_help(problem: Problem, point: np.ndarray) -> list[int]:
    """Coordinates whose change alone makes the value finite."""
    executor = problem.executor(1)
    guilty = []
    for index in range(min(problem.dim, 200)):
        for shift in (1.0, -1.0, 10.0, -10.0):
            moved = point.copy()
            moved[index] += shift
            if np.isfinite(np.asarray(executor.values(jnp.asarray(moved)[None], problem.data, problem.hyper.free)))[0]:
                guilty.append(index)
                break
    return guilty


def _listed(problem: Problem, point: np.ndarray, indices: list[int]) -> str:
    """`tau = 0.1, theta[2] = -3` in natural units where they can be read off."""
    names = problem.space.coordinate_names()
    natural = np.concatenate([np.ravel(leaf) for leaf in _leaves(problem, point)])
    values = natural if len(natural) == len(point) else point
    shown = [f"{names[index]} = {values[index]:.6g}" for index in indices[:4]]
    return ", ".join(shown) + (f" and {len(indices) - 4} more" if len(indices) > 4 else "")


def _leaves(problem: Problem, point: np.ndarray) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(problem.space.to_natural(jnp.asarray(point)))]
