"""Rows of results made into what the page shows: medians over seeds, losses against the best Gaussian, winners."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from benchmarks.leaderboard.other_work import quiet

NEAR = 0.1  # nats of the best Gaussian: a method that gets there has solved the problem
Row = dict[str, str]


class Spread(NamedTuple):
    """Median over seeds, lowest and highest."""

    median: float
    lowest: float
    highest: float

    @staticmethod
    def of(values: Iterable[float]) -> "Spread | None":
        known = [value for value in values if np.isfinite(value)]
        return Spread(float(np.median(known)), min(known), max(known)) if known else None


@dataclass(frozen=True)
class Entry:
    """One method on one problem."""

    problem: str
    dim: int
    method: str
    seeds: int
    loss: Spread | None  # nats of true bound below the best Gaussian; negative for what is better than any
    gradients: Spread | None
    values: Spread | None
    cold: Spread | None
    warm: Spread | None
    mean_error: Spread | None
    sd_error: Spread | None
    answer: str
    message: str

    @property
    def near(self) -> bool:
        """Whether it gets to the best Gaussian, with at least half of the seeds."""
        return self.loss is not None and self.loss.median <= NEAR


def number(row: Row, name: str) -> float:
    return float(row[name]) if row.get(name) else np.nan


def free(row: Row) -> bool:
    """Whether the machine had nothing else to do, so that the seconds of a fit are its own."""
    return not row.get("others") or quiet(float(row["others"]))


def best_bounds(rows: list[Row]) -> dict[str, float]:
    """The best true bound that any Gaussian was seen to have, by problem; all were judged by the same draws."""
    found: dict[str, float] = defaultdict(lambda: -np.inf)
    for row in rows:
        bound = number(row, "true_bound")
        if row["answer"] == "Gaussian" and np.isfinite(bound):
            found[row["problem"]] = max(found[row["problem"]], bound)
    return dict(found)


def entries(rows: list[Row], part: str) -> list[Entry]:
    """All of one part, in the order in which they were first run."""
    best, groups = best_bounds(rows), defaultdict(list)
    for row in rows:
        if row["part"] == part:
            groups[row["problem"], row["method"]].append(row)
    return [_entry(problem, method, group, best.get(problem, np.nan)) for (problem, method), group in groups.items()]


def _entry(problem: str, method: str, group: list[Row], best: float) -> Entry:
    over: Callable[[str], Spread | None] = lambda name: Spread.of(number(row, name) for row in group)
    clocked: Callable[[str], Spread | None] = lambda name: Spread.of(number(row, name) for row in group if free(row))
    return Entry(
        problem=problem,
        dim=int(next((row["dim"] for row in group if row["dim"]), 0)),
        method=method,
        seeds=len(group),
        loss=Spread.of(best - number(row, "true_bound") for row in group),
        gradients=over("gradients"),
        values=over("values"),
        cold=clocked("seconds_cold"),
        warm=clocked("seconds_warm"),
        mean_error=over("worst_mean_error"),
        sd_error=over("worst_sd_error"),
        answer=next((row["answer"] for row in group if row["answer"]), ""),
        message=next((row["message"] for row in group if row["message"]), ""),
    )


def exponent(x: np.ndarray, y: np.ndarray) -> float:
    """Slope of a straight line through the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def winners(of_problem: list[Entry]) -> dict[str, Entry]:
    """Who is first among those that get near the best Gaussian, where that is known of all of them; whose sds are best among all."""
    near = [entry for entry in of_problem if entry.near and entry.method != "NUTS"]
    first = lambda among, key: min(among, key=lambda entry: key(entry).median)
    found = {}
    for name, key in {
        "fewest gradients": lambda entry: entry.gradients,
        "fastest cold": lambda entry: entry.cold,
        "fastest warm": lambda entry: entry.warm,
    }.items():
        if near and all(key(entry) is not None for entry in near):
            found[name] = first(near, key)
    known = [entry for entry in of_problem if entry.sd_error is not None and entry.method != "NUTS"]
    if known:
        found["best sds"] = first(known, lambda entry: entry.sd_error)
    return found
