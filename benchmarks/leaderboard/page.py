"""docs/benchmarks.md and its figures, from the CSV files alone."""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from benchmarks.leaderboard import one_fit, plots
from benchmarks.leaderboard.protocol import FEW_METHODS
from benchmarks.leaderboard.summary import NEAR, Entry, Row, Spread, entries, exponent, free, winners

DOCS = Path(__file__).parents[2] / "docs"


def write(rows: list[Row], limits: list[Row]) -> None:
    """The page and its figures."""
    known = list(one_fit.methods())
    board = sorted(entries(rows, "leaderboard"), key=lambda entry: known.index(entry.method))
    parts = [
        _heading(rows),
        _overall(board),
        _figures(board),
        _winners(board),
        _by_problem(board),
        _ablations(board, entries(rows, "ablation")),
        _limits(limits),
        _settings(board),
    ]
    (DOCS / "benchmarks.md").write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def table(head: list[str], lines: list[list[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *lines])


def figure_of(value: float | None, digits: int = 3) -> str:
    if value is None or not np.isfinite(value):
        return ""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}" if abs(value) >= 1e-3 else f"{value:.1g}"


def cell(spread: Spread | None, digits: int = 3) -> str:
    """Median, and the range where seeds differ."""
    if spread is None:
        return ""
    text = figure_of(spread.median, digits)
    if spread.highest - spread.lowest > 0.05 * abs(spread.median) and spread.highest > spread.lowest:
        text += f" ({figure_of(spread.lowest, 2)} to {figure_of(spread.highest, 2)})"
    return text


def nats(spread: Spread | None) -> str:
    """A loss, to a thousandth."""
    if spread is None:
        return ""
    text = f"{spread.median:.3f}" if abs(spread.median) < 100 else figure_of(spread.median)
    if spread.highest - spread.lowest > 2e-3:
        text += f" ({spread.lowest:.2g} to {spread.highest:.2g})"
    return text


def _heading(rows: list[Row]) -> str:
    machines = sorted({row["machine"] for row in rows})
    seeds = Counter(row["seed"] for row in rows if row["part"] == "leaderboard")
    return f"""# Benchmarks

Frozen draws beside what else can be had from the package index, on the same log densities, by one protocol. This page is made by
`make bench` from `benchmarks/leaderboard/results/`; `make bench-full` runs all problems, all methods and ten seeds.

**Protocol.** Every fit runs in a fresh process, one after the other. All methods are given the same log density on the real
line, in double precision, and the same start. *Gradients* are counted inside the log density, in a fit that is not timed (a
column of a Hessian counts as two). *Cold* is the first fit with compilation, imports apart; *warm* the median of the next ones in the
same process, with other seeds. *Nats lost* is the true bound, E log p − log q over the same {one_fit.FRESH:,} fresh draws for
everybody, below the best that any Gaussian was seen to reach there; a posterior that is no Gaussian may gain instead.
Methods that answer with samples are judged by the Gaussian with the moments of these. Errors of means (in reference sds) and of
sds (relative) are the worst over all reported quantities, in natural units, against posteriordb's reference draws, an
exact value, or a long run of NUTS. A method that fails is shown with its message. Ranges are over seeds.

**This run.** {"; ".join(machines)}. {len(rows)} fits, seeds {", ".join(f"{seed} ({n} fits)" for seed, n in sorted(seeds.items()))}.
{_remark_on_load([row for row in rows if row["part"] == "leaderboard"])}"""


def _remark_on_load(board: list[Row]) -> str:
    shared = sum(not free(row) for row in board)
    if not shared:
        return "The machine was otherwise quiet."
    return (
        f"During {shared} of the {len(board)} fits of the leaderboard the machine was shared with other work: **their seconds are left out**, and "
        "they are run again by the next `make bench` on a quiet machine. Gradients, losses and errors do not depend on it."
    )


