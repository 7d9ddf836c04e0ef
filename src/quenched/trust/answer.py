"""How far to trust the answer: one sentence for every fit, by rules on what its check draws, or a diagnosis, found."""

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quenched.trust.departures import BULK, SD_DRIFT, VARIATION, Departure, Drift, Moved, furthest
from quenched.trust.further import Further
from quenched.trust.region import INFINITE_FURTHER_OUT, NAN_FURTHER_OUT
from quenched.trust.weights import BAD, GOOD, Weights

if TYPE_CHECKING:
    from quenched.results import Fit

DRAWS_MATTER = "draws matter"  # the rule that more draws would mend
OTHER_MODE = "another mode"  # the rule that no Gaussian mends, nor a warp
FAR_OFF = "family is far off"  # the rule that no number of draws mends
# Rules on what lies where samples of the posterior do not come, nor resampling with them; and all rules on weights.
FURTHER_OUT = ("means further out", "further out", "much wider", "wider")
OF_FAMILY = (*FURTHER_OUT, FAR_OFF, "means differ", "tails differ", "sds differ", "family nearly fits")
_FEW = 3  # parameters that are named apart from thousands
_FEW_RATIOS = 100  # with fewer nothing can be said of a tail
_APART = 0.2  # of the mass: by which they are not quite one; sds were then off by 15 % and more
# Times √dim: the same where weights cannot be trusted; Student's t of 7 has as much, and an sd 7 % off.
_IN_TAILS = 0.04
# Of an sd by which the target is wider, as it is where it is a funnel: what is clear, and what is found where noise hides that. Means were
# then off by 0.17, 0.35, 0.42 and 0.62 sds, and at times right.
_FUNNEL, _FOUND = 0.15, 0.3
_ROUNDED = 0.1  # nats lost to rounding, from which check draws tell nothing
# The same of good weights, from draws further out: right posteriors were moved by 0.13, wrong ones by 0.2.
_RESTLESS = 0.15
_CALM = 0.1  # of an sd: what weights may move a mean or an sd where they cannot be trusted, and yet leave it alone
# The same of a mean by draws further out that are uneven: they saw 0.07 of 0.36 sds, by which a mixture's was off, and 0.08 of 0.22.
_STILL = 0.05


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
    """What to trust, and why.

    Examples
    --------
    >>> answer = qd.fit(lambda w: -0.5 * w**2, 0.0).answer
    >>> answer.trust.words, answer.rule  # print(answer) goes on with the reason
    ('Trust means and sds', 'fits')
    """

    trust: Trust
    why: str
    rule: str  # by which it was judged
    of: str = ""  # the few parameters that it is about, where all others are known to be right

    def __str__(self) -> str:
        return f"{self.words}: {self.why}."

    @property
    def words(self) -> str:
        """As the sentence begins."""
        if not self.of or self.trust is Trust.BOTH:
            return self.trust.words
        return f"Trust means and sds but {'the sd' if self.trust is Trust.MEANS else 'those'} of {self.of}"


class Facts(NamedTuple):
    """What an answer is judged by: from the check draws of a fit, or from its diagnosis."""

    fit: "Fit"
    weights: Weights
    departures: list[Departure]
    moved: Moved
    drift: Drift | None


class Rule(NamedTuple):
    """A reason to trust, or not to."""

    name: str
    trust: Trust
    holds: Callable[[Facts], bool]
    says: Callable[[Facts], str]


def answer(facts: Facts) -> Answer:
    """The first rule that holds."""
    rule = next(rule for rule in RULES if rule.holds(facts))
    of, others = _all_but(facts) if rule.name in ("means differ", "sds differ") else ("", "")
    return Answer(rule.trust, f"{rule.says(facts)}{_to_what(rule.trust, facts.drift)}{others}", rule.name, of)


def _all_but(facts: Facts) -> tuple[str, str]:
    """Of a fit whose groups were integrated over, so that each number is known by itself: the few that differ, if few do.

    The mean of an sd that thousands of groups share may be off by half of its own tiny sd, and all of those be right.
    """
    collapsed, differ = facts.fit.collapsed, {one.name for one in facts.departures}
    if collapsed is None or len(differ) > _FEW:
        return "", ""
    others = np.array([name not in differ for name in facts.fit.space.coordinate_names()])
    rest = furthest(collapsed.shift[others], collapsed.ratio[others])
    if not max(rest) < _RESTLESS:
        return "", ""
    return ", ".join(sorted(differ)), (
        f"; of the other {others.sum():,} no mean by more than {rest.shift:.2g} sds, and no sd by more than {rest.spread:.1%}"
    )


def _to_what(trust: Trust, drift: Drift | None) -> str:
    """How well an sd is known that is trusted, and yet depends on the draws."""
    if trust is not Trust.BOTH or drift is None or not drift.sd > max(SD_DRIFT, drift.sd_error):
        return ""
    return f"; the sd of {drift.sd_name} is known to about {drift.sd:.0%}"


# Rules, in the order in which they are tried.


def _some(found: list[Departure]) -> str:
    worst, *others = found
    more = f"; {len(others)} more differ{'s' if len(others) == 1 else ''}" if others else ""
    if worst.of_sd and not (worst.of_mean and abs(worst.shift) > abs(worst.ratio - 1.0)):
        return f"importance weights make the sd of {worst.name} {worst.ratio:.2f} times as large{more}"
    return f"importance weights move the mean of {worst.name} by {worst.shift:+.2f} sds{more}"


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
    return facts.weights.share > BULK


