"""The comparison of improved approximations, on a toy of its own kind, from the command's function to the report."""

import csv

import numpy as np
import pytest

from quenched.paper.experiments import EXPERIMENTS, improved_truth, reproduce
from quenched.paper.experiments import improved as comparison
from quenched.paper.experiments.improved_methods import METHODS, distance
from quenched.paper.experiments.improved_problems import PROBLEMS, grouped, log_binomial
from quenched.paper.experiments.tasks import Task
from quenched.paper.rivals import Chains


def toy():
    """Six plates of a binomial response."""
    rows = {"y": np.array([3.0, 9.0, 5.0, 2.0, 8.0, 6.0]), "n": np.full(6, 12.0)}
    return grouped(log_binomial, rows, np.ones((6, 1)), {"plate": np.arange(6)}, (1.0, 0.5))


def test_the_distance_of_two_samples():
    random = np.random.default_rng(0)
    from_normal, shifted = random.standard_normal(20_000), 1.0 + random.standard_normal(20_000)
    assert distance(from_normal, random.standard_normal(20_000)) < 0.02
    assert distance(from_normal, shifted) == pytest.approx(0.383, abs=0.02)  # 2 Φ(1/2) − 1


def test_a_toy_from_the_tasks_to_the_report(tmp_path, monkeypatch):
    monkeypatch.setitem(PROBLEMS, "seeds", toy)
    task = Task("improved", "seeds", f"{comparison.__name__}:run", {"dataset": "seeds", "chains": 4, "draws": 400})
    experiment = EXPERIMENTS["improved"]
    monkeypatch.setitem(
        EXPERIMENTS,
        "improved",
        type(experiment)(
            experiment.name, experiment.title, lambda full: [task], experiment.records, experiment.sections
        ),
    )
    written = reproduce(["improved"], out=tmp_path, jobs=1)
    assert not written.failed
    with written.table.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == "seeds"]
    value = {(row["method"], row["metric"]): float(row["value"]) for row in rows}
    labels = [label for label, _ in METHODS.values()]
    assert {row["method"] for row in rows} == {*labels, "truth"}
    assert value["truth", "rhat"] < 1.05
    assert value["nested frozen draws", "sd error"] < 0.06
    assert value["nested frozen draws", "sd error"] < value["Laplace", "sd error"]
    assert abs(value["nested frozen draws", "evidence error"]) < 0.05
    assert value["frozen draws, full", "evidence error"] < 0.0  # a lower bound
    page = written.report.read_text(encoding="utf-8")
    for words in ("Who wins where", "nested frozen draws", "worst R-hat", "log_sd"):
        assert words in page, words


def test_chains_run_on_until_they_settle(monkeypatch):
    """In two parametrisations, then for longer; where none settles, the best of them is the truth."""
    asked = []

    def chains(found):
        def run(*inputs, draws, **options):
            asked.append(draws)
            return Chains(np.zeros(0), 0.0, 0.0, found.pop(0), 1.0, 1.0, 1)

        return run

    units = chains([1.03, 1.005])
    monkeypatch.setattr(improved_truth, "in_units", lambda posed, guide, n, draws: units(draws=draws))
    monkeypatch.setattr(improved_truth, "hamiltonian", chains([1.2, 1.02]))
    assert improved_truth.settled(toy(), None, 4, 100).rhat == 1.005
    assert asked == [100, 100, 400, 400]
    units = chains([1.03, 1.08])
    monkeypatch.setattr(improved_truth, "hamiltonian", chains([1.2, 1.04]))
    assert improved_truth.settled(toy(), None, 4, 100).rhat == 1.03


def test_every_data_set_that_was_asked_for_is_there():
    names = {task.name for task in EXPERIMENTS["improved"].tasks(True)}
    assert {"banana", "breast-cancer", "heart", "flare-solar", "gaussian-process", "seeds", "epil"} < names
    assert {"salamander-1", "salamander-2", "salamander-3", "verbagg", "sleepstudy"} < names
    assert {"skew-top", "skew-middle", "skew-bottom"} < names
    assert set(PROBLEMS) == names