def _overall(board: list[Entry]) -> str:
    missing = _missing(board)
    problems = [problem for problem in dict.fromkeys(entry.problem for entry in board) if problem not in missing]
    firsts: dict[str, Counter] = defaultdict(Counter)
    for problem in problems:
        for what, entry in winners([entry for entry in board if entry.problem == problem]).items():
            firsts[what][entry.method] += 1
    lines = []
    for method in dict.fromkeys(entry.method for entry in board):
        own = [entry for entry in board if entry.method == method and not entry.message.startswith("not applicable")]
        near = [entry for entry in own if entry.near]
        of = lambda name, among: Spread.of(
            getattr(entry, name).median for entry in among if getattr(entry, name) is not None
        )
        middle = lambda spread: "" if spread is None else figure_of(spread.median)
        lines.append(
            [
                method,
                f"{len(near)} of {len(own)}",
                middle(of("gradients", near)),
                middle(of("cold", near)),
                middle(of("warm", near)),
                middle(of("sd_error", own)),
                *[
                    str(firsts[what][method] or "")
                    for what in ("fewest gradients", "fastest cold", "fastest warm", "best sds")
                ],
            ]
        )
    head = ["method", f"within {NEAR} nats", "gradients", "cold s", "warm s", "worst sd error"]
    head += ["fewest gradients", "fastest cold", "fastest warm", "best sds"]
    return f"""## Overall

Medians over the problems on which a method comes within {NEAR} nats of the best Gaussian (of the sd errors: over all problems).
The last four columns count the problems on which it is first, among those that get there; sds among all; only problems on
which every method of the short run has been run count there ({", ".join(problems) or "none yet"}). NUTS is the slow reference and
does not compete.{_named(missing)}

{table(head, lines)}"""


def _missing(board: list[Entry]) -> dict[str, list[str]]:
    """Which methods of the short run a problem still lacks."""
    there = {(entry.problem, entry.method) for entry in board}
    wanted = [method for method in FEW_METHODS if method != "NUTS"]
    lacking = {
        problem: [method for method in wanted if (problem, method) not in there]
        for problem in dict.fromkeys(entry.problem for entry in board)
    }
    return {problem: methods for problem, methods in lacking.items() if methods}


def _named(missing: dict[str, list[str]]) -> str:
    if not missing:
        return ""
    together = {
        tuple(methods): [problem for problem in missing if missing[problem] == methods] for methods in missing.values()
    }
    listed = "; ".join(f"{', '.join(methods)} on {', '.join(problems)}" for methods, problems in together.items())
    return f"\n\n**Not run to the end yet**, so that nothing is said of who is first there: {listed}."


def _figures(board: list[Entry]) -> str:
    plots.to_accuracy(board, "gradients", "gradients", DOCS / "benchmarks_gradients.png")
    plots.to_accuracy(board, "cold", "seconds, cold", DOCS / "benchmarks_cold.png")
    plots.to_accuracy(board, "warm", "seconds, warm", DOCS / "benchmarks_warm.png")
    plots.against_dimension(board, DOCS / "benchmarks_dimension.png")
    return f"""## Work and accuracy

Ours in orange; the dotted line is {NEAR} nats. Losses below a thousandth are shown there.

![Nats lost against gradients](benchmarks_gradients.png)

![Nats lost against seconds of a first fit](benchmarks_cold.png)

![Nats lost against seconds of a further fit](benchmarks_warm.png)

![Nats lost, and errors of sds, against dimension](benchmarks_dimension.png)"""


def _winners(board: list[Entry]) -> str:
    lines, missing = [], _missing(board)
    for problem in dict.fromkeys(entry.problem for entry in board):
        if problem in missing:
            continue
        found = winners([entry for entry in board if entry.problem == problem])
        named = []
        for what in ("fewest gradients", "fastest cold", "fastest warm", "best sds"):
            entry = found.get(what)
            named.append(
                ""
                if entry is None
                else f"**{entry.method}**"
                if not entry.method.startswith("quenched")
                else entry.method
            )
        lines.append([problem, *named])
    return f"""## Who is first

Among those within {NEAR} nats of the best Gaussian; sds among all. Others than us in bold.

{table(["problem", "fewest gradients", "fastest cold", "fastest warm", "best sds"], lines)}"""


