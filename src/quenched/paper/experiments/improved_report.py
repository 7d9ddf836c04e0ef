"""The page on improved Gaussian approximations: who wins where, and by which error the others lose."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quenched.paper.experiments.experiment import Section
from quenched.paper.experiments.improved_methods import METHODS
from quenched.paper.experiments.improved_problems import PROBLEMS
from quenched.paper.experiments.improved_truth import SETTLED
from quenched.paper.experiments.records import Record
from quenched.paper.experiments.tasks import Outcome
from quenched.plots import BLUE, GREEN, GREY, ORANGE, dress, new_figure
from quenched.report import Markup, figure, table

_COLOURS = {
    "laplace": ("#999999", ":"),
    "nested_laplace": ("#CC79A7", "--"),
    "propagation": (GREEN, "--"),
    "full": (BLUE, ":"),
    "warped": (BLUE, "-"),
    "nested": (ORANGE, "-"),
}
_JUDGED_BY = ("mean_error", "sd_error", "marginal_distance", "evidence_error")
_WHY = {
    "laplace": "It takes the mode and the curvature there, and sees nothing of the mass to one side of it.",
    "nested_laplace": "The effects are at their modes for every value of the outer parameters; where each has few binary "
    "rows, their curvature there is not that of their posterior, and the outer ones inherit the error.",
    "propagation": "Each term is matched in its own moments, so means are good; one Gaussian over the outer parameters as "
    "well has neither their skewness nor the tails that they give to the effects, and updates of parallel sites may "
    "not settle.",
    "full": "It is the nearest Gaussian from within: it avoids what the target avoids, so that it is too narrow wherever "
    "the spread of some parameters changes with others.",
    "warped": "Skewness of single parameters is followed; that the spread of many changes with a few is followed only in part.",
    "nested": "For each value of the outer parameters the effects have their own best Gaussian; what is left is that "
    "of the effects which is not Gaussian even then.",
}


def sections(outcomes: Sequence[Outcome], records: Sequence[Record]) -> list[Section]:
    """From finished outcomes to the sections of the report."""
    found = {o.task.arguments["dataset"]: o.result for o in outcomes if o.error is None}
    found = {name: found[name] for name in PROBLEMS if name in found}
    if not found:
        return []
    parts: list[Any] = [
        "The paper ends with a promise: a comparison with nested Laplace and expectation propagation. All six methods get the "
        "same sums of terms and are judged against the truth: a grid for the skew densities, elsewhere Hamiltonian chains in "
        "the coordinates of the nested posterior (or with the effects in units of their standard deviations, where those settle "
        "better), which are exact whatever the coordinates are. Errors of means are "
        "in true standard deviations, those of standard deviations are logarithms of ratios, root mean square over all "
        "parameters; the distance of marginals is that of Kolmogorov, averaged. Seconds are those of the processor, "
        "compilation included, and what one method compiles serves those that come after it, in the order of the tables; "
        "expectation propagation begins at the full Gaussian, whose seconds are counted with its own.",
        *_winners(found),
        "Of each method, over all data sets on which it ran:",
        _by_method(found),
        "Errors by data set. Own evidence: what the method itself says of the log evidence, minus the truth (for "
        "frozen draws a lower bound, so that it is never too high but by chance).",
        _errors(found),
    ]
    if any(result["outer"] for result in found.values()):
        parts += [
            "The outer parameters (standard deviations of effects, correlations, amplitudes): the worst error of a mean, the "
            "worst ratio of an sd to the true one, and the mean ratio for all other parameters.",
            _of_outer(found),
        ]
    unsure = [name for name, result in found.items() if result["truth"]["rhat"] > SETTLED]
    said = (
        f" Where R-hat exceeds {SETTLED}, differences between good methods mean nothing: {', '.join(unsure)}."
        if unsure
        else ""
    )
    parts += [f"The truth itself.{said}", _of_truth(found), *_figures(found)]
    return [("Improved Gaussian approximations (what the paper leaves open)", parts)]


def best(result: dict[str, Any], metric: str) -> str:
    """The method with the smallest error."""
    return min(result["methods"], key=lambda key: abs(result["methods"][key][metric]))


def _winners(found: dict[str, Any]) -> list[Any]:
    rows = []
    for name, result in found.items():
        chosen = {metric: best(result, metric) for metric in _JUDGED_BY}
        cells = [f"{METHODS[key][0]} ({result['methods'][key][metric]:.3f})" for metric, key in chosen.items()]
        quickest = min(result["methods"], key=lambda key: result["methods"][key]["seconds"])
        rows.append((name, *cells, f"{METHODS[quickest][0]} ({result['methods'][quickest]['seconds']:.1f} s)"))
    counts = {key: sum(best(result, "marginal_distance") == key for result in found.values()) for key in METHODS}
    ranked = sorted((key for key in counts if counts[key]), key=lambda key: -counts[key])
    said = ", ".join(f"{METHODS[key][0]} on {counts[key]}" for key in ranked)
    return [
        f"Who wins where. Nearest to the true marginals, of {len(found)} data sets: {said}.",
        table(["data set", "means", "sds", "marginals", "own evidence", "quickest"], rows),
    ]


def _by_method(found: dict[str, Any]) -> Markup:
    rows = []
    for key, (label, _) in METHODS.items():
        own = [result["methods"][key] for result in found.values() if key in result["methods"]]
        if not own:
            continue
        middle = lambda metric, own=own: float(np.median([one[metric] for one in own if metric in one] or [np.nan]))
        failed = sum(key in result["failed"] for result in found.values())
        ratio = middle("outer_sd_ratio")
        rows.append(
            (
                label,
                len(own),
                failed,
                f"{middle('mean_error'):.3f}",
                f"{middle('sd_error'):.3f}",
                f"{middle('marginal_distance'):.3f}",
                "–" if np.isnan(ratio) else f"{ratio:.2f}",
                f"{middle('seconds'):.1f}",
                _WHY[key],
            )
        )
    columns = ["method", "ran on", "failed on", "means", "sds", "marginals", "outer sd ratio", "seconds", "why"]
    return table(columns, rows)


def _errors(found: dict[str, Any]) -> Markup:
    metrics = ("mean_error", "worst_mean_error", "sd_error", "worst_sd_error", "marginal_distance")
    rows = []
    for name, result in found.items():
        for key, (label, _) in METHODS.items():
            one = result["methods"].get(key)
            if one is None:
                if key in result["failed"]:
                    rows.append((name, label, *("–",) * 9, f"failed: {result['failed'][key][:80]}"))
                continue
            numbers = [f"{one[metric]:.3f}" for metric in (*metrics, "worst_marginal_distance")]
            rows.append(
                (
                    name,
                    label,
                    *numbers,
                    f"{one['evidence_error']:+.3f}",
                    one["evaluations"],
                    f"{one['seconds']:.1f}",
                    one["status"],
                )
            )
    columns = ["data set", "method", "means", "worst", "sds", "worst", "marginals", "worst", "own evidence"]
    return table([*columns, "gradients", "seconds", "ended"], rows)


def _of_outer(found: dict[str, Any]) -> Markup:
    rows = []
    for name, result in found.items():
        if not result["outer"]:
            continue
        for key, (label, _) in METHODS.items():
            one = result["methods"].get(key)
            if one is not None:
                metrics = ("outer_mean_error", "outer_sd_ratio", "outer_distance", "inner_sd_ratio")
                rows.append((name, label, *(f"{one[metric]:.3f}" for metric in metrics)))
    return table(["data set", "method", "mean", "sd ratio", "marginal", "sd ratio of the others"], rows)


def _of_truth(found: dict[str, Any]) -> Markup:
    rows = []
    for name, result in found.items():
        truth = result["truth"]
        rows.append(
            (
                name,
                result["n_parameters"],
                f"{truth['evidence']:.3f} ± {truth['evidence_error']:.3f}",
                f"{truth['rhat']:.3f}",
                f"{truth['effective']:.0f}",
                f"{truth['seconds']:.1f}",
            )
        )
    return table(["data set", "parameters", "log evidence", "worst R-hat", "fewest effective samples", "seconds"], rows)


def _figures(found: dict[str, Any]) -> list[Any]:
    parts = []
    for name, result in found.items():
        drawn = new_figure(8.0, 2.8)
        panels = np.atleast_1d(drawn.subplots(1, len(result["marginals"])))
        for panel, marginal in zip(panels, result["marginals"], strict=True):
            edges = np.array(marginal["edges"])
            middle = 0.5 * (edges[1:] + edges[:-1])
            panel.fill_between(middle, marginal["curves"]["truth"], color=GREY, alpha=0.3, linewidth=0, label="truth")
            for key, heights in marginal["curves"].items():
                if key != "truth":
                    colour, style = _COLOURS[key]
                    panel.plot(middle, heights, color=colour, linestyle=style, linewidth=1.2, label=METHODS[key][0])
            dress(panel, title=marginal["name"])
            panel.set_yticks([])
        panels[-1].legend(fontsize=6, frameon=False)
        shown = ", ".join(marginal["name"] for marginal in result["marginals"])
        parts.append(figure(drawn, f"{name}: marginals in which the methods differ most ({shown})."))
    return parts
