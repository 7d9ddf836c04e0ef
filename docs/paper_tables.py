"""The tables of "The paper, reproduced", from what `quenched reproduce` wrote into `docs/paper`: quick.csv, full.csv, improved.csv."""

import csv
import json
from pathlib import Path

HELD = Path(__file__).parent / "paper"
NAMES = {"breast-cancer": "breast cancer", "soybean-small": "soybean (small)", "balance-scale": "balance"}
DIVERGENCES = {  # heading: mode, method, metric
    "iid draws, S = 50": ("paper", "iid draws, S=50, Algorithm 1", "median divergence"),
    "matched draws, S = 50": ("default", "matched draws, S=50", "median divergence"),
    "matched, S grown": ("default", "matched draws, S grown", "divergence"),
    "best Gaussian": ("default", "best Gaussian", "divergence"),
}
METHODS = {  # heading: method
    "Laplace": "Laplace",
    "nested Laplace": "nested Laplace",
    "EP": "expectation propagation",
    "full": "frozen draws, full",
    "warped": "frozen draws, warped",
    "nested": "nested frozen draws",
}


def densities() -> str:
    """KLD(q ‖ p) of the skew densities."""
    rows = []
    for dataset, found in _held("quick", "bivariate").items():
        laplace = found["default", "Laplace", "divergence"]
        own = [_nats(found[key]["value"]) for key in DIVERGENCES.values()]
        theirs = _nats(found["default", "matched draws, S=50", "divergence"]["paper_value"])
        against = f"{_nats(laplace['value'])} ({_nats(laplace['paper_value'])})"
        rows.append((dataset, theirs, *own, against))
    return _table(("KLD(q ‖ p), nats", "paper", *DIVERGENCES, "Laplace (paper)"), rows)


def logistic() -> str:
    """Accuracies of Table 1."""
    return _accuracies("logistic", "frozen draws", "frozen draws", "Jaakkola–Jordan")


def multiclass() -> str:
    """Accuracies of Table 2."""
    return _accuracies("multiclass", "frozen draws, matched", "frozen draws, iid", "mRVM2")


def improved() -> str:
    """Errors of all sds, the worst ratio of an outer one, and the error of the evidence, of what was run in full; and how far to believe the truth."""
    rows = []
    for dataset, found in _held("improved", "improved").items():
        cells = []
        for method in METHODS.values():
            own = [
                found.get(("default", method, metric)) for metric in ("sd error", "outer sd ratio", "evidence error")
            ]
            cells.append(_error_cell(*(None if one is None else float(one["value"]) for one in own)))
        rows.append((dataset, *cells, f"{float(found['default', 'truth', 'rhat']['value']):.3f}"))
    return _table(("", *METHODS, "R-hat of the truth"), rows)


def improved_seconds() -> str:
    """Seconds of the processor, of what was run in full."""
    rows = []
    for dataset, found in _held("improved", "improved").items():
        own = [found.get(("default", method, "seconds")) for method in (*METHODS.values(), "truth")]
        rows.append((dataset, *("–" if one is None else f"{float(one['value']):.1f}" for one in own)))
    return _table(("", *METHODS, "the truth"), rows)


def _error_cell(error: float | None, ratio: float | None, evidence: float | None) -> str:
    if error is None:
        return "–"
    outer = "" if ratio is None else f" ({ratio:.2f})"
    return f"{error:.3f}{outer}" + ("" if evidence is None else f", {evidence:+.2f}".replace("-", "−"))


def quick_run() -> str:
    """What the quick run was made with."""
    made_with = json.loads((HELD / "quick.json").read_text(encoding="utf-8"))
    return f"{made_with['versions']}, {made_with['date']}"


def _accuracies(experiment: str, ours: str, as_printed: str, rival: str) -> str:
    rows = []
    for dataset, found in _held("full", experiment).items():
        own, paper, theirs = (
            found[key]
            for key in (
                ("default", ours, "accuracy"),
                ("paper", as_printed, "accuracy"),
                ("default", rival, "accuracy"),
            )
        )
        printed = _pair(own["paper_value"], own["paper_spread"])
        both = f"{float(theirs['paper_value']):.3f} / {float(theirs['value']):.3f}"
        cells = (printed, _pair(own["value"], own["spread"]), _pair(paper["value"], paper["spread"]), both)
        rows.append((NAMES.get(dataset, dataset), *cells))
    return _table(("accuracy", "paper", "ours", "as in the paper", f"{rival}, paper / ours"), rows)


def _held(name: str, experiment: str) -> dict[str, dict[tuple[str, str, str], dict[str, str]]]:
    """The rows of an experiment, by dataset, and then by mode, method and metric."""
    groups: dict[str, dict[tuple[str, str, str], dict[str, str]]] = {}
    with (HELD / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["experiment"] == experiment:
                groups.setdefault(row["dataset"], {})[row["mode"], row["method"], row["metric"]] = row
    return groups


def _nats(value: str) -> str:
    return f"{float(value):.3f}"


def _pair(value: str, spread: str) -> str:
    return f"{float(value):.3f} ± {float(spread):.3f}"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
