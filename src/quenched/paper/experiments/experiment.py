"""What an experiment is: tasks to run, rows for the table, and sections for the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quenched.paper.experiments.records import Record
from quenched.paper.experiments.tasks import Outcome, Task

Section = tuple[str, list[Any]]  # heading and parts


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes
    ----------
    name, title
        As on the command line, and as in the report.
    tasks
        From `full` (True) or quick (False) to what must be run.
    records
        From finished outcomes to rows of the table.
    sections
        From finished outcomes and their records to sections of the report.
    """

    name: str
    title: str
    tasks: Callable[[bool], list[Task]]
    records: Callable[[Sequence[Outcome]], list[Record]]
    sections: Callable[[Sequence[Outcome], Sequence[Record]], list[Section]]


def results(outcomes: Sequence[Outcome], **wanted: Any) -> list[Any]:
    """Results of the tasks whose arguments have these values."""
    return [
        outcome.result
        for outcome in outcomes
        if outcome.error is None and all(outcome.task.arguments.get(k) == v for k, v in wanted.items())
    ]