def _agrees_in_bulk(facts: Facts) -> bool:
    """By measures that no single weight rules."""
    return facts.weights.variation < VARIATION and facts.moved.shift < _CALM


def _is_calm(facts: Facts) -> bool:
    return _agrees_in_bulk(facts) and facts.moved.spread < _CALM


def _agrees_further_out(facts: Facts) -> bool:
    """By draws that reach there on purpose, from which weights are good where those of the posterior's own draws are not."""
    further = facts.fit.further
    return further is not None and further.known and max(further.moved) < _CALM


def _calm_enough(further: Further) -> float:
    """What weights may move there, noise of many parameters included: those that are uneven see a part of what is off."""
    return _RESTLESS if further.khat <= GOOD else _CALM


def _hardly_moves_further_out(facts: Facts) -> bool:
    further = facts.fit.further
    return further is not None and further.known and max(further.moved) < _calm_enough(further)


def _differs_further_out(facts: Facts) -> bool:
    """Weights from those draws move it so far that noise is a poor excuse."""
    further = facts.fit.further
    return further is not None and not max(further.moved) < _calm_enough(further)


def _means_further_out(facts: Facts) -> bool:
    """To trust means takes more than that nothing speaks clearly against them.

    Good weights too see a part alone of a heavy tail in natural units, and their noise hides it: 0.22 of 0.36 sds.
    """
    further = facts.fit.further
    if further is None:
        return False
    still = _RESTLESS if further.khat <= GOOD else _STILL
    return _differs_further_out(facts) and not further.moved.shift < still


def _of_further(facts: Facts) -> str:
    further = facts.fit.further
    assert further is not None
    return (
        "further out than check draws come the target is another: there a mean may be off by "
        f"{further.moved.shift:.2g} sds and an sd by {further.moved.spread:.0%} or more (k-hat {further.khat:.2f})"
    )


def _wider(facts: Facts) -> bool:
    return facts.fit.response is not None and facts.fit.response.ratio > 1.0 + SD_DRIFT


def _much_wider(facts: Facts) -> bool:
    response = facts.fit.response
    return (
        _wider(facts) and response is not None and (response.ratio > 1.0 + _FUNNEL or response.largest > 1.0 + _FOUND)
    )


def _responds_little(facts: Facts) -> bool:
    """The sum of many slight differences makes weights uneven, and their shifts noisy, where no parameter is off by much."""
    further, response = facts.fit.further, facts.fit.response
    if further is None or response is None:
        return False
    return response.largest < 1.0 + SD_DRIFT and max(further.moved) < _CALM


def _of_response(facts: Facts) -> str:
    response = facts.fit.response
    assert response is not None
    return (
        f"the spread of the others changes along {response.name}, and weights see little of that: its sd should be about "
        f"{response.ratio:.2f} times as large"
    )


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
        OTHER_MODE,
        Trust.NEITHER,
        lambda facts: facts.fit.further is not None and bool(facts.fit.further.elsewhere),
        lambda facts: "" if facts.fit.further is None else facts.fit.further.elsewhere,
    ),
    Rule(
        FAR_OFF,
        Trust.NEITHER,
        lambda facts: (
            not facts.weights.khat <= BAD
            and not (_keeps_most(facts) or _agrees_in_bulk(facts) or _agrees_further_out(facts))
        ),
        lambda facts: f"the {facts.fit.settings['family']} family is some way from the target ({_of_weights(facts)})",
    ),
    Rule(
        "means differ",
        Trust.NEITHER,
        lambda facts: any(one.of_mean for one in facts.departures),
        lambda facts: _some([one for one in facts.departures if one.of_mean]),
    ),
    Rule(
        "means further out",
        Trust.NEITHER,
        _means_further_out,
        _of_further,
    ),
    Rule("much wider", Trust.NEITHER, _much_wider, _of_response),
    Rule(
        "infinite further out",
        Trust.NEITHER,
        lambda facts: any(remark.startswith(INFINITE_FURTHER_OUT) for remark in facts.fit.all_remarks),
        lambda facts: "the log density is infinite further out than any check draw came",
    ),
    Rule(
        "tails differ",
        Trust.MEANS,
        lambda facts: (
            not facts.weights.khat <= BAD
            and not (_is_calm(facts) and _tails_are_slight(facts))
            and not _agrees_further_out(facts)
        ),
        lambda facts: (
            f"in bulk the target and the posterior agree (they differ in {facts.weights.variation:.1%} of their mass), "
            f"but its tails are so heavy that weights cannot tell how wide it is (k-hat {facts.weights.khat:.2f})"
        ),
    ),
    Rule(
        "not finite further out",
        Trust.MEANS,
        lambda facts: any(remark.startswith(NAN_FURTHER_OUT) for remark in facts.fit.all_remarks),
        lambda facts: "the log density is NaN further out than any check draw came",
    ),
    Rule("sds differ", Trust.MEANS, lambda facts: bool(facts.departures), lambda facts: _some(facts.departures)),
    Rule("further out", Trust.MEANS, _differs_further_out, _of_further),
    Rule("wider", Trust.MEANS, _wider, _of_response),
    Rule(DRAWS_MATTER, Trust.MEANS, lambda facts: facts.drift is not None and facts.drift.clear, _of_drift),
    Rule(
        "family nearly fits",
        Trust.MEANS,
        lambda facts: (
            _nearly_fits(facts)
            and not (_keeps_most(facts) or _is_calm(facts))
            and not (_hardly_moves_further_out(facts) or _responds_little(facts))
        ),
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
