"""Run many small tasks, keep every result as soon as it is there, and go on where an earlier run stopped.

A task is a name, the dotted name of a function and arguments that JSON can hold; its result is JSON too, one file
each. A task that fails leaves its message in a file beside the others and stops nobody.
"""

import hashlib
import importlib
import json
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quenched.files import write_whole
from quenched.paper.experiments.workers import in_parallel

FORMAT = 1  # raise it when what tasks compute changes: older results are then computed again


@dataclass(frozen=True)
class Task:
    """One unit of work."""

    experiment: str
    name: str
    function: str  # "package.module:function"
    arguments: dict[str, Any]
    cost: float = 1.0  # roughly, against other tasks: the dearest go first, so that no core idles at the end

    @property
    def kin(self) -> tuple[str, Any]:
        """Tasks that need the same programs."""
        return self.experiment, self.arguments.get("dataset")

    @property
    def fingerprint(self) -> str:
        text = json.dumps([FORMAT, self.function, self.arguments], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """What became of a task: a result, or the message of its failure."""

    task: Task
    result: Any = None
    error: str | None = None


def run_tasks(
    tasks: Sequence[Task], folder: Path, jobs: int, report: Callable[[Outcome], None] = lambda outcome: None
) -> list[Outcome]:
    """Results of all tasks, in their order; those that are in the folder already are not computed again."""
    folder.mkdir(parents=True, exist_ok=True)
    outcomes: dict[int, Outcome] = {}
    waiting = []
    for task in tasks:
        known = _read(task, folder)
        if known is None:
            waiting.append(task)
        else:
            outcomes[id(task)] = known
            report(known)
    for outcome in _compute(sorted(waiting, key=lambda task: -task.cost), folder, jobs):
        outcomes[id(outcome.task)] = outcome
        report(outcome)
    return [outcomes[id(task)] for task in tasks]


def _compute(tasks: list[Task], folder: Path, jobs: int) -> Iterator[Outcome]:
    if not tasks:
        return
    if jobs == 1:
        for task in tasks:
            yield _finish(task, folder, *attempt(task.function, task.arguments))
        return
    submit = lambda process, task: process.submit(attempt, task.function, task.arguments)
    for task, future in in_parallel(tasks, jobs, submit):
        error = future.exception()
        answer = (None, f"the worker died: {error!r}") if error is not None else future.result()
        yield _finish(task, folder, *answer)


def attempt(function: str, arguments: dict[str, Any]) -> tuple[Any, str | None]:
    """Call a function by its dotted name; give its result, or how it failed."""
    module, _, name = function.partition(":")
    try:
        return getattr(importlib.import_module(module), name)(**arguments), None
    except Exception:
        return None, traceback.format_exc(limit=-4)


def _finish(task: Task, folder: Path, result: Any, error: str | None) -> Outcome:
    path = _path(task, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    failed = path.with_suffix(".error.txt")
    if error is not None:
        failed.write_text(error, encoding="utf-8")
        return Outcome(task, error=error)
    failed.unlink(missing_ok=True)
    text = json.dumps({"fingerprint": task.fingerprint, "result": result})
    write_whole(path, lambda file: file.write(text.encode()))
    return Outcome(task, result)


def _read(task: Task, folder: Path) -> Outcome | None:
    """An earlier result of the same task; a damaged file counts as none."""
    try:
        saved = json.loads(_path(task, folder).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    known = isinstance(saved, dict) and "result" in saved and saved.get("fingerprint") == task.fingerprint
    return Outcome(task, saved["result"]) if known else None


def _path(task: Task, folder: Path) -> Path:
    return folder / task.experiment / f"{task.name}.json"
