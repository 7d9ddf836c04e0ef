"""The tables of "The paper, reproduced", from what `docs/take_run.py` took of runs of `quenched reproduce` into `docs/paper`.

Every table is of the full run where one is held, and else of the quick one, and says so.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    for dataset, found in _held("bivariate").items():
        laplace = found["default", "Laplace", "divergence"]
        own = [_nats(found[key]["value"]) for key in DIVERGENCES.values()]
        theirs = _nats(found["default", "matched draws, S=50", "divergence"]["paper_value"])
        against = f"{_nats(laplace['value'])} ({_nats(laplace['paper_value'])})"
        rows.append((dataset, theirs, *own, against))
    heads = ("KLD(q ‖ p), nats", "paper", *DIVERGENCES, "Laplace (paper)")
    return f"{_run('bivariate')}; medians over 20 seeds where S = 50:\n\n{_table(heads, rows)}"


def linear() -> str:
    """What is found of the regression whose posterior is known exactly."""
    rows = []
    for (_, method, _), found in _by_metric("linear"):
        nats = [_nats(found[metric]) for metric in ("bound", "check_bound", "evidence")]
        errors = [f"{float(found[metric]):.1e}" for metric in ("mean_error", "covariance_error")]
        rows.append((method, *nats, *errors, f"{float(found['n_evaluations']):,.0f}"))
    heads = (
        "draws and method",
        "bound",
        "check bound",
        "exact evidence",
        "mean error, sds",
        "covariance error",
        "gradients",
    )
    return f"{_run('linear')}:\n\n{_table(heads, rows)}"


def faces() -> str:
    """On how many people and images Cauchy PPCA is nearer to the clean image than others."""
    rows = []
    for (mode, method, _), found in _by_metric("faces", "repetitions"):
        people, images = found["people_won"], found["images_won"]
        won = (f"{float(people[0]):.0f} of {people[1]}", f"{100.0 * float(images[0]):.2f} % of {int(images[1]):,}")
        rows.append(("ours" if mode == "default" else "as in the paper", method, *won))
    heads = ("", "nearer to the clean image", "people", "test images")
    return f"{_run('faces')}:\n\n{_table(heads, rows)}" if rows else "No newer run than that below is held."


def groundmotion() -> str:
    """Errors of predictions, and how many were worse than a constant."""
    rows = []
    for (_, method, dataset), found in _by_metric("groundmotion", "repetitions", "spread"):
        absurd, error = found["absurd"], found.get("error")
        shown = "–" if error is None else _pair(error[0], error[2])
        rows.append((dataset, method, shown, f"{float(absurd[0]):.0f} of {absurd[1]}"))
    heads = ("set", "method", "squared error of ln amplitude", "predict worse than a constant")
    return f"{_run('groundmotion')}:\n\n{_table(heads, rows)}"


def logistic() -> str:
    """Accuracies of Table 1."""
    return _accuracies("logistic", "frozen draws", "frozen draws", "Jaakkola–Jordan")


def multiclass() -> str:
    """Accuracies of Table 2."""
    return _accuracies("multiclass", "frozen draws, matched", "frozen draws, iid", "mRVM2")


_FAR_OFF = 5.0  # of the logarithm of sds: no figure says more


def improved() -> str:
    """Errors of all sds, the worst ratio of an outer one, and the error of the evidence, of what was run in full; and how far to believe the truth."""
    rows = []
    for dataset, found in _read(HELD / "improved.csv", "improved").items():
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
    for dataset, found in _read(HELD / "improved.csv", "improved").items():
        own = [found.get(("default", method, "seconds")) for method in (*METHODS.values(), "truth")]
        rows.append((dataset, *("–" if one is None else f"{float(one['value']):.1f}" for one in own)))
    return _table(("", *METHODS, "the truth"), rows)


def _error_cell(error: float | None, ratio: float | None, evidence: float | None) -> str:
    if error is None:
        return "–"
    if error > _FAR_OFF:
        return "far off"
    outer = "" if ratio is None else f" ({ratio:.2f})"
    return f"{error:.3f}{outer}" + ("" if evidence is None else f", {evidence:+.2f}".replace("-", "−"))


def _run(experiment: str) -> str:
    """Which run the rows of an experiment are of, as the beginning of a sentence."""
    size = _size(experiment)
    runs = HELD / f"{size}.json"
    known = json.loads(runs.read_text(encoding="utf-8")) if runs.exists() else {}
    if experiment not in known:
        return f"From an earlier `--{size}` run, of which accuracies were kept with three digits and versions were not"
    return f"From a `--{size}` run ({known[experiment]['versions']}, {known[experiment]['date']})"


def _size(experiment: str) -> str:
    return "full" if _read(HELD / "full.csv", experiment) else "quick"


def _accuracies(experiment: str, ours: str, as_printed: str, rival: str) -> str:
    rows = []
    for dataset, found in _held(experiment).items():
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
    heads = ("accuracy", "paper", "ours", "as in the paper", f"{rival}, paper / ours")
    return (
        f"{_run(experiment)}; mean ± sd over {_repetitions(experiment)} partitions or folds:\n\n{_table(heads, rows)}"
    )


def _repetitions(experiment: str) -> str:
    """Of how many runs the values are means: 10, or "1 to 5" where some took longer than others."""
    found = [int(row["repetitions"]) for rows in _held(experiment).values() for row in rows.values()]
    return " to ".join(str(count) for count in sorted({min(found), max(found)}))


Held = dict[str, dict[tuple[str, str, str], dict[str, str]]]  # by dataset, and then by mode, method and metric


def _held(experiment: str) -> Held:
    return _read(HELD / f"{_size(experiment)}.csv", experiment)


def _by_metric(experiment: str, *also: str) -> Iterator[tuple[tuple[str, str, str], dict[str, Any]]]:
    """Each mode, method and dataset with its values, by metric; each value with other columns of its row, if asked for."""
    for dataset, rows in _held(experiment).items():
        groups: dict[tuple[str, str, str], dict[str, Any]] = {}
        for (mode, method, metric), row in rows.items():
            value = (row["value"], *(row[column] for column in also)) if also else row["value"]
            groups.setdefault((mode, method, dataset), {})[metric] = value
        yield from groups.items()


def _read(path: Path, experiment: str) -> Held:
    groups: Held = {}
    if not path.exists():
        return groups
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["experiment"] == experiment:
                groups.setdefault(row["dataset"], {})[row["mode"], row["method"], row["metric"]] = row
    return groups


def _nats(value: str) -> str:
    return f"{float(value):.3f}"


def _pair(value: str, spread: str) -> str:
    """On one line; a single run has no spread."""
    return f"{float(value):.3f}\u00a0±\u00a0{float(spread):.3f}" if spread else _nats(value)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
