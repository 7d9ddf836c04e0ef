"""Which parameter makes the log density infinite: the message a user can act on."""

import jax
import jax.numpy as jnp
import numpy as np

from quenched.draws import Draws
from quenched.families import Member, ask
from quenched.objective import Objective, Problem, cut, place
from quenched.posterior import to_natural
from quenched.targets import Hyper
from quenched.transforms import Space, real
from quenched.trust import Region, values_at, what_is_wrong

_MOST_LOOKED_AT = 100  # of them
_CLEARLY = 3.0  # standard deviations from zero
_FAR = 1e5  # standard deviations, in units of the start, that no posterior has
_ENDLESS = (1e20, 1e40)  # units of the start at which a density that can be normalised has fallen off
_MOST_ROWS = 2_000_000  # of a sum of terms, that are looked at one by one
_AT_DRAWS = 2048  # draws of a fit that are looked at, at the most


def blame_start(problem: Problem, point: np.ndarray, value: float, gradient: np.ndarray) -> str:
    """Say what is wrong at the start, and where."""
    if np.isfinite(value):
        bad = [int(index) for index in np.flatnonzero(~np.isfinite(gradient))]
        return (
            f"start: the log density is {value:.6g}, but its gradient is not finite in {_listed(problem, point, bad)}. "
            "Look for a square root, a logarithm or a division at zero there, or start elsewhere."
        )
    rows, guilty = _rows_not_finite(problem, point), _coordinates_that_help(problem, point)
    who = f"; it becomes finite when {_listed(problem, point, guilty)} is moved" if guilty else ""
    return (
        f"start: the log density is {value} at the start{rows}{who}. Start inside the support, or give the parameter a "
        "transform (positive, interval(a, b), ...) that keeps it there."
    )


def _rows_not_finite(problem: Problem, point: np.ndarray) -> str:
    """Say which row of a sum of terms is the first without a finite log density; nothing for any other target."""
    terms, line = problem.target.terms, problem.function
    if terms is None or problem.n_rows > _MOST_ROWS:
        return ""
    hyper = None if line.unravel_hyper is None else line.unravel_hyper(problem.hyper.free)
    values = terms.log_densities(line.place(jnp.asarray(point)), problem.data, hyper)
    for term, of_rows in zip(terms.terms, map(np.asarray, values), strict=True):
        wrong = np.flatnonzero(~np.isfinite(of_rows))
        if wrong.size:
            seen, others = ", ".join(part.leaf for part in term.parts), wrong.size - 1
            more = f", and in {others} more" if others else ""
            return f" ({of_rows[wrong[0]]} in row {wrong[0]}{more} of the {len(of_rows)} that see {seen})"
    return ""


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
    spread = np.sqrt(np.asarray(ask(posterior, "variance")))
    reach = np.nan_to_num(np.maximum(spread, np.abs(np.asarray(posterior.mean) - start)), nan=np.inf)
    if not reach.max() > _FAR * (1.0 + np.abs(start).max()):
        return None
    names = problem.space.coordinate_names()
    guilty = [names[index] for index in np.argsort(-reach) if reach[index] >= 0.1 * reach.max()]
    listed = ", ".join(guilty[:4]) + (f" and {len(guilty) - 4} more" if len(guilty) > 4 else "")
    return (
        f"The fit has run away along {listed}: the log density does not fall off there, or too slowly for a posterior to "
        "exist. Give a proper prior, or a transform (interval(a, b), ...) that bounds the parameter."
    )


def blame_tails(problem: Problem, start: np.ndarray, reached: np.ndarray, hyper: Hyper) -> str | None:
    """Say along which parameter alone the log density does not fall off, far out on either side of the start.

    If along none, it is tried on from the start beyond what was reached. A density that can be normalised falls faster than
    one over the distance.
    """
    looked, names = min(problem.dim, _MOST_LOOKED_AT), problem.space.coordinate_names()
    one_by_one = np.eye(looked, problem.dim) * (1.0 + np.abs(start))
    if (endless := _endless(problem, start, np.concatenate([one_by_one, -one_by_one]), hyper)).size:
        sides = ("grows", "falls")
        listed = [f"{names[i % looked]} {sides[i // looked]}" for i in endless[:4]]
        more = f", or {endless.size - 4} more do" if endless.size > 4 else ""
        along = f"as {', or '.join(listed)}{more} without end (on the real line)"
    else:
        way = reached - start
        if not (0.0 < np.abs(way).max() < np.inf and _endless(problem, start, way[None], hyper).size):
            return None
        guilty = [i for i in np.argsort(-np.abs(way)) if np.abs(way[i]) >= 0.1 * np.abs(way).max()]
        listed = [f"{names[i]} {'grows' if way[i] > 0.0 else 'falls'}" for i in guilty[:4]]
        more = f" and {len(guilty) - 4} more move" if len(guilty) > 4 else ""
        along = f"as {', '.join(listed)}{more} together without end (on the real line)"
    return (
        f"The log density does not fall off {along}: there is no posterior. Give a proper prior, or a transform "
        "(interval(a, b), ...) that bounds the parameter."
    )


def _endless(problem: Problem, start: np.ndarray, steps: np.ndarray, hyper: Hyper) -> np.ndarray:
    """Places of the steps along which the log density does not fall off."""
    try:
        near, far = (_joint(problem, start + times * steps, hyper) for times in _ENDLESS)
    except Exception:  # of a function on the host, which such numbers may be too much for
        if problem.programs is not None:
            raise
        return np.zeros(0, int)
    with np.errstate(invalid="ignore"):
        stays = far - near > -np.log(_ENDLESS[1] / _ENDLESS[0])
    return np.flatnonzero(np.isfinite(near) & (stays | (far == np.inf)))


def _joint(problem: Problem, points: np.ndarray, hyper: Hyper) -> np.ndarray:
    """The log joint density at some points, up to a constant: with the prior, where the target has one of its own."""
    form, values = problem.form, values_at(problem, points, hyper)
    with np.errstate(invalid="ignore", over="ignore"):
        values = np.asarray(form.weight(hyper)) * values
        return values if form.prior(hyper) is None else values + np.asarray(form.log_prior(points, hyper))


def blame_reached(problem: Problem, posterior: Member, hyper: Hyper, draws: Draws) -> str | None:
    """Say where, among the draws of the posterior that a fit has reached, the log density or its gradient is not finite."""
    points = np.asarray(place(posterior, draws.points[:_AT_DRAWS]))
    if not np.isfinite(points).all():
        return None
    executor = problem.executor(len(points))
    found = [
        (np.asarray(at.values)[counts > 0], np.asarray(at.gradients)[counts > 0])
        for part, counts in cut(points, executor.chunk)
        for at in [executor.evaluate(part, counts, problem.data, hyper.free)]
    ]
    values, gradients = (np.concatenate(parts) for parts in zip(*found, strict=True))
    outside = ~np.isfinite(values)
    if outside.any():
        spread = np.sqrt(np.asarray(ask(posterior, "variance")))
        where = Region(points[outside], np.asarray(posterior.mean), spread, what_is_wrong(values[outside]))
        return where.told(problem, len(points), "draws of the posterior that was reached")
    bad = np.flatnonzero(~np.isfinite(gradients).all(axis=0))
    if not bad.size:
        return None
    row = int(np.flatnonzero(~np.isfinite(gradients).all(axis=1))[0])
    return (
        f"The gradient of the log density is not finite at a draw, in {_listed(problem, points[row], bad.tolist())}. Look for a "
        "square root, a logarithm or a division at zero there."
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
