"""Run experiments, and write `report.html`, `results.csv`, and `run.json`, which says what they were made with."""

import json
import os
import platform
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from quenched.paper.experiments.bivariate_densities import bivariate
from quenched.paper.experiments.experiment import Experiment
from quenched.paper.experiments.face_denoising import faces
from quenched.paper.experiments.improved import improved
from quenched.paper.experiments.linear_regression import linear
from quenched.paper.experiments.logistic_regression import logistic
from quenched.paper.experiments.multiclass_classification import multiclass
from quenched.paper.experiments.records import Record, write_csv
from quenched.paper.experiments.spectra_inversion import groundmotion
from quenched.paper.experiments.tasks import Outcome, run_tasks
from quenched.report import Document, Markup, table, verdict_box


class Reproduction(NamedTuple):
    """What a run has written."""

    report: Path
    table: Path
    failed: tuple[Outcome, ...]


EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for e in (bivariate, linear, logistic, multiclass, faces, groundmotion, improved)
}


def reproduce(
    names: Sequence[str] = ("all",), *, full: bool = False, out: str | Path = "out/reproduce", jobs: int | None = None
) -> Reproduction:
    """Rerun experiments of the paper and write one report.

    Parameters
    ----------
    names
        Of experiments, or "all".
    full
        Every partition and fold; otherwise a selection that takes a few minutes.
    out
        Folder of the report, the table, and one file per finished task: a run that was interrupted goes on from there.
    jobs
        Processes; one per core by default.

    Returns
    -------
    Reproduction
        Where the report and the table are, and which tasks failed.
    """
    chosen = _choose(names)
    jobs = jobs or os.cpu_count() or 1
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [task for experiment in chosen for task in experiment.tasks(full)]
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bars = {e.name: progress.add_task(e.title, total=sum(t.experiment == e.name for t in tasks)) for e in chosen}
        outcomes = run_tasks(tasks, folder / "tasks", jobs, lambda o: progress.advance(bars[o.task.experiment]))
    of = {e: [outcome for outcome in outcomes if outcome.task.experiment == e.name] for e in chosen}
    records = {e: e.records(of[e]) for e in chosen}
    write_csv(folder / "results.csv", [record for rows in records.values() for record in rows])
    made_with = _made_with(full)
    (folder / "run.json").write_text(json.dumps(made_with, indent=2) + "\n", encoding="utf-8")
    page = _title(made_with).section("", _verdict([record for rows in records.values() for record in rows], outcomes))
    for experiment in chosen:
        for heading, parts in experiment.sections(of[experiment], records[experiment]):
            page = page.section(heading, *parts)
    failed = tuple(outcome for outcome in outcomes if outcome.error is not None)
    page = _with_failures(page, failed) if failed else page
    return Reproduction(page.write(folder / "report.html"), folder / "results.csv", failed)


def _choose(names: Sequence[str]) -> list[Experiment]:
    for name in names:
        if name != "all" and name not in EXPERIMENTS:
            raise ValueError(f"experiment {name!r} is not known; use {', '.join(EXPERIMENTS)} or all.")
    return [e for e in EXPERIMENTS.values() if "all" in names or e.name in names]


def _made_with(full: bool) -> dict[str, str]:
    versions = f"quenched {version('quenched')}, jax {jax.__version__}, numpy {np.__version__}"
    return {
        "selection": "every partition and fold" if full else "a quick selection of partitions and folds",
        "versions": f"{versions}, Python {platform.python_version()}, {os.cpu_count()} cores",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def _title(made_with: dict[str, str]) -> Document:
    return Document(
        "The paper, reproduced",
        subtitle=f"Gianniotis, Schnörr, Molkenthin, Bora (2015): {made_with['selection']}",
        footer=f"{made_with['versions']}, {made_with['date']}. Seeds are fixed; bounds are in nats.",
    )


def _verdict(records: Sequence[Record], outcomes: Sequence[Outcome]) -> Markup:
    """How many of the paper's numbers ours agree with: within two of the larger spread, where both have one."""
    ours = [r for r in records if r.paper_value is not None and (r.spread or 0.0) + (r.paper_spread or 0.0) > 0.0]
    away = [abs(r.value - (r.paper_value or 0.0)) / max(r.spread or 0.0, r.paper_spread or 0.0) for r in ours]
    near, failed = sum(one <= 2.0 for one in away), sum(outcome.error is not None for outcome in outcomes)
    heading = f"{near} of {len(ours)} numbers agree with the paper's" if ours else f"{len(outcomes)} tasks have run"
    text = "Agree: within two of the larger of the two spreads, where there is one. " if ours else ""
    text += f"{failed} of {len(outcomes)} tasks failed." if failed else f"All {len(outcomes)} tasks finished."
    return verdict_box("bad" if failed else "good" if near == len(ours) else "caution", heading, text)


def _with_failures(page: Document, failed: Sequence[Outcome]) -> Document:
    rows = [(f"{o.task.experiment}/{o.task.name}", (o.error or "").strip().splitlines()[-1]) for o in failed]
    return page.section(
        "What failed",
        "The rest of the report does not contain these; run again to try them again.",
        table(["task", "error"], rows),
    )
