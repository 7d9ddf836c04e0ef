"""What the check draws would change about a posterior: its moments by importance weights, and its place in its family.

The check draws carry log p − log q. Their importance weights say how far the family is from the target, at no further
gradient; their products with the draws say how far the fit is from the best member of its family (Stein's identity: at
the best Gaussian the mean of (log p − log q) z, and of (log p − log q)(z zᵀ − I), is zero).
"""

from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np

from quenched.posterior import Posterior, to_natural
from quenched.transforms import Parameters, Space
from quenched.trust.weights import BAD, GOOD, Weights

MEAN_DRIFT, SD_DRIFT = 0.05, 0.1  # in sds, and relative: what other draws may change where they suffice
BULK = 0.8  # of the samples that the weights must keep where only the tails differ
VARIATION = 0.15  # of the mass, by which target and posterior may differ where only the tails do
_SHIFT = 0.1  # of a mean in sds, that weights may change
# Of a mean, in sds: the same where weights are so uneven that they miss a part of what they would change.
_UNSEEN = 0.075
_CONSTANT = 1e-12  # of its mean: the spread of a number that does not vary


class Reweighted(NamedTuple):
    """Moments in natural units, shaped like `start`, and their standard errors; right as long as k-hat is."""

    mean: Parameters
    sd: Parameters
    mean_error: Parameters
    sd_error: Parameters
    held: Parameters  # the largest part of the second moment that a single sample holds

    @property
    def most_held(self) -> float:
        """Of any parameter."""
        return float(np.max(_flat(self.held), initial=0.0))


def reweight(
    space: Space,
    mean: Parameters,
    sd: Parameters,
    samples: np.ndarray,
    weights: np.ndarray,
    own: np.ndarray | None = None,
) -> Reweighted:
    """What weights make of a posterior's own means and standard deviations; samples are on the real line.

    Weighted moments are compared with those of the posterior by the same samples: what the two have in common, which is most
    of their noise when the weights are even, cancels. `own` are the weights that make the samples those of the posterior; even
    ones when None.
    """
    n = len(weights)
    relative, plain = n * weights, np.ones(n) if own is None else n * own
    leaves, structure = jax.tree.flatten(to_natural(space, samples))
    pairs = zip(leaves, jax.tree.leaves(mean), jax.tree.leaves(sd), strict=True)
    columns = zip(*(_reweighted(values, relative, plain, *moments) for values, *moments in pairs), strict=True)
    return Reweighted(*(jax.tree.unflatten(structure, column) for column in columns))


def _reweighted(values: np.ndarray, weights: np.ndarray, own: np.ndarray, mean: np.ndarray, sd: np.ndarray):
    weights, own = (column.reshape(-1, *(1,) * (values.ndim - 1)) for column in (weights, own))
    away = values - np.mean(own * values, axis=0)
    shift = np.mean(weights * away, axis=0)
    plain, weighted = np.mean(own * away**2, axis=0), np.mean(weights * (away - shift) ** 2, axis=0)
    varies = np.minimum(plain, weighted) > 0.0  # beyond rounding
    plain, weighted = (np.where(varies, value, 1.0) for value in (plain, weighted))
    # How much each sample moves the differences that are reported.
    moves_mean = weights * (away - shift) - own * away
    moves_ratio = weights * ((away - shift) ** 2 / weighted - 1.0) - own * (away**2 / plain - 1.0)
    error = lambda moves: np.sqrt(np.mean(moves**2, axis=0) / len(values))
    ratio = np.sqrt(weighted / plain)
    held = np.where(varies, np.max(weights * (away - shift) ** 2, axis=0) / (len(values) * weighted), 0.0)
    return mean + shift, sd * ratio, error(moves_mean), 0.5 * sd * ratio * error(moves_ratio), held


class Moved(NamedTuple):
    """The furthest that importance weights move any parameter, noise included: reason to doubt, never to correct."""

    shift: float  # of a mean, in standard deviations
    spread: float  # of a standard deviation, relative to itself


