"""Further out than check draws come: importance weights of draws that reach there on purpose.

A Gaussian meets nothing beyond four of its own standard deviations, so that weights of its own draws miss what the target has
there. Here other draws join them: stretched along one parameter at a time, and wider in all at once. Together they are draws
of a mixture of which the posterior is a part, and weights from it to the target are never much larger than those of the
posterior alone, and far smaller in its tails (defensive importance sampling: Hesterberg 1995, Owen and Zhou 2000). Of many
parameters those are stretched along which the check draws find the target least Gaussian.
"""

from functools import lru_cache, partial
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from quenched.draws import Purpose, check_draws_of, generator
from quenched.objective import Problem, log_ratios
from quenched.posterior import Posterior, natural_moments
from quenched.targets import Hyper
from quenched.transforms import Foreign
from quenched.trust.departures import BULK, Departure, Moved, clear_changes, moved, reweight
from quenched.trust.elsewhere import elsewhere, most_points, rays
from quenched.trust.region import Region, without_raising
from quenched.trust.weights import BAD, GOOD, weigh_ratios

MOST_PARAMETERS = 400  # beyond, weights keep next to nothing of the samples, and noise is all they tell
MOST_AXES = 64  # parameters along which draws are stretched
_EACH = 64  # draws along every parameter
_STRETCHED = 3.0  # times their standard deviation there
_WIDER = 2.5  # over √dim, added to one: times all standard deviations of the draws that are wider in all
_RULES, _COUNTS = 0.1, 0.03  # of a second moment: what a draw holds that rules it, and one that hardly counts
_BESIDE, _HARDLY = 1e-9, 0.1  # relative to its distance, how far a point is from another; nats that this may make
_AS_FAR = 3e-7  # of the posterior's mass: what lies beyond five standard deviations on one side


class Further(NamedTuple):
    """What the target is like where check draws do not come."""

    khat: float  # of weights from the mixture
    known: bool  # whether they can be trusted
    moved: Moved  # the furthest that they move any parameter
    departures: list[Departure]  # parameters that they change clearly
    elsewhere: str = ""  # where another mode was seen, in words
    undefined: str = ""  # where the log density is NaN or infinite, in words


class _Mixture(NamedTuple):
    """Draws on the scale on which the posterior is a standard normal, and the mixture's density relative to that."""

    draws: np.ndarray
    density: np.ndarray


def look_further(
    problem: Problem, posterior: Posterior, hyper: Hyper, known: np.ndarray, seed: int, affordable: int
) -> Further | None:
    """Weigh a posterior by its check draws, whose log ratios are known, and by draws further out, together.

    None for many parameters, and for a function on the host where it would take more than so many values, as calls may take long.
    """
    space, on_host = problem.space, problem.programs is None
    foreign = any(isinstance(leaf.transform, Foreign) for leaf in space.leaves)
    if problem.dim > MOST_PARAMETERS or posterior.member.on_host or foreign:
        return None
    if on_host and _price(problem.dim) > affordable:
        return None
    axes, n = _axes(posterior, known, seed), len(known)
    mixture, moments = _mixture(axes, n, seed), natural_moments(posterior, space)
    judge = partial(log_ratios, problem, posterior.member, hyper)
    judge = partial(without_raising, judge) if on_host else judge
    ratios = np.concatenate([known, judge(mixture.draws[n:])])
    points = rays(axes, mixture.draws, ratios, n)
    on_rays = judge(points)
    other_mode = elsewhere(space, posterior, points, on_rays)
    if other_mode:  # unless it is made of rounding
        believed = _firm(on_rays, judge(points * (1.0 + _BESIDE)))
        other_mode = elsewhere(space, posterior, points, on_rays, believed)
    weights = weigh_ratios(ratios - np.log(mixture.density))
    own = 1.0 / mixture.density
    found = reweight(space, *moments, posterior.transform(mixture.draws), weights.weights, own=own / own.sum())
    # Weights from a mixture are bounded wherever the posterior has mass: where they keep most of the samples, or no
    # sample has much of a say, their few large ones have a k-hat that means nothing; where one rules, a middling k-hat
    # does not help.
    even = weights.khat <= BAD or weights.share > BULK or found.most_held < _COUNTS
    trusted = bool(weights.khat <= GOOD or (even and found.most_held < _RULES))
    variation = weigh_ratios(known).variation  # that of the mixture is another
    clear = clear_changes(space, *moments, found, weights._replace(variation=variation)) if trusted else []
    undefined = _undefined(problem, posterior, mixture, ratios, n)
    return Further(weights.khat, trusted, moved(*moments, found), clear, other_mode, undefined)


