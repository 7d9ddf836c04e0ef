"""How far another set of draws would have moved the answer.

The bound is raised again on a few independent sets of the same kind and size, each from the optimum of the fit, with
its hyperparameters. In whitened coordinates that takes four to ten evaluations each, about as many as the one Newton
step by Hessian-vector products that it replaces, and it stays right where a single step would not: for few draws and
skewed posteriors. The spread of the answers is the error that comes from the draws by chance. What all sets of this
size have in common is their bias; raising the bound on one set made of all their raw points shows it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.draws import Draws, replicates
from quenched.families import Member
from quenched.fitting import Ascent, Limits, ascend
from quenched.objective import Coordinates, Objective, Problem
from quenched.posterior import Posterior, natural_moments
from quenched.results import Code
from quenched.targets import Hyper
from quenched.transforms import Parameters

_PART_OF_STEP = 0.03  # an ascent may stop when its gradient is this part of what it was at the start
_CLOSE = 0.02  # and no larger than this: posterior standard deviations
_MAX_EVALUATIONS = 100
_OUTLIER = 4.0  # spreads between the fit and the replicates beyond which their distance is itself the error


class DrawError(NamedTuple):
    """Standard errors due to the draws; shaped like what they are the errors of."""

    mean: Parameters
    sd: Parameters
    hyper: Any
    bound: float


class AnswerOfDraws(NamedTuple):
    """What one set of draws leads to."""

    mean: Parameters
    sd: Parameters
    hyper: Any
    bound: float


def answer_of(problem: Problem, posterior: Member, hyper: Hyper, bound: float) -> AnswerOfDraws:
    """Means and standard deviations in natural units, hyperparameters as the user wrote them, and the bound."""
    mean, sd = natural_moments(Posterior(jax.tree.map(np.asarray, posterior)), problem.space)
    return AnswerOfDraws(mean, sd, problem.describe_hyper(hyper), bound)


def draw_error(
    problem: Problem,
    coordinates: Coordinates,
    hyper: Hyper,
    draws: Draws,
    own: AnswerOfDraws,
    count: int,
    seed: int,
    read: Callable[[Problem, Member, Hyper, float], AnswerOfDraws] = answer_of,
) -> tuple[DrawError, int]:
    """The errors, and the gradient evaluations they took.

    Parameters
    ----------
    coordinates
        Their origin is the fit's optimum on `draws`, where `own` was read off.
    count
        Independent sets of draws.
    read
        What a posterior is an answer of.
    """
    sets, together = replicates(draws, count, seed)
    answers, n_evaluations = [], 0
    for chosen in (*sets, together):
        ascent, cost = _ascent(problem, coordinates, hyper, chosen)
        answer = read(problem, ascent.posterior, ascent.hyper, ascent.bound)
        answers.append(answer)
        n_evaluations += cost
    *singles, large = answers
    errors = jax.tree.map(spread_error, own, large, *singles)
    return DrawError(errors.mean, errors.sd, errors.hyper, float(errors.bound)), n_evaluations


def with_distance(errors: DrawError, own: AnswerOfDraws, top: AnswerOfDraws) -> DrawError:
    """Errors that hold for an ascent that stopped short of its top: the way that is left counts, too."""
    both = lambda error, here, there: np.hypot(error, np.abs(there - here))
    mean, sd = (
        jax.tree.map(both, *parts) for parts in ((errors.mean, own.mean, top.mean), (errors.sd, own.sd, top.sd))
    )
    return errors._replace(mean=mean, sd=sd)


def _ascent(problem: Problem, coordinates: Coordinates, hyper: Hyper, draws: Draws) -> tuple[Ascent, int]:
    objective = Objective(problem, draws)
    slope, totals = objective.slope(coordinates, np.zeros(coordinates.size), hyper, profile=True)
    steepness = float(np.max(np.abs(slope.gradient)))
    tolerance = min(_PART_OF_STEP * steepness, _CLOSE)
    limits = Limits(gradient_tolerance=tolerance, max_evaluations=_MAX_EVALUATIONS)
    ascent = ascend(objective, coordinates, hyper, limits, known=totals)
    if ascent.code is Code.INTERRUPTED:
        raise KeyboardInterrupt  # half an ascent says nothing about the draws
    return ascent, objective.n_evaluations


def spread_error(own, large, *singles) -> np.ndarray:
    """The error of an answer, by those of other sets of draws and of a larger one."""
    values = np.array(singles)
    if not np.isfinite(values).all():
        return np.full(np.shape(own), np.inf)
    count, middle, spread = len(values), values.mean(axis=0), values.std(axis=0, ddof=1)
    bias = count / (count - 1) * (middle - large)  # the larger set has 1 / count of it
    error, away = np.hypot(spread, bias), np.abs(own - middle)
    alone = away > _OUTLIER * spread * np.sqrt(1.0 + 1.0 / count)
    return np.where(alone, np.hypot(error, away), error)