def moved(mean: Parameters, sd: Parameters, found: Reweighted) -> Moved:
    """By moments of the posterior, and what weights make of them."""
    return furthest(*_changes(mean, sd, found))


def furthest(shift: np.ndarray, ratio: np.ndarray) -> Moved:
    """Of shifts of means, in sds, and ratios of sds."""
    return Moved(float(np.max(np.abs(shift), initial=0.0)), float(np.max(np.abs(ratio - 1.0), initial=0.0)))


class Departure(NamedTuple):
    """How far importance weights move the moments of one parameter.

    Examples
    --------
    >>> skewed = lambda p: p["t"] - jnp.exp(p["t"])  # the logarithm of an exponential variable
    >>> worst = qd.fit(lambda p: skewed(p) - 0.5 * p["w"] ** 2, {"t": 0.0, "w": 0.0}).departures[0]
    >>> worst.name, worst.ratio > 1.1  # weights make its sd larger
    ('t', True)
    """

    name: str
    shift: float  # of the mean, in standard deviations
    ratio: float  # of the standard deviations
    of_mean: bool  # whether the shift is what is clear
    of_sd: bool

    @property
    def size(self) -> float:
        """The larger of what is clear, in sds and relative."""
        return max(abs(self.shift) * self.of_mean, abs(self.ratio - 1.0) * self.of_sd)


def worst_of_each(found: list[Departure]) -> list[Departure]:
    """One for each parameter, the worst first."""
    worst: dict[str, Departure] = {}
    for one in sorted(found, key=lambda one: -one.size):
        worst.setdefault(one.name, one)
    return list(worst.values())


def departures(space: Space, mean: Parameters, sd: Parameters, found: Reweighted, weights: Weights) -> list[Departure]:
    """Parameters whose moments the weights change clearly, the worst first; none where the weights cannot be trusted.

    Clearly: beyond what their own noise explains, of the largest of as many as there are.
    """
    return clear_changes(space, mean, sd, found, weights) if weights.khat <= BAD else []


def clear_changes(
    space: Space, mean: Parameters, sd: Parameters, found: Reweighted, weights: Weights
) -> list[Departure]:
    """The same of weights that can be trusted for another reason than their k-hat."""
    shift, ratio = _changes(mean, sd, found)
    spread = _spread(sd)
    errors = _flat(found.mean_error) / spread, _flat(found.sd_error) / spread
    return clear_ones(space.names(), shift, ratio, *errors, uneven=miss_a_part(weights))


def miss_a_part(weights: Weights) -> bool:
    """Weights so uneven that they see less than is off."""
    return weights.khat > GOOD and weights.share < BULK and weights.variation > VARIATION


def clear_ones(
    names: list[str],
    shift: np.ndarray,
    ratio: np.ndarray,
    shift_error: np.ndarray,
    ratio_error: np.ndarray,
    among: int | None = None,
    *,
    uneven: bool = False,
) -> list[Departure]:
    """The departures among shifts of means, in sds, and ratios of sds, the worst first; `among` so many noises.

    Weights that are `uneven` move means by less than they are off: of a banana's by 0.1 sds where it is 0.5. An sd that is clearly off takes
    its mean along, however noisy that is: of a log sd of groups the sd was 0.57 times the true one, and the mean, moved by 0.2, off by 0.27 sds.
    """
    sure = clearly(len(names) if among is None else among)
    by_sd = (np.abs(ratio - 1.0) > SD_DRIFT) & (np.abs(ratio - 1.0) > sure * ratio_error)
    by_mean = (np.abs(shift) > _SHIFT) & (np.abs(shift) - _SHIFT > 0.5 * sure * shift_error)
    by_mean &= np.abs(shift) > sure * shift_error
    if uneven:
        by_mean |= (np.abs(shift) > _UNSEEN) & ((np.abs(shift) > 0.75 * sure * shift_error) | by_sd)
    size = np.maximum(np.where(by_mean, np.abs(shift), 0.0), np.where(by_sd, np.abs(ratio - 1.0), 0.0))
    return [
        Departure(names[i], float(shift[i]), float(ratio[i]), bool(by_mean[i]), bool(by_sd[i]))
        for i in np.argsort(-size)
        if size[i] > 0.0
    ]


