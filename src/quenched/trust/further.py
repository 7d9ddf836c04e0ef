"""Further out than check draws come: importance weights of draws that reach there on purpose.

A Gaussian meets nothing beyond four of its own standard deviations, so that weights of its own draws miss what the target has
there. Here other draws join them: stretched along one parameter at a time, and wider in all at once. Together they are draws
of a mixture of which the posterior is a part, and weights from it to the target are never much larger than those of the
posterior alone, and far smaller in its tails (defensive importance sampling: Hesterberg 1995, Owen and Zhou 2000).
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from quenched.draws import Purpose, generator
from quenched.objective import Problem, log_ratios
from quenched.posterior import Posterior
from quenched.targets import Hyper
from quenched.transforms import Foreign, Parameters
from quenched.trust.departures import BULK, Departure, Moved, clear_changes, moved, reweight
from quenched.trust.weights import BAD, Weights, weigh_ratios

MOST_PARAMETERS = 32  # beyond, so few draws fall to each that noise is all they tell
_EACH = 64  # draws along every parameter
_STRETCHED = 3.0  # times their standard deviation there
_WIDER = 2.5  # over √dim, added to one: times all standard deviations of the draws that are wider in all


class Further(NamedTuple):
    """What the target is like where check draws do not come."""

    khat: float  # of weights from the mixture
    known: bool  # whether they can be trusted
    moved: Moved  # the furthest that they move any parameter
    departures: list[Departure]  # parameters that they change clearly


class _Mixture(NamedTuple):
    """Draws on the scale on which the posterior is a standard normal, and the mixture's density relative to that."""

    draws: np.ndarray
    density: np.ndarray


def look_further(
    problem: Problem, posterior: Posterior, hyper: Hyper, moments: tuple[Parameters, Parameters], known: np.ndarray,
    check_draws: np.ndarray, seed: int,
) -> Further | None:  # fmt: skip
    """Weigh a posterior by its check draws, whose log ratios are known, and by draws further out.

    None for many parameters, and for functions whose calls may take long.
    """
    foreign = any(isinstance(leaf.transform, Foreign) for leaf in problem.space.leaves)
    if problem.dim > MOST_PARAMETERS or problem.programs is None or posterior.member.on_host or foreign:
        return None
    mixture = _mixture(posterior, check_draws, seed)
    fresh = log_ratios(problem, posterior.member, hyper, mixture.draws[len(known) :])
    weights = weigh_ratios(np.concatenate([known, fresh]) - np.log(mixture.density))
    return _judged(problem, posterior, moments, mixture, weights)


def _judged(
    problem: Problem, posterior: Posterior, moments: tuple[Parameters, Parameters], mixture: _Mixture, weights: Weights
) -> Further:
    own = 1.0 / mixture.density
    samples = posterior.transform(mixture.draws)
    found = reweight(problem.space, *moments, samples, weights.weights, own=own / own.sum())
    # Weights from a mixture are bounded wherever the posterior has mass: where they keep most of the samples, their few
    # large ones have a k-hat that means nothing.
    known = bool(weights.khat <= BAD or weights.share > BULK)
    clear = clear_changes(problem.space, *moments, found, weights) if known else []
    return Further(weights.khat, known, moved(*moments, found), clear)


def _mixture(posterior: Posterior, check_draws: np.ndarray, seed: int) -> _Mixture:
    random, (n, dim) = generator(seed, Purpose.FURTHER), check_draws.shape
    axes = posterior.scale / np.linalg.norm(posterior.scale, axis=1, keepdims=True)  # rows: along one parameter
    along = np.repeat(axes, _EACH, axis=0)
    levels = (random.permuted(np.tile(np.arange(_EACH), (dim, 1)), axis=1).ravel() + random.random(dim * _EACH)) / _EACH
    draws = random.standard_normal((dim * _EACH, dim))
    stretched = draws + (_STRETCHED * _quantiles(levels) - np.sum(draws * along, axis=1))[:, None] * along
    wide, n_wide = 1.0 + _WIDER / np.sqrt(dim), dim * _EACH // 2
    every = np.concatenate([check_draws, stretched, wide * random.standard_normal((n_wide, dim))])
    by_axis = np.sum(_relative(every @ axes.T, _STRETCHED), axis=1)
    in_all = _relative(np.linalg.norm(every, axis=1), wide, dim)
    return _Mixture(every, (n + _EACH * by_axis + n_wide * in_all) / len(every))


def _quantiles(levels: np.ndarray) -> np.ndarray:
    """Of a standard normal; there are few, and a small fit imports no SciPy."""
    return np.array([NormalDist().inv_cdf(level) for level in np.maximum(levels, np.finfo(float).tiny)])


def _relative(distance: np.ndarray, stretch: float, dim: int = 1) -> np.ndarray:
    """Density of a normal that is stretched, relative to one that is not."""
    return np.exp(0.5 * distance**2 * (1.0 - stretch**-2) - dim * np.log(stretch))