def _by_problem(board: list[Entry]) -> str:
    parts = ["## Problem by problem"]
    head = ["method", "nats lost", "gradients", "values", "cold s", "warm s", "mean error", "sd error", ""]
    for problem in dict.fromkeys(entry.problem for entry in board):
        own = [entry for entry in board if entry.problem == problem]
        own.sort(key=lambda entry: (entry.loss is None, entry.loss.median if entry.loss else 0.0))
        lines = [
            [
                entry.method,
                nats(entry.loss),
                cell(entry.gradients),
                cell(entry.values),
                cell(entry.cold),
                cell(entry.warm),
                cell(entry.mean_error),
                cell(entry.sd_error),
                _remark(entry),
            ]
            for entry in own
        ]
        parts.append(f"### {problem} (dim {max(entry.dim for entry in own)})\n\n{table(head, lines)}")
    return "\n\n".join(parts)


def _remark(entry: Entry) -> str:
    if entry.message:
        return entry.message.replace("|", "\\|").replace("<", "&lt;")
    return {"samples": "judged by its samples", "warped": "no Gaussian"}.get(entry.answer, "")


def _ablations(board: list[Entry], ablated: list[Entry]) -> str:
    if not ablated:
        return ""
    problems = list(dict.fromkeys(entry.problem for entry in ablated))
    ours = {entry.problem: entry for entry in board if entry.method == "quenched"}
    methods = list(dict.fromkeys(entry.method for entry in ablated))
    by = {(entry.method, entry.problem): entry for entry in ablated}
    shown = lambda entry: "" if entry is None else entry.message or f"{nats(entry.loss)}; {cell(entry.gradients)}"
    lines = [["as it comes", *[shown(ours.get(problem)) for problem in problems]]]
    lines += [[method, *[shown(by.get((method, problem))) for problem in problems]] for method in methods]
    return f"""## Ablations

The parts of our default, each switched off in turn: nats lost; gradients.

{table(["", *problems], lines)}"""


def _limits(limits: list[Row]) -> str:
    if not limits:
        return ""
    of = lambda kind, case=None: [row for row in limits if row["kind"] == kind and case in (None, row["case"])]
    value = lambda rows, quantity: next((float(row["value"]) for row in rows if row["quantity"] == quantity), np.nan)
    cases = list(dict.fromkeys(row["case"] for row in of("cold")))
    quantities = list(dict.fromkeys(row["quantity"] for row in of("cold")))
    cold = [[case, *[figure_of(value(of("cold", case), quantity)) for quantity in quantities]] for case in cases]
    sizes = list(dict.fromkeys(row["x"] for row in of("warm")))
    asked = list(dict.fromkeys(row["quantity"] for row in of("warm")))
    at = lambda rows, x: [row for row in rows if row["x"] == x]
    warm = [[size, *[figure_of(value(at(of("warm"), size), quantity)) for quantity in asked]] for size in sizes]
    curves = {}
    for case in dict.fromkeys(row["case"] for row in of("scaling")):
        own = of("scaling", case)
        xs = list(dict.fromkeys(row["x"] for row in own))
        curves[case] = [(float(x), value(at(own, x), "warm s"), value(at(own, x), "gradients")) for x in xs]
    plots.scaling(curves, DOCS / "benchmarks_scaling.png")
    exponents = []
    for case, points in curves.items():
        x, seconds, gradients = np.array(points).T
        ends = f"{figure_of(x[0])} to {figure_of(x[-1])}"
        exponents.append([case, ends, f"{exponent(x, seconds):.2f}", f"{exponent(x, gradients):.2f}"])
    others = np.median([float(row["others"]) for row in limits])
    return f"""## Distance to the limit

Measured on {limits[0]["machine"].split(";")[0]}, of which other work took {others:.2f}.

**Warm**: logistic regression, 100 weights, 1,000 data. A batch is as many gradients as there are draws; the gradient is one bare
batched call; the matrix products are its two, alone.

{table(["draws", *asked], warm)}

**Cold**: where the seconds of a first fit in a new process go. Programs are compiled while a start is searched for, so that the parts may
add up to more than the whole.

{table(["problem", *quantities], cold)}

**Scaling** of warm fits of logistic regressions; exponents of straight lines through the logarithms.

{table(["in", "from", "exponent of seconds", "exponent of gradients"], exponents)}

![Scaling in dimension, draws and data](benchmarks_scaling.png)"""


def _settings(board: list[Entry]) -> str:
    known = one_fit.methods()
    lines = [[name, known[name].settings] for name in dict.fromkeys(entry.method for entry in board) if name in known]
    return f"## Settings\n\n{table(['method', 'settings'], lines)}"
