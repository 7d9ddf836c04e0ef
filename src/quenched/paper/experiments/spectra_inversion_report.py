"""What the report says and shows of the ground-motion experiment."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from quenched.paper.experiments import printed
from quenched.paper.experiments.experiment import Section, results
from quenched.paper.experiments.records import Record, by_method, pair, shown
from quenched.paper.experiments.tasks import Outcome
from quenched.plots import (
    BLUE,
    GREEN,
    HAIRLINE,
    ORANGE,
    SMALL,
    Panel,
    dress,
    new_figure,
    plot_corner,
    plot_spectra,
)
from quenched.report import Markup, figure, table

SETS = {
    "fksh11": "KiK-net FKSH11, borehole (8 events, 1 station)",
    "kmmh14": "KiK-net KMMH14, borehole (8 events, 1 station)",
    "laquila": "L'Aquila main shock (1 event, 13 stations)",
}
METHODS = {  # mode, label
    "paper": ("paper", "frozen draws, iid S=1000, Algorithm 1"),
    "default": ("default", "frozen draws, matched"),
    "laplace": ("default", "Laplace, same prior"),
    "laplace_line": ("default", "Laplace, flat on the real line"),
    "laplace_natural": ("default", "Laplace, no bounds"),
    "frozen_line": ("default", "frozen draws, flat on the real line"),
}
_RIVALS = ("laplace", "laplace_line", "laplace_natural")
_TIE = 0.02  # relative
T = TypeVar("T")

_DATA = (
    "The paper's data are a subset of RESORCE, which is not public. In its place stand spectra derived from public records: "
    "two stations of KiK-net (NIED, doi:10.17598/NIED.0004) in the paper's layout, 8 events at one station and so 11 "
    "physical parameters, and the main shock of L'Aquila (ITACA) at 13 stations. The paper's numbers stand beside ours to "
    "be compared in kind, not in size: other data, and it does not say in which logarithm. Ours are errors of ln amplitude."
)
_MEASURE = (
    "As in the paper: N random points to train, others to test, ten realisations; 200 samples of each posterior; the error is "
    "the mean squared error on the test points, averaged over the samples. All methods see the same points. A result is "
    "called absurd when its error is not finite or exceeds the variance of the test data, that is, when it predicts "
    "worse than a constant; means and spreads are over the repetitions that were not. Smoothed spectra have correlated "
    "neighbours, so a random split is easier than new records would be, for every method alike."
)
_PRIOR = (
    "The paper writes a flat prior, p(w) ∝ 1, over parameters that are bounded, and not on which scale. Flat within the bounds in "
    "natural units is proper, and is what GroundMotion does. Flat on the real line, where the Gaussian lives, is improper "
    "wherever the data do not exclude a bound: Laplace's Gaussian can then become so wide that it reaches the other bound, "
    "and the bound of the frozen draws has no maximum either (last row; it stops where its evaluations end). Flat without "
    "bounds lets Laplace's Gaussian reach negative stress drops, where the model is not defined. All are shown; the "
    "comparison depends on which of them is meant."
)


def dataset_label(name: str, n: int) -> str:
    """What records call so many points of a set."""
    return f"{name}, N={n}"


def theirs(method: str, n: int) -> tuple[float, float]:
    """What the paper has for a method and so many points."""
    return (printed.GROUND_MOTION_LAPLACE if method.startswith("laplace") else printed.GROUND_MOTION_PROPOSED)[n]


def sections(outcomes: Sequence[Outcome], records: Sequence[Record]) -> list[Section]:
    """Errors, comparison per repetition, and the posterior of each set."""
    parts: list[Any] = [_DATA, _MEASURE, _PRIOR, _errors(outcomes, records), *_comparison(outcomes)]
    found = [("Ground motion (Sec. 3.6, Table 3)", parts)]
    for name, title in SETS.items():
        found += [(title, _posterior(result)) for result in results(outcomes, name=name) if "rows" in result]
    return found


def _sizes(outcomes: Sequence[Outcome], name: str) -> list[int]:
    return sorted(
        {o.task.arguments["n"] for o in outcomes if o.task.arguments["name"] == name and "n" in o.task.arguments}
    )


def _found(outcomes: Sequence[Outcome], name: str, n: int, method: str) -> list[dict[str, Any]]:
    mode = "paper" if method == "paper" else "default"
    chosen = results(outcomes, name=name, n=n, mode=mode)
    return [{**result[method], "absurd": not result[method]["error"] < result["variance"]} for result in chosen]


def _errors(outcomes: Sequence[Outcome], records: Sequence[Record]) -> Markup:
    cells, rows = by_method(records), []
    for name, n, (method, (mode, label)) in _each(outcomes, METHODS.items()):
        found = _found(outcomes, name, n, method)
        if found:
            cell = cells[dataset_label(name, n), mode, label]
            worst = max(result["error"] for result in found)
            absurd = f"{cell['absurd'].value:.0f} of {len(found)}"
            seconds = float(np.median([result["seconds"] for result in found]))
            error = shown(cell.get("error"))
            rows.append((name, n, label, error, f"{worst:.4g}", absurd, pair(*theirs(method, n)), seconds))
    columns = ["set", "N", "method", "error", "worst", "absurd", "paper (RESORCE)", "seconds, median"]
    return table(columns, rows)


def _each(outcomes: Sequence[Outcome], kinds: Iterable[T]) -> Iterator[tuple[str, int, T]]:
    """Every set and size that was run, with every one of the kinds."""
    for name in SETS:
        for n, kind in itertools.product(_sizes(outcomes, name), kinds):
            yield name, n, kind


def _comparison(outcomes: Sequence[Outcome]) -> list[Any]:
    rows = []
    for name, n, rival in _each(outcomes, _RIVALS):
        ours, others = (_found(outcomes, name, n, method) for method in ("default", rival))
        alive = [(a["fine_error"], b["fine_error"]) for a, b in zip(ours, others, strict=True) if not b["absurd"]]
        better = sum(a <= b for a, b in alive)
        tied = sum(b < a <= (1.0 + _TIE) * b for a, b in alive)
        worst = f"{100.0 * max(a / b - 1.0 for a, b in alive):+.1f} %" if alive else None
        rows.append((name, n, METHODS[rival][1], len(ours), len(alive), better, tied, worst))
    columns = ["set", "N", "against", "repetitions", "it survives", "ours better", "ours worse by < 2 %"]
    return [
        "The same repetition by repetition, with 4096 samples each so that the order is not left to chance: on how many of the "
        "repetitions that a rival survives the frozen draws (matched) have the lower error.",
        table([*columns, "ours at its worst"], rows),
        figure(
            _scatter(outcomes),
            "Error per repetition: Laplace (across) against frozen draws (up). Below the line, ours is "
            "better. Crosses in the grey column are off the scale or absurd.",
        ),
    ]


def _scatter(outcomes: Sequence[Outcome]) -> Any:
    names = [name for name in SETS if _sizes(outcomes, name)]
    drawn = new_figure(3.2 * max(1, len(names)) + 0.4, 3.9)
    grid = drawn.subplots(1, max(1, len(names)), squeeze=False)[0]
    for axes, name in zip(grid, names, strict=False):
        _draw_set(axes, outcomes, name)
    if names:
        handles, labels = grid[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL)
    return drawn


def _draw_set(axes: Any, outcomes: Sequence[Outcome], name: str) -> None:
    """Errors of the small sizes against each rival; what is off the scale stands in a column of its own at the right."""
    from matplotlib.ticker import MaxNLocator

    few = [n for n in _sizes(outcomes, name) if n <= 200]
    ours = np.array([result["fine_error"] for n in few for result in _found(outcomes, name, n, "default")])
    low, high = 0.95 * ours.min(), 1.2 * ours.max()
    step = 0.06 * (high - low)
    axes.plot([low, high], [low, high], color=HAIRLINE, lw=1, zorder=0)
    axes.axvspan(high + 0.3 * step, high + 3.8 * step, color=HAIRLINE, alpha=0.35, lw=0)
    for column, (rival, colour) in enumerate(zip(_RIVALS, (BLUE, ORANGE, GREEN), strict=True)):
        found = [result for n in few for result in _found(outcomes, name, n, rival)]
        theirs = np.array([float("inf") if result["absurd"] else result["fine_error"] for result in found])
        inside = theirs < high
        axes.plot(theirs[inside], ours[inside], "o", color=colour, markersize=3.5, alpha=0.8, label=METHODS[rival][1])
        beyond = np.full(np.sum(~inside), high + (column + 1) * step)
        axes.plot(beyond, ours[~inside], "x", color=colour, markersize=4)
    dress(axes, title=f"{name}, N ≤ 200", xlabel="error of Laplace", ylabel="error of frozen draws")
    axes.set_xlim(low, high + 4.0 * step)
    axes.set_ylim(low, high)
    axes.set_box_aspect(1)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _interval(row: dict[str, Any]) -> str:
    return f"{row['low']:.4g} – {row['high']:.4g}"


def _posterior(result: dict[str, Any]) -> list[Any]:
    rows = [
        (*(row[name] for name in ("name", "event", "unit", "mean", "sd")), _interval(row), row["remark"])
        for row in result["rows"]
    ]
    panels = [Panel(title, *map(np.array, columns)) for title, *columns in result["panels"]]
    corner = {label: np.array(values) for label, values in result["corner"].items()}
    return [
        f"All {result['points']} points. {result['verdict']}",
        table(["parameter", "event", "unit", "mean", "sd", "95 % interval", "remark"], rows),
        figure(
            plot_spectra(panels), "Observed and predicted spectra, with 95 % bands of the model and of observations."
        ),
        figure(plot_corner(corner), "Path, site, noise and the first stress drops, 50 % and 95 % regions."),
    ]
