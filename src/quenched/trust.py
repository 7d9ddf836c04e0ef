"""How far to trust the answer: one sentence for every fit, from its check draws alone.

The check draws carry log p − log q. Their importance weights say how far the family is from the target, at no further
gradient; their products with the draws say how far the fit is from the best member of its family (Stein's identity: at
the best Gaussian the mean of (log p − log q) z, and of (log p − log q)(z zᵀ − I), is zero).
"""

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from quenched.posterior import Posterior, to_natural
from quenched.transforms import Parameters, Space
from quenched.weights import BAD, GOOD, Weights

if TYPE_CHECKING:
    from quenched.result import Fit

DRAWS_MATTER = "draws matter"  # the rule that more draws would mend
OF_FAMILY = (
    "family is far off",
    "means differ",
    "tails differ",
    "sds differ",
    "family nearly fits",
)  # rules on weights
NAN_FURTHER_OUT = "The log density is NaN"  # how a remark on it begins
_SHIFT, _RATIO = 0.1, 0.15  # of a mean in sds, and of an sd relative to itself, that weights may change
_LARGE = 1.0  # nats by which one posterior may be nearer to the target than another at one draw, and count in full
_UNSEEN = (
    0.075  # of a mean, in sds: the same where weights are so uneven that they miss a part of what they would change
)
_FEW_RATIOS = 100  # with fewer nothing can be said of a tail
_CONSTANT = 1e-12  # spread of a number that does not vary
_BULK = 0.8  # of the samples that the weights must keep where only the tails differ
_VARIATION = 0.15  # of the mass, by which target and posterior may differ where only the tails do
_APART = 0.2  # of the mass: by which they are not quite one; sds were then off by 15 % and more
_IN_TAILS = (
    0.04  # times √dim: the same where weights cannot be trusted; Student's t of 7 has as much, and an sd 7 % off
)
_ROUNDED = 0.1  # nats lost to rounding, from which check draws tell nothing
_CALM = 0.1  # of an sd: what weights may move a mean or an sd where they cannot be trusted, and yet leave it alone
MEAN_DRIFT, SD_DRIFT = 0.05, 0.1  # in sds, and relative: what other draws may change where they suffice


def lost_to_rounding(value: float) -> float:
    """Differences that a number of this size cannot hold."""
    return float(np.spacing(abs(value))) if np.isfinite(value) else 0.0


class Trust(IntEnum):
    """What of a posterior to trust."""

    NEITHER = 0
    MEANS = 1
    BOTH = 2

    @property
    def words(self) -> str:
        """As a sentence begins."""
        return ("Trust neither means nor sds", "Trust the means, not the sds", "Trust means and sds")[self]


class Answer(NamedTuple):
    """What to trust, and why."""

    trust: Trust
    why: str
    rule: str  # by which it was judged

    def __str__(self) -> str:
        return f"{self.trust.words}: {self.why}."


class Facts(NamedTuple):
    """What an answer is judged by: from the check draws of a fit, or from its diagnosis."""

    fit: "Fit"
    weights: Weights
    departures: list["Departure"]
    moved: "Moved"
    drift: "Drift | None"


class Rule(NamedTuple):
    """A reason to trust, or not to."""

    name: str
    trust: Trust
    holds: Callable[[Facts], bool]
    says: Callable[[Facts], str]


def answer(facts: Facts) -> Answer:
    """The first rule that holds."""
    rule = next(rule for rule in RULES if rule.holds(facts))
    return Answer(rule.trust, f"{rule.says(facts)}{_to_what(rule.trust, facts.drift)}", rule.name)


def _to_what(trust: Trust, drift: "Drift | None") -> str:
    """How well an sd is known that is trusted, and yet depends on the draws."""
    if trust is not Trust.BOTH or drift is None or not drift.sd > max(SD_DRIFT, drift.sd_error):
        return ""
    return f"; the sd of {drift.sd_name} is known to about {drift.sd:.0%}"


