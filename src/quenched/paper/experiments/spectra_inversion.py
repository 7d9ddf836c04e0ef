"""Sec. 3.6: Boore's stochastic model of ground motion, frozen draws beside Laplace, with few data and many."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from quenched.paper.datasets import ground_motion
from quenched.paper.experiments.experiment import Experiment, results
from quenched.paper.experiments.inversions import OTHERS, frozen, measure
from quenched.paper.experiments.records import Record, summarise
from quenched.paper.experiments.spectra_inversion_report import METHODS, SETS, dataset_label, sections, theirs
from quenched.paper.experiments.tasks import Outcome, Task
from quenched.science import GroundMotion, Spectra, corner_columns, read_spectra, spectrum_panels

_REPETITIONS = 10
_QUICK_ROUNDS = 5
_SIZES = {"fksh11": (100, 200, 500, 1000), "kmmh14": (100, 200, 500, 1000), "laquila": (100, 200)}
_FUNCTION = f"{__name__}:"
_METRICS = ("error", "fine_error", "log_density", "seconds", "evaluations", "gap")


def split(name: str, n: int, repetition: int) -> tuple[Spectra, Spectra]:
    """A new random realisation of training and test points. The test points are the same for every size."""
    everything = read_spectra(ground_motion(name))
    order = np.random.default_rng(repetition).permutation(len(everything))
    return _rows(everything, order[:n]), _rows(everything, order[max(_SIZES[name]) :])


def _rows(spectra: Spectra, rows: np.ndarray) -> Spectra:
    return Spectra(*(getattr(spectra, field.name)[rows] for field in dataclasses.fields(Spectra)))


def run(name: str, n: int, repetition: int, mode: str, max_rounds: int = 0) -> dict[str, Any]:
    """One realisation: frozen draws in one of the two modes; in default mode the other methods as well."""
    train, test = split(name, n, repetition)
    model = frozen(train, mode, repetition, max_rounds)
    assert test.amplitude is not None
    found: dict[str, Any] = {"variance": float(np.var(np.log(test.amplitude))), mode: measure(model, test)}
    found["remarks"] = {row["event"] or row["name"]: row["remark"] for row in model.summary() if row["remark"]}
    if mode == "default":
        found |= {method: measure(other(train, near=model), test) for method, other in OTHERS.items()}
    return found


def whole(name: str) -> dict[str, Any]:
    """All points of a set: the posterior, and what the figures show."""
    model = GroundMotion().fit(ground_motion(name), progress=False)
    names = ["spreading", "quality", "kappa0", "noise", *model.events_[:2]]
    columns = corner_columns(model, names, 4096)
    panels = spectrum_panels(model, model.spectra_, 0.95)
    return {
        "points": len(model.spectra_),
        "verdict": model.fit_.verdict,
        "rows": model.summary(),
        "corner": {label: np.round(values, 5).tolist() for label, values in columns.items()},
        "panels": [[panel.title, *(np.round(column, 6).tolist() for column in panel[1:])] for panel in panels],
    }


def _tasks(full: bool) -> list[Task]:
    chosen = []
    for name in SETS if full else ("fksh11",):
        chosen.append(Task("groundmotion", f"{name}-whole", _FUNCTION + "whole", {"name": name}, 2.0))
        for n in _SIZES[name] if full else (100,):
            for repetition in range(_REPETITIONS if full else 3):
                arguments = {"name": name, "n": n, "repetition": repetition}
                chosen.append(_task(f"{name}-{n}-{repetition}-default", {**arguments, "mode": "default"}, 1.0))
                if full or repetition == 0:
                    rounds = 1000 if full else _QUICK_ROUNDS
                    arguments |= {"mode": "paper", "max_rounds": rounds}
                    chosen.append(_task(f"{name}-{n}-{repetition}-paper-{rounds}", arguments, 1.0 + n / 50.0))
    return chosen


def _task(name: str, arguments: dict[str, Any], cost: float) -> Task:
    return Task("groundmotion", name, _FUNCTION + "run", arguments, cost)


def _records(outcomes: Sequence[Outcome]) -> list[Record]:
    rows = []
    for name, sizes in _SIZES.items():
        for n in sizes:
            for method, (mode, label) in METHODS.items():
                found = results(outcomes, name=name, n=n, mode="paper" if method == "paper" else "default")
                if found:
                    rows += _summaries(dataset_label(name, n), n, method, mode, label, found)
    return rows


def _summaries(dataset: str, n: int, method: str, mode: str, label: str, found: list[Any]) -> list[Record]:
    """Means over the repetitions that survived, and how many did."""
    alive = [result[method] for result in found if result[method]["error"] < result["variance"]]
    rows = []
    for metric in _METRICS:
        values = [result[metric] for result in alive if np.isfinite(result[metric])]
        if values:
            beside = theirs(method, n) if metric == "error" else None
            rows.append(summarise("groundmotion", dataset, mode, label, metric, values, beside))
    dead = float(len(found) - len(alive))
    return [*rows, Record("groundmotion", dataset, mode, label, "absurd", dead, repetitions=len(found))]


groundmotion = Experiment("groundmotion", "Ground motion", _tasks, _records, sections)
