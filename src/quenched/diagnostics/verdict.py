"""The verdict of a diagnosis: a few findings, each a rule and a sentence, and the next thing to do."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quenched.results import rows_of
from quenched.targets import EntropyForm
from quenched.transforms import real_names
from quenched.trust import (
    BAD,
    DRAWS_MATTER,
    FAR_OFF,
    FURTHER_OUT,
    OF_FAMILY,
    OTHER_MODE,
    SD_DRIFT,
    Answer,
    Drift,
    Facts,
    Trust,
    answer,
)

if TYPE_CHECKING:
    from quenched.diagnostics.diagnosis import Diagnosis
    from quenched.results import Fit

_SHORT_OF_TOP = 0.01  # nats
_DRAWS_MATTER = 0.1  # posterior standard deviations
_ENOUGH_KEPT = 0.1  # of the samples, by weights that are worth resampling with
_OUTER_KEPT = 0.9  # of the outer samples, by weights of a posterior that follows its bound
_UNSURE = 0.25  # relative error of an error that comes from a few sets of draws
_WIDER = 1.15  # times the family's own standard deviation
_SKEWED = 0.3


class Finding(NamedTuple):
    """Something that a person should know."""

    name: str
    holds: Callable[["Diagnosis"], bool]
    says: Callable[["Diagnosis"], str]
    advises: Callable[["Diagnosis"], str]  # what to do; empty when nothing


def verdict(diagnosis: "Diagnosis") -> str:
    """The answer, every finding that holds, and the first piece of advice."""
    judged, found, fit = diagnosis.answer, findings(diagnosis), diagnosis.fit
    # Where the family is what is wrong, more draws would not mend it; where it is far off, not in the least.
    urgent = sorted(found, key=lambda finding: finding.name == "draws matter" and judged.rule in OF_FAMILY)
    urgent = [finding for finding in urgent if not (finding.name == "draws matter" and judged.rule == FAR_OFF)]
    advice = next((text for text in (finding.advises(diagnosis) for finding in urgent) if text), "")
    if not advice:
        advice = _as_it_is(diagnosis) if judged.trust is Trust.BOTH else advice_on(diagnosis)
    said = [str(judged), fit.message, *(finding.says(diagnosis) for finding in found), *fit.all_remarks, advice]
    return " ".join(text for text in said if text)


def _as_it_is(d: "Diagnosis") -> str:
    if not (_at_top(d) and worst_error(d, "sd")[0] > SD_DRIFT):
        return "Use it as it is."
    return _more_draws(d, "For closer sds use")


def trusted(diagnosis: "Diagnosis") -> Answer:
    """What of the posterior to trust, by what the diagnosis has found."""
    (mean, mean_name), (sd, sd_name) = worst_error(diagnosis, "mean"), worst_error(diagnosis, "sd")
    drift = Drift(mean, _UNSURE * mean, mean_name, sd, _UNSURE * sd, sd_name) if _at_top(diagnosis) else None
    found = answer(Facts(diagnosis.fit, diagnosis.weights, diagnosis.departures, diagnosis.moved, drift))
    checked = diagnosis.fit.checked
    # Weights that look even by one set of samples and uneven by another are uneven: a few samples far out decide.
    return checked if checked.trust < found.trust and checked.rule in OF_FAMILY else found


def advice_on(d: "Diagnosis") -> str:
    """What to do about an answer that is not to be trusted altogether."""
    if d.answer.rule == DRAWS_MATTER:
        return _more_draws(d)
    if not d.fit.finite:
        return ""  # the remark that says where it is not has said what to do
    if d.answer.rule == OTHER_MODE:
        return (
            "Fit it from there too and compare the bounds; where both modes count, use MCMC with chains that begin in each, or "
            "write the model so that there is one (qd.ordered for labels, qd.positive for a sign)."
        )
    warp = _warped(d.fit)
    reached = d.answer.rule not in FURTHER_OUT and d.weights.share > _ENOUGH_KEPT
    if max(d.weights.khat, d.fit.weights.khat) <= BAD and reached:
        if warp:
            return f"PSIS samples, fit.resample(n), are nearer to the target, and so may be {warp}."
        return "PSIS samples, fit.resample(n), are nearer to the target."
    if d.outer is not None:
        return "Reparametrise the inner parameters, name more of them as outer, or check a few parameters by MCMC."
    otherwise = "(a funnel: from centred to non-centred, or back), or use MCMC from fit.nuts_start()."
    if warp:
        return f"Try {warp}; if that does not reach it, reparametrise {otherwise}"
    return f"Reparametrise the model {otherwise}"


def _warped(fit: "Fit") -> str:
    """The option by which the posterior may be skewed, or follow more correlations; nothing if that was tried."""
    family = fit.posterior.member.family
    tried = fit.settings["family"] != family.name  # a fit of another family has gone back to this one
    return "" if tried else family.advice(fit.posterior.dim)


def _more_draws(d: "Diagnosis", use: str = "Use") -> str:
    if d.outer is not None:
        n = d.fit.settings["outer_draws"]
        return f"{use} more draws of the outer parameters (now {n}): draws={4 * n}."
    return f"{use} more draws (now {d.fit.n_draws}): draws={4 * d.fit.n_draws}."


def _nested_command(d: "Diagnosis") -> str:
    """The parameters that drive the others, as the outer ones of a nested fit, to be typed as it stands."""
    space, target = d.fit.space, None if d.fit.origin is None else d.fit.origin.problem.target
    traced = target is None or (not target.on_host and isinstance(target.make_form(1), EntropyForm))
    if not traced:
        return advice_on(d)
    of_coordinate = [leaf.name for leaf, size in zip(space.leaves, space.sizes, strict=True) for _ in range(size)]
    leaf_of = dict(zip(real_names(space), of_coordinate, strict=True))
    own, driven = Counter(of_coordinate), Counter(leaf_of[name] for name in d.driving)
    outer = [name for name in own if 2 * driven[name] >= own[name]]  # a leaf goes whole: one entry of many is no reason
    given = ", data=data" if _takes_data(d.fit) else ""
    given += ", transforms=transforms" if space.constrained else ""
    if not 0 < len(outer) < len(space.leaves):
        return (
            f"Give {_some(d.driving)} a name apart from the others, start = {{'outer': ..., 'inner': ...}}, and try "
            f"qd.nested(log_density, start, outer=['outer']{given})."
        )
    return f"Try qd.nested(log_density, start, outer={outer!r}{given})."


def _takes_data(fit: "Fit") -> bool:
    origin = fit.origin
    return origin is not None and origin.problem.target.given(origin.problem.data) is not None


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
    names = real_names(diagnosis.fit.space)
    return [names[i] for i in order if sure[i] and abs(diagnosis.skewness[i]) > _SKEWED]


def _too_narrow(diagnosis: "Diagnosis") -> list[str]:
    order = np.argsort(-diagnosis.missed_spread)
    names = real_names(diagnosis.fit.space)
    return [names[i] for i in order if diagnosis.missed_spread[i] > _WIDER]


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _short(d: "Diagnosis") -> bool:
    return d.at_maximum and d.optimisation_error > max(_SHORT_OF_TOP, 0.1 * d.fit.settings["tolerance"])


def _at_top(d: "Diagnosis") -> bool:
    return d.at_maximum and not _short(d)  # elsewhere, other draws would have gone on


def _draws_matter(d: "Diagnosis") -> bool:
    return _at_top(d) and not worst_error(d, "mean")[0] <= _DRAWS_MATTER


def _outer_fits(d: "Diagnosis") -> bool:
    return d.outer is not None and (d.outer.khat <= BAD or d.outer.share > _OUTER_KEPT)


def _resume(d: "Diagnosis") -> str:
    origin = d.fit.origin
    given = origin is not None and origin.problem.data is not None and origin.problem.target.data is None
    return f"qd.fit(log_density, fit{', data=data' if given else ''})"


def _of_draws(d: "Diagnosis") -> str:
    error, name = worst_error(d, "mean")
    return f"The draws move {name} by {error:.2g} posterior sds"


def _enough_for_what(d: "Diagnosis") -> str:
    error, name = worst_error(d, "sd")
    if error <= SD_DRIFT:
        return f"{_of_draws(d)} at the most: more of them will not help."
    return f"{_of_draws(d)} at the most, and the sd of {name} by {error:.0%}: they suffice for means."


FINDINGS = (
    Finding(
        "not a maximum",
        lambda d: not d.at_maximum,
        lambda d: "The bound still curves upwards here: this is not its top.",
        lambda d: f"Resume with {_resume(d)}, or try starts=4." if d.outer is None else _more_draws(d),
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
            else f"Resume with {_resume(d)}."
            if d.outer is None
            else _more_draws(d)
        ),
    ),
    Finding(
        "draws matter",
        _draws_matter,
        lambda d: f"{_of_draws(d)}: they are too few.",
        _more_draws,
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
        lambda d: (
            'Use diagnosis.linear_response.sd, or family="full".'
            if d.linear_response.n_gradients <= d.fit.n_evaluations
            else 'Use family="full".'
        ),
    ),
    Finding(
        "driven",
        lambda d: bool(d.driving) and d.outer is None and d.answer.trust is not Trust.BOTH and not d.fit.overfits,
        lambda d: (
            f"The spread of the others changes with {_some(d.driving)}, which no Gaussian follows: write the model so that "
            "it does not (non-centred), or let it be solved for every value of those."
        ),
        _nested_command,
    ),
    Finding(
        "inner shapes",
        lambda d: d.outer is not None and d.answer.trust is not Trust.BOTH,
        lambda d: (
            f"The outer posterior itself follows the bound of the inner Gaussians (k-hat {d.outer.khat:.2f}): "
            "what is off is the inner parameters, which are not Gaussian given the outer ones."
            if _outer_fits(d)
            else "The outer posterior does not follow the bound of the inner Gaussians."
        ),
        lambda d: "" if _outer_fits(d) else _more_draws(d),
    ),
    Finding(
        "skewed",
        lambda d: bool(_skewed(d)),
        lambda d: f"The target is skewed in {_some(_skewed(d))}.",
        lambda d: "" if d.answer.trust is Trust.BOTH else advice_on(d),
    ),
    Finding(
        "copies elsewhere",
        lambda d: bool(d.mirrors),
        lambda d: (
            f"The log density is the same when {d.mirrors[0].says}: this is one of {d.mirrors[0].copies} copies, and the "
            f"log evidence of them all is {d.mirrors[0].nats:.2f} nats higher, if they do not overlap."
        ),
        lambda d: "",
    ),
)
