"""Run experiments, and write `report.html` and `results.csv`."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from quenched.report import Document, table
from quenched.reproduce.bivariate import bivariate
from quenched.reproduce.experiment import Experiment
from quenched.reproduce.faces import faces
from quenched.reproduce.ground_motion import groundmotion
from quenched.reproduce.linear import linear
from quenched.reproduce.logistic import logistic
from quenched.reproduce.multiclass import multiclass
from quenched.reproduce.records import write_csv
from quenched.reproduce.tasks import Outcome, run_tasks


class Reproduction(NamedTuple):
    """What a run has written."""

    report: Path
    table: Path
    failed: tuple[Outcome, ...]


EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in (bivariate, linear, logistic, multiclass, faces, groundmotion)}


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
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    page = _page(chosen, outcomes, failed, folder, full)
    return Reproduction(page.write(folder / "report.html"), folder / "results.csv", tuple(failed))


def _choose(names: Sequence[str]) -> list[Experiment]:
    for name in names:
        if name != "all" and name not in EXPERIMENTS:
            raise ValueError(f"experiment {name!r} is not known; use {', '.join(EXPERIMENTS)} or all.")
    return [e for e in EXPERIMENTS.values() if "all" in names or e.name in names]


def _page(
    chosen: Sequence[Experiment], outcomes: Sequence[Outcome], failed: Sequence[Outcome], folder: Path, full: bool
) -> Document:
    of = {e.name: [outcome for outcome in outcomes if outcome.task.experiment == e.name] for e in chosen}
    write_csv(folder / "results.csv", [record for e in chosen for record in e.records(of[e.name])])
    versions = f"quenched {version('quenched')}, jax {jax.__version__}, numpy {np.__version__}"
    page = Document(
        "The paper, reproduced",
        subtitle="Gianniotis, Schnörr, Molkenthin, Bora (2015): "
        + ("every partition and fold" if full else "a quick selection of partitions and folds"),
        footer=f"{versions}, Python {platform.python_version()}, {os.cpu_count()} cores. Seeds are fixed; bounds are in nats.",
    )
    for experiment in chosen:
        for heading, parts in experiment.sections(of[experiment.name]):
            page = page.section(heading, *parts)
    if failed:
        rows = [(f"{o.task.experiment}/{o.task.name}", (o.error or "").strip().splitlines()[-1]) for o in failed]
        page = page.section(
            "What failed",
            "The rest of the report does not contain these; run again to try them again.",
            table(["task", "error"], rows),
        )
    return page