def _firm(log_ratios: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """Which are not another number a hair's breadth away: where large terms cancel, rounding makes mountains and valleys."""
    with np.errstate(invalid="ignore"):  # the end of a support is one
        return ~(np.isfinite(log_ratios) & np.isfinite(beside) & (np.abs(log_ratios - beside) > _HARDLY))


def _undefined(problem: Problem, posterior: Posterior, mixture: _Mixture, ratios: np.ndarray, n: int) -> str:
    """Say where the log density is NaN or infinite, and how much of the posterior lies there: along no parameter, perhaps, but in all of them."""
    infinite = np.isposinf(ratios)
    lost, own = infinite if infinite.any() else np.isnan(ratios), 1.0 / mixture.density
    mass = np.sum(own[lost]) / np.sum(own)
    if lost[:n].any() or not mass > _AS_FAR:  # what check draws have met is told by them
        return ""
    points, spread = posterior.transform(mixture.draws[lost]), np.sqrt(posterior.variance())
    where = Region(points, posterior.mean, spread, "infinite" if infinite.any() else "NaN")
    return where.told(
        problem, len(ratios) - n, f"draws further out than any check draw came (about {mass:.1g} of the mass)"
    )


def _mixture(axes: np.ndarray, n: int, seed: int) -> _Mixture:
    dim = axes.shape[1]
    every = np.concatenate([check_draws_of(dim, seed).first(n), _reaching(axes, seed)])
    wide, n_wide = _wide(dim)
    by_axis = np.sum(_relative(every @ axes.T, _STRETCHED), axis=1)
    in_all = _relative(np.linalg.norm(every, axis=1), wide, dim)
    return _Mixture(every, (n + _EACH * by_axis + n_wide * in_all) / len(every))


def _axes(posterior: Posterior, known: np.ndarray, seed: int) -> np.ndarray:
    """Rows: along one parameter, by the log ratios at the check draws those along which the target is least Gaussian."""
    axes = posterior.scale / np.linalg.norm(posterior.scale, axis=1, keepdims=True)
    if len(axes) <= MOST_AXES:
        return axes
    inside = np.isfinite(known)
    ratios = known[inside] - np.mean(known[inside])
    along = check_draws_of(posterior.dim, seed).first(len(known))[inside] @ axes.T
    # Coefficients of the third and fourth Hermite polynomials: skewness, and tails.
    skew, tails = ratios @ (along**3 - 3.0 * along), ratios @ (along**4 - 6.0 * along**2 + 3.0)
    bent = skew**2 / 6.0 + tails**2 / 24.0
    return axes[np.sort(np.argsort(-bent, kind="stable")[:MOST_AXES])]


def _price(dim: int) -> int:
    """Values that it takes."""
    n = min(dim, MOST_AXES)
    return _EACH * n + _wide(dim)[1] + most_points(n)


def _wide(dim: int) -> tuple[float, int]:
    """How many times wider draws are that are wider in all parameters, and how many there are of them."""
    return 1.0 + _WIDER / np.sqrt(dim), min(dim, MOST_AXES) * _EACH // 2


def _reaching(axes: np.ndarray, seed: int) -> np.ndarray:
    """Draws that reach further out: stretched along one parameter, then wider in all."""
    heights, draws, wider = _standard(axes.shape[1], seed)
    along = np.repeat(axes, _EACH, axis=0)
    stretched = draws + (_STRETCHED * heights - np.sum(draws * along, axis=1))[:, None] * along
    return np.concatenate([stretched, wider])


@lru_cache(maxsize=8)
def _standard(dim: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Heights along every axis, draws around them, and draws that are wider in all: the same for all posteriors."""
    random, (wide, n_wide), n = generator(seed, Purpose.FURTHER), _wide(dim), min(dim, MOST_AXES)
    levels = (random.permuted(np.tile(np.arange(_EACH), (n, 1)), axis=1).ravel() + random.random(n * _EACH)) / _EACH
    draws = random.standard_normal((n * _EACH, dim))
    made = _quantiles(levels), draws, wide * random.standard_normal((n_wide, dim))
    for part in made:
        part.setflags(write=False)
    return made


def _quantiles(levels: np.ndarray) -> np.ndarray:
    """Of a standard normal; there are few, and a small fit imports no SciPy."""
    quantile = NormalDist().inv_cdf
    return np.array([quantile(level) for level in np.maximum(levels, np.finfo(float).tiny).tolist()])


def _relative(distance: np.ndarray, stretch: float, dim: int = 1) -> np.ndarray:
    """Density of a normal that is stretched, relative to one that is not."""
    return np.exp(0.5 * distance**2 * (1.0 - stretch**-2) - dim * np.log(stretch))
