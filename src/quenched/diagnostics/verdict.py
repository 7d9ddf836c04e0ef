"""The verdict of a diagnosis: a few findings, each a rule and a sentence, and the next thing to do."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from quenched.summary import rows_of
from quenched.transforms import positive

if TYPE_CHECKING:
    from quenched.diagnostics.diagnosis import Diagnosis

_SHORT_OF_TOP = 0.01  # nats
_DRAWS_MATTER = 0.1  # posterior standard deviations
_GOOD, _BAD, _HOPELESS = 0.5, 0.7, 1.0  # k-hat
_BULK = 0.8  # of the samples that the weights must keep
_WIDER = 1.15  # times the family's own standard deviation
_SKEWED = 0.3
_OFF = 0.1  # of a standard deviation, between the posterior and what importance weights make of it


class Finding(NamedTuple):
    """Something that a person should know."""

    name: str
    holds: Callable[["Diagnosis"], bool]
    says: Callable[["Diagnosis"], str]
    advises: Callable[["Diagnosis"], str]  # what to do; empty when nothing


def verdict(diagnosis: "Diagnosis") -> str:
    """Every finding that holds, and the first piece of advice."""
    found = findings(diagnosis)
    advice = next((text for text in (finding.advises(diagnosis) for finding in found) if text), "Use it as it is.")
    return " ".join([*(finding.says(diagnosis) for finding in found), advice])


def findings(diagnosis: "Diagnosis") -> list[Finding]:
    """Those that hold, the most urgent first."""
    return [finding for finding in FINDINGS if finding.holds(diagnosis)]


def worst_error(diagnosis: "Diagnosis", of: str) -> tuple[float, str]:
    """The largest error of a "mean" or an "sd" due to the draws, in posterior standard deviations, and whose it is."""
    table = rows_of(diagnosis.fit, diagnosis)
    errors = [row[f"{of}_error"] / max(row["sd"], np.finfo(float).tiny) for row in table]
    worst = int(np.argmax(errors))
    return errors[worst], table[worst]["name"]


def _skewed(diagnosis: "Diagnosis") -> list[str]:
    """Coordinates along which the target is clearly skewed, the worst first."""
    sure = np.abs(diagnosis.skewness) > 2.0 * diagnosis.skewness_error
    order = np.argsort(-np.abs(diagnosis.skewness))
    names = _real_names(diagnosis)
    return [names[i] for i in order if sure[i] and abs(diagnosis.skewness[i]) > _SKEWED]


def _too_narrow(diagnosis: "Diagnosis") -> list[str]:
    order = np.argsort(-diagnosis.missed_spread)
    names = _real_names(diagnosis)
    return [names[i] for i in order if diagnosis.missed_spread[i] > _WIDER]


class Departure(NamedTuple):
    """How far importance weights move the moments of one parameter."""

    name: str
    shift: float  # of the mean, in standard deviations
    ratio: float  # of the standard deviations


def _off(d: "Diagnosis") -> list[Departure]:
    """Parameters whose moments the weights clearly change, the worst first; none where the weights cannot be trusted."""
    if not d.khat <= _BAD:
        return []
    flat = lambda tree: np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])
    sd = np.maximum(flat(d.fit.sd), np.finfo(float).tiny)
    mean, own_sd, mean_error, sd_error = (flat(tree) for tree in d.reweighted)
    shift, ratio = (mean - flat(d.fit.mean)) / sd, own_sd / sd
    by_mean = (np.abs(shift) > _OFF) & (np.abs(shift) > 2.0 * mean_error / sd)
    by_sd = (np.abs(ratio - 1.0) > _OFF) & (np.abs(ratio - 1.0) > 2.0 * sd_error / sd)
    size = np.maximum(np.where(by_mean, np.abs(shift), 0.0), np.where(by_sd, np.abs(ratio - 1.0), 0.0))
    names = [row["name"] for row in rows_of(d.fit, d)]
    return [Departure(names[i], float(shift[i]), float(ratio[i])) for i in np.argsort(-size) if size[i] > 0.0]


def _of_departures(d: "Diagnosis") -> str:
    worst, *others = _off(d)
    return (
        f"By importance weights, the mean of {worst.name} is {worst.shift:+.2f} sds away and its sd is {worst.ratio:.2f} times "
        "the posterior's" + (f"; {len(others)} more differ." if others else ".")
    )


def _real_names(diagnosis: "Diagnosis") -> list[str]:
    """Coordinates as they are on the real line, where the posterior is Gaussian: `log tau` for a positive tau."""
    space = diagnosis.fit.space
    logarithmic = np.repeat([leaf.transform == positive for leaf in space.leaves], space.sizes)
    return [f"log {name}" if log else name for name, log in zip(space.coordinate_names(), logarithmic, strict=True)]


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _short(d: "Diagnosis") -> bool:
    return d.at_maximum and d.optimisation_error > _SHORT_OF_TOP


def _at_top(d: "Diagnosis") -> bool:
    return d.at_maximum and not _short(d)  # elsewhere, other draws would have gone on


def _draws_matter(d: "Diagnosis") -> bool:
    return _at_top(d) and not worst_error(d, "mean")[0] <= _DRAWS_MATTER


def _by_samples_or_warping(d: "Diagnosis") -> str:
    ways = ["PSIS samples, fit.resample(n)"] if d.khat <= _BAD else []
    ways += [] if d.fit.settings["family"] == "warped" else ["family=qd.Warped()"]
    return f"Use {', or '.join(ways)}." if ways else ""


def _only_tails(d: "Diagnosis") -> bool:
    return _BAD < d.khat < np.inf and d.effective_share > _BULK


def _of_draws(d: "Diagnosis") -> str:
    error, name = worst_error(d, "mean")
    return f"The draws move {name} by {error:.2g} posterior sds"


def _enough_for_what(d: "Diagnosis") -> str:
    error, name = worst_error(d, "sd")
    if error <= _DRAWS_MATTER:
        return f"{_of_draws(d)} at the most: more of them will not help."
    return f"{_of_draws(d)} at the most: they suffice for means, but the sd of {name} is only known to {error:.0%}."


FINDINGS = (
    Finding(
        "not a maximum",
        lambda d: not d.at_maximum,
        lambda d: "The bound still curves upwards here: this is not its top.",
        lambda d: "Resume with qd.fit(log_density, fit), or try starts=4.",
    ),
    Finding(
        "short of the top",
        _short,
        lambda d: (
            f"The ascent stopped {d.optimisation_error:.2g} nats short of the top "
            f"(means may move by {d.optimisation_distance:.2g} sds)."
        ),
        lambda d: (
            "Laplace's Gaussian does not raise the bound; qd.fit does."
            if d.fit.settings["method"] == "Laplace"
            else "Resume with qd.fit(log_density, fit)."
        ),
    ),
    Finding(
        "draws matter",
        _draws_matter,
        lambda d: f"{_of_draws(d)}: they are too few.",
        lambda d: f"Use more draws (now {d.fit.n_draws}): draws={2 * d.fit.n_draws}, or a smaller tolerance.",
    ),
    Finding(
        "draws suffice",
        lambda d: _at_top(d) and not _draws_matter(d),
        _enough_for_what,
        lambda d: "",
    ),
    Finding(
        "correlations left out",
        lambda d: bool(_too_narrow(d)),
        lambda d: (
            f"The {d.fit.settings['family']} family leaves out correlations: the sd of {_some(_too_narrow(d))} is too "
            f"small by a factor of about {d.missed_spread.max():.2g}."
        ),
        lambda d: 'Use diagnosis.linear_response.sd, or family="full".',
    ),
    Finding(
        "skewed",
        lambda d: bool(_skewed(d)),
        lambda d: f"The target is skewed in {_some(_skewed(d))}.",
        _by_samples_or_warping,
    ),
    Finding(
        "moments differ",
        lambda d: bool(_off(d)),
        _of_departures,
        _by_samples_or_warping,
    ),
    Finding(
        "family fits",
        lambda d: d.khat <= _GOOD,
        lambda d: f"Importance weights from the posterior to the target are good (k-hat {d.khat:.2f}).",
        lambda d: "",
    ),
    Finding(
        "family nearly fits",
        lambda d: _GOOD < d.khat <= _BAD,
        lambda d: f"The posterior is near the target but not the same (k-hat {d.khat:.2f}).",
        lambda d: "PSIS samples, fit.resample(n), correct it.",
    ),
    Finding(
        "heavier tails",
        _only_tails,
        lambda d: (
            f"The target has heavier tails than the posterior (k-hat {d.khat:.2f}), but in bulk they agree: the weights "
            f"keep {d.effective_share:.0%} of the samples."
        ),
        lambda d: "Trust means and sds, but no probability far out in the tails.",
    ),
    Finding(
        "family does not fit",
        lambda d: _BAD < d.khat <= _HOPELESS and not _only_tails(d),
        lambda d: f"The posterior is some way from the target (k-hat {d.khat:.2f}): means and sds are rough.",
        lambda d: "Compare the sds with diagnosis.linear_response.sd; where they differ, use a better family or MCMC.",
    ),
    Finding(
        "family is far off",
        lambda d: not d.khat <= _HOPELESS and not _only_tails(d),
        lambda d: f"The posterior is far from the target (k-hat {d.khat:.2f}): trust neither sds nor weights.",
        lambda d: "Reparametrise the model (for a funnel: non-centred), or check a few parameters by MCMC.",
    ),
)
