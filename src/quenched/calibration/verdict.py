"""From ranks to words: what is wrong with a posterior whose ranks are not uniform."""

from typing import NamedTuple

import numpy as np

from quenched.calibration.ranks import departure, uniform_band

_SIGNIFICANT = 3.0  # standard errors of a moment of the ranks

CALIBRATED, NARROW, WIDE, LOW, HIGH, OTHER = (
    "calibrated",
    "too narrow",
    "too wide",
    "biased low",
    "biased high",
    "not calibrated",
)


class RankFinding(NamedTuple):
    """What the ranks of one number say."""

    name: str
    verdict: str  # calibrated | too narrow | too wide | biased low | biased high (joined by "and") | not calibrated
    departure: float  # from uniform ranks, in half-widths of the band; up to 1 is what chance explains
    shift: float  # of the posterior mean, in posterior standard deviations, roughly; positive: too high
    width: float  # posterior standard deviation over the one that would be right, roughly


def judge_ranks(name: str, ranks: np.ndarray, n_samples: int, coverage: float) -> RankFinding:
    """Compare ranks with uniform ones, and if they differ, say how."""
    n = len(ranks)
    beyond = departure(ranks, n_samples, uniform_band(n, n_samples, coverage))
    scores = _normal_scores(ranks, n_samples)
    mean, sd = float(np.mean(scores)), float(np.std(scores, ddof=1))
    if beyond <= 1.0:
        return RankFinding(name, CALIBRATED, beyond, -mean, 1.0 / sd)
    words = []
    if abs(mean) > _SIGNIFICANT * sd / np.sqrt(n):
        words.append(LOW if mean > 0 else HIGH)  # true values that rank high lie above the posterior
    # The spread is compared around the mean of the scores: a bias alone does not make a posterior narrow.
    if abs(np.log(sd)) > _SIGNIFICANT / np.sqrt(2.0 * n):
        words.append(NARROW if sd > 1.0 else WIDE)
    return RankFinding(name, " and ".join(words) or OTHER, beyond, -mean, 1.0 / sd)


def _normal_scores(ranks: np.ndarray, n_samples: int) -> np.ndarray:
    """Ranks as standard-normal numbers: for a Gaussian posterior, true value minus mean over sd."""
    from scipy.special import ndtri

    return ndtri((np.asarray(ranks) + 0.5) / (n_samples + 1))


def in_words(findings: list[RankFinding], n: int, n_failed: int) -> str:
    """One paragraph for all numbers."""
    wrong = [finding for finding in findings if finding.verdict != CALIBRATED]
    lead = f"{n} simulated data sets, {len(findings)} numbers."
    if n_failed:
        lead += (
            f" {n_failed} fits failed and are left out: if they are not a random few, the ranks of the rest mislead."
        )
    if not wrong:
        return f"{lead} Calibrated: the ranks of all are uniform, as far as {n} data sets can tell."
    wrong.sort(key=lambda finding: -finding.departure)
    each = [f"{finding.name} is {finding.verdict} ({_size(finding)})" for finding in wrong[:6]]
    rest = f", and {len(wrong) - 6} more" if len(wrong) > 6 else ""
    return f"{lead} Not calibrated: {'; '.join(each)}{rest}."


def _size(finding: RankFinding) -> str:
    parts = []
    if LOW in finding.verdict or HIGH in finding.verdict:
        parts.append(f"by about {abs(finding.shift):.2g} posterior sds")
    if NARROW in finding.verdict or WIDE in finding.verdict:
        parts.append(f"its sd is about {finding.width:.2g} of what it should be")
    return ", ".join(parts) or f"{_percent(finding.departure - 1.0)} farther from uniform than chance explains"


def _percent(part: float) -> str:
    """To one digit, without an exponent."""
    return f"{float(f'{100.0 * part:.1g}'):g} %"