class Reweighted(NamedTuple):
    """Moments in natural units, shaped like `start`, and their standard errors; right as long as k-hat is."""

    mean: Parameters
    sd: Parameters
    mean_error: Parameters
    sd_error: Parameters


def reweight(space: Space, mean: Parameters, sd: Parameters, samples: np.ndarray, weights: np.ndarray) -> Reweighted:
    """What weights make of a posterior's own means and standard deviations; samples are on the real line.

    Weighted moments are compared with plain ones of the same samples: what the two have in common, which is most of their
    noise when the weights are even, cancels.
    """
    natural, relative = to_natural(space, samples), len(weights) * weights
    leaves, structure = jax.tree.flatten(natural)
    pairs = zip(leaves, jax.tree.leaves(mean), jax.tree.leaves(sd), strict=True)
    columns = zip(*(_reweighted(values, relative, *own) for values, *own in pairs), strict=True)
    return Reweighted(*(jax.tree.unflatten(structure, column) for column in columns))


def _reweighted(values: np.ndarray, weights: np.ndarray, mean: np.ndarray, sd: np.ndarray):
    weights = weights.reshape(-1, *(1,) * (values.ndim - 1))
    away = values - values.mean(axis=0)
    shift = np.mean(weights * away, axis=0)
    plain, weighted = np.mean(away**2, axis=0), np.mean(weights * (away - shift) ** 2, axis=0)
    plain, weighted = (np.where(plain > 0, value, 1.0) for value in (plain, weighted))  # a number that does not vary
    # How much each sample moves the differences that are reported.
    moves_mean = weights * (away - shift) - away
    moves_ratio = weights * ((away - shift) ** 2 / weighted - 1.0) - (away**2 / plain - 1.0)
    error = lambda moves: np.sqrt(np.mean(moves**2, axis=0) / len(values))
    ratio = np.sqrt(weighted / plain)
    return mean + shift, sd * ratio, error(moves_mean), 0.5 * sd * ratio * error(moves_ratio)


def gains(log_ratios: np.ndarray, others: np.ndarray) -> bool:
    """Whether one posterior is clearly nearer to the target than another, by their log ratios on the same draws."""
    n = min(len(log_ratios), len(others))
    if n < 2:
        return False
    with np.errstate(invalid="ignore"):
        rise = log_ratios[:n] - others[:n]
        # A few draws that only the other one puts where there is no mass speak for it, and hide it in their noise: cut off,
        # they lower the mean.
        return any(np.mean(part) > 2.0 * np.std(part, ddof=1) / np.sqrt(n) for part in (rise, np.minimum(rise, _LARGE)))


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
    """How far importance weights move the moments of one parameter."""

    name: str
    shift: float  # of the mean, in standard deviations
    ratio: float  # of the standard deviations
    of_mean: bool  # whether the shift is what is clear
    of_sd: bool