def _changes(mean: Parameters, sd: Parameters, found: Reweighted) -> tuple[np.ndarray, np.ndarray]:
    """Shifts of all means in sds, and ratios of all sds; none for what does not vary, as a correlation with itself."""
    spread, own = _spread(sd), _flat(mean)
    varies = (_flat(sd) > 0.0) & (spread > _CONSTANT * np.abs(own))
    shift, ratio = (_flat(found.mean) - own) / spread, _flat(found.sd) / spread
    return np.where(varies, shift, 0.0), np.where(varies, ratio, 1.0)


def _flat(tree: Parameters) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def _spread(sd: Parameters) -> np.ndarray:
    return np.maximum(_flat(sd), np.finfo(float).tiny)


def hopeless(weights: Weights) -> bool:
    """The weights say that the posterior is far off, and nothing of its moments."""
    return not weights.khat <= BAD and weights.variation >= VARIATION


def clearly(n: int) -> float:
    """Standard errors that the largest of n pure noises seldom exceeds."""
    return 2.0 + float(np.sqrt(2.0 * np.log(max(n, 1))))


class Drift(NamedTuple):
    """How far the fit is from the best member of its family, to first order, for the parameter that is furthest."""

    mean: float  # in posterior sds
    mean_error: float
    mean_name: str
    sd: float  # relative
    sd_error: float
    sd_name: str

    @property
    def clear(self) -> bool:
        """Beyond what suffices, and beyond its own noise."""
        return self.mean - 2.0 * self.mean_error > MEAN_DRIFT or self.sd - 2.0 * self.sd_error > SD_DRIFT

    @property
    def most(self) -> tuple[float, float]:
        """How far a mean and an sd may be moved, as far as can be told: by no less than the noise."""
        return max(self.mean, self.mean_error), max(self.sd, self.sd_error)

    @property
    def excluded(self) -> bool:
        """Nothing beyond what suffices is possible."""
        return self.most[0] <= MEAN_DRIFT and self.most[1] <= SD_DRIFT


def moves_of_means(posterior: Posterior, log_ratios: np.ndarray, batches: Iterable[np.ndarray]) -> np.ndarray:
    """By how many sds that step moves each mean, without its noise: points are affine in draws, so one of them says it all."""
    inside = np.isfinite(log_ratios)
    ratios = np.where(inside, log_ratios - np.mean(log_ratios[inside]), 0.0)
    total, first = np.zeros(posterior.dim), 0
    for z in batches:
        total += ratios[first : first + len(z)] @ z
        first += len(z)
    pushed = posterior.transform(total[None] / inside.sum())[0]
    return (pushed - posterior.mean) / np.sqrt(posterior.variance())


def drift(posterior: Posterior, names: list[str], log_ratios: np.ndarray, z: np.ndarray) -> Drift:
    """A step of natural gradient on the check draws, in units of the posterior. For Gaussian posteriors."""
    inside = np.isfinite(log_ratios)
    ratios, points = log_ratios[inside] - np.mean(log_ratios[inside]), posterior.transform(z[inside])
    along = (points - posterior.mean) / np.sqrt(posterior.variance())  # every parameter, standardised
    sure, squares, weights = clearly(along.shape[1]) / 2.0, along**2, ratios**2
    # Sums over draws of r a and r (a² − 1) / 2, and of their squares.
    means = ratios @ along, weights @ squares
    spreads = 0.5 * (ratios @ squares), 0.25 * (weights @ squares**2 - 2.0 * means[1] + np.sum(weights))

    def worst(total: np.ndarray, squared: np.ndarray) -> tuple[float, float, str]:
        mean = total / len(ratios)
        value, error = np.abs(mean), np.sqrt(np.maximum(squared / len(ratios) - mean**2, 0.0) / len(ratios))
        place = int(np.argmax(value - sure * error))
        return float(value[place]), float(sure * error[place]), names[place]

    return Drift(*worst(*means), *worst(*spreads))
