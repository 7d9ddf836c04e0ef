"""Which parameter makes the log density infinite: the message a user can act on."""

import jax
import jax.numpy as jnp
import numpy as np

from quenched.draws import Draws
from quenched.families import Member, ask
from quenched.objective import Objective, cut, place
from quenched.posterior import Posterior, to_natural
from quenched.problem import Problem
from quenched.targets import Hyper
from quenched.transforms import Space, real
from quenched.trust import NAN_FURTHER_OUT

_LOOK = (3.7, 5.0)  # standard deviations at which every parameter is looked at
_MOST_LOOKED_AT = 100  # of them
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


def blame_region(
    problem: Problem, posterior: Posterior, hyper: Hyper, outside: np.ndarray, n_inside: int, *, nan: bool
) -> str:
    """Say where the log density is not finite: at these check draws, or further out along a single parameter.

    `nan` says whether it is NaN at any of them, rather than minus infinity at all.

    No check draw may meet what lies beyond three standard deviations; so every parameter is looked at there on purpose,
    the others where they are expected given it.
    """
    names = problem.space.coordinate_names()
    if len(outside):
        with np.errstate(invalid="ignore"):  # a fit that has run away has no such numbers
            depth = np.nan_to_num(np.abs(outside - posterior.mean) / np.sqrt(posterior.variance()))
        guilty = [names[i] for i in np.argsort(-np.median(depth, axis=0))[:2]]
        low, high = outside.min(axis=0), outside.max(axis=0)
        first = int(np.argmax(np.median(depth, axis=0)))
        if nan:
            what, remedy = "not finite", "Look for a logarithm, a square root or a division there, or give"
        else:
            what, remedy = "minus infinity", "The support ends there, and no transform says so: give"
        return (
            f"The log density is {what} at {len(outside)} of {len(outside) + n_inside} check draws; they differ from the "
            f"others most in {', '.join(guilty)} ({names[first]} from {low[first]:.3g} to {high[first]:.3g} on the real "
            f"line). {remedy} a transform (positive, interval(a, b), ...) that keeps the parameter where the log density "
            "exists."
        )
    if problem.programs is None or (posterior.member.on_host and problem.dim > _MOST_LOOKED_AT):
        return ""  # a call of a function on the host may take long
    looked = min(problem.dim, _MOST_LOOKED_AT)
    reach = posterior.covariance[:, :looked] / np.sqrt(posterior.variance()[:looked])  # columns: one sd of each
    points = np.concatenate([posterior.mean + side * far * reach.T for far in _LOOK for side in (1.0, -1.0)])
    values = _values(problem, points, hyper)
    bad = np.flatnonzero(np.isnan(values))
    if not len(bad):
        return ""
    which = int(bad[0] % looked)
    far, side = _LOOK[int(bad[0] // (2 * looked))], "above" if (bad[0] // looked) % 2 == 0 else "below"
    where = points[bad[0], which]
    return (
        f"{NAN_FURTHER_OUT} {far:g} sds {side} the mean of {names[which]} (at {where:.3g} on the real line), where no "
        "check draw came: what the posterior says of that side is a guess. Look for a logarithm, a square root or a division "
        "there, or give a transform that keeps the parameter away."
    )


def _values(problem: Problem, points: np.ndarray, hyper: Hyper) -> np.ndarray:
    executor = problem.executor(len(points))
    parts = [
        np.asarray(executor.values(part, problem.data, hyper.free))[counts > 0]
        for part, counts in cut(points, executor.chunk)
    ]
    return np.concatenate(parts)


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
    changed = np.flatnonzero(free & (start > 0.0) & (mean < -_CLEARLY * sd))
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
    return [leaf[0] for leaf in jax.tree.leaves(to_natural(problem.space, np.asarray(point)[None]))]