def departures(space: Space, mean: Parameters, sd: Parameters, found: Reweighted, weights: Weights) -> list[Departure]:
    """Parameters whose moments the weights change clearly, the worst first; none where the weights cannot be trusted.

    Clearly: beyond what their own noise explains, of the largest of as many as there are.
    """
    if not weights.khat <= BAD:
        return []
    shift, ratio = _changes(mean, sd, found)
    spread = _spread(sd)
    errors = _flat(found.mean_error) / spread, _flat(found.sd_error) / spread
    uneven = weights.khat > GOOD and weights.share < _BULK
    return clear_ones(space.names(), shift, ratio, *errors, uneven=uneven)


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

    Weights that are `uneven` move means by less than they are off: of a banana's by 0.1 sds where it is 0.5.
    """
    sure = clearly(len(names) if among is None else among)
    by_mean = (np.abs(shift) > _SHIFT) & (np.abs(shift) - _SHIFT > 0.5 * sure * shift_error)
    by_mean &= np.abs(shift) > sure * shift_error
    if uneven:
        by_mean |= (np.abs(shift) > _UNSEEN) & (np.abs(shift) > 0.75 * sure * shift_error)
    by_sd = (np.abs(ratio - 1.0) > _RATIO) & (np.abs(ratio - 1.0) > sure * ratio_error)
    size = np.maximum(np.where(by_mean, np.abs(shift), 0.0), np.where(by_sd, np.abs(ratio - 1.0), 0.0))
    return [
        Departure(names[i], float(shift[i]), float(ratio[i]), bool(by_mean[i]), bool(by_sd[i]))
        for i in np.argsort(-size)
        if size[i] > 0.0
    ]


def _changes(mean: Parameters, sd: Parameters, found: Reweighted) -> tuple[np.ndarray, np.ndarray]:
    """Shifts of all means in sds, and ratios of all sds; none for what does not vary, as a correlation with itself."""
    spread, own = _spread(sd), _flat(mean)
    varies = spread > _CONSTANT * np.maximum(np.abs(own), 1.0)
    shift, ratio = (_flat(found.mean) - own) / spread, _flat(found.sd) / spread
    return np.where(varies, shift, 0.0), np.where(varies, ratio, 1.0)


def _flat(tree: Parameters) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def _spread(sd: Parameters) -> np.ndarray:
    return np.maximum(_flat(sd), np.finfo(float).tiny)


def hopeless(weights: Weights) -> bool:
    """The weights say that the posterior is far off, and nothing of its moments."""
    return not weights.khat <= BAD and weights.variation >= _VARIATION


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


def drift(posterior: Posterior, names: list[str], log_ratios: np.ndarray, z: np.ndarray) -> Drift:
    """A step of natural gradient on the check draws, in units of the posterior. For Gaussian posteriors."""
    inside = np.isfinite(log_ratios)
    ratios, points = log_ratios[inside] - np.mean(log_ratios[inside]), posterior.transform(z[inside])
    along = (points - posterior.mean) / np.sqrt(posterior.variance())  # every parameter, standardised
    n, sure = len(ratios), clearly(along.shape[1]) / 2.0
    means, spreads = ratios[:, None] * along, 0.5 * ratios[:, None] * (along**2 - 1.0)

    def worst(moves: np.ndarray) -> tuple[float, float, str]:
        value, error = np.abs(moves.mean(axis=0)), moves.std(axis=0) / np.sqrt(n)
        place = int(np.argmax(value - sure * error))
        return float(value[place]), float(sure * error[place]), names[place]

    return Drift(*worst(means), *worst(spreads))


# Rules, in the order in which they are tried.


def _some(found: list[Departure]) -> str:
    worst, *others = found
    more = f"; {len(others)} more differ" if others else ""
    if worst.of_sd and not (worst.of_mean and abs(worst.shift) > abs(worst.ratio - 1.0)):
        return f"by importance weights the sd of {worst.name} is {worst.ratio:.2f} times the posterior's{more}"
    return f"by importance weights the mean of {worst.name} is {worst.shift:+.2f} sds away{more}"


def _of_weights(facts: Facts) -> str:
    return f"k-hat {facts.weights.khat:.2f}, and the weights keep {facts.weights.share:.0%} of the samples"


def _of_drift(facts: Facts) -> str:
    drift = facts.drift
    assert drift is not None
    return (
        f"other draws would move the mean of {drift.mean_name} by about {drift.mean:.2g} sds and the sd of "
        f"{drift.sd_name} by {drift.sd:.0%}"
    )


def _keeps_most(facts: Facts) -> bool:
    return facts.weights.share > _BULK


def _agrees_in_bulk(facts: Facts) -> bool:
    """By measures that no single weight rules."""
    return facts.weights.variation < _VARIATION and facts.moved.shift < _CALM


def _is_calm(facts: Facts) -> bool:
    return _agrees_in_bulk(facts) and facts.moved.spread < _CALM


def _nearly_fits(facts: Facts) -> bool:
    """By k-hat, or by the mass in which they differ: the neck of a funnel, which few draws enter, has small weights."""
    return facts.weights.khat > GOOD or facts.weights.variation > _APART


def _tails_are_slight(facts: Facts) -> bool:
    """What lies where no draw comes, and weights cannot see, is little where even the part that they see is little."""
    return facts.weights.variation < _IN_TAILS * np.sqrt(facts.fit.n_weighed)


RULES = (
    Rule(
        "did not end well",
        Trust.NEITHER,
        lambda facts: not (facts.fit.converged or facts.fit.status == "given"),
        lambda facts: f"the fit ended as {str(facts.fit.status).replace('_', ' ')}",
    ),
    Rule(
        "not finite",
        Trust.NEITHER,
        lambda facts: facts.weights.outside > 0.0 and len(facts.weights.weights) > 0,
        lambda facts: f"the log density is not finite at {facts.weights.outside:.2%} of fresh draws",
    ),
    Rule(
        "lost to rounding",
        Trust.NEITHER,
        lambda facts: lost_to_rounding(facts.fit.bound) > _ROUNDED,
        lambda facts: f"the log density is so large ({facts.fit.bound:.1e}) that rounding hides what could be checked",
    ),
    Rule(
        "overfits",
        Trust.NEITHER,
        lambda facts: facts.fit.overfits,
        lambda facts: f"the fit follows its draws (the gap is {facts.fit.gap:.2g} nats)",
    ),
    Rule(
        "no check",
        Trust.NEITHER,
        lambda facts: len(facts.weights.weights) < _FEW_RATIOS,
        lambda facts: f"{len(facts.weights.weights)} check draws are too few to compare it with the target",
    ),
    Rule(
        "family is far off",
        Trust.NEITHER,
        lambda facts: not facts.weights.khat <= BAD and not _keeps_most(facts) and not _agrees_in_bulk(facts),
        lambda facts: f"the {facts.fit.settings['family']} family is some way from the target ({_of_weights(facts)})",
    ),
    Rule(
        "means differ",
        Trust.NEITHER,
        lambda facts: any(one.of_mean for one in facts.departures),
        lambda facts: _some([one for one in facts.departures if one.of_mean]),
    ),
    Rule(
        "tails differ",
        Trust.MEANS,
        lambda facts: not facts.weights.khat <= BAD and not (_is_calm(facts) and _tails_are_slight(facts)),
        lambda facts: (
            f"in bulk the target and the posterior agree (they differ in {facts.weights.variation:.1%} of their mass), "
            f"but its tails are so heavy that weights cannot tell how wide it is (k-hat {facts.weights.khat:.2f})"
        ),
    ),
    Rule(
        "not finite further out",
        Trust.MEANS,
        lambda facts: any(remark.startswith(NAN_FURTHER_OUT) for remark in facts.fit.remarks),
        lambda facts: "the log density is NaN further out than any check draw came",
    ),
    Rule("sds differ", Trust.MEANS, lambda facts: bool(facts.departures), lambda facts: _some(facts.departures)),
    Rule(DRAWS_MATTER, Trust.MEANS, lambda facts: facts.drift is not None and facts.drift.clear, _of_drift),
    Rule(
        "family nearly fits",
        Trust.MEANS,
        lambda facts: _nearly_fits(facts) and not _keeps_most(facts) and not _is_calm(facts),
        lambda facts: f"the target is near the posterior but not the same ({_of_weights(facts)})",
    ),
    Rule(
        "heavier tails",
        Trust.BOTH,
        lambda facts: facts.weights.khat > GOOD,
        lambda facts: (
            f"in bulk the target and the posterior agree, in the tails less so ({_of_weights(facts)}); trust no "
            "probability far out"
        ),
    ),
    Rule(
        "fits",
        Trust.BOTH,
        lambda facts: True,
        lambda facts: f"importance weights from the posterior to the target are good (k-hat {facts.weights.khat:.2f})",
    ),
)
