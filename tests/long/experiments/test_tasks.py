"""Tasks: each result is kept, a failure stops nobody, a second run goes on where the first stopped."""

import json
import os

import pytest

from quenched.paper.experiments.tasks import Task, run_tasks


def tasks(log, values):
    square = "long.experiments.toys:square"
    return [Task("toy", f"task{value}", square, {"value": value, "log": str(log)}) for value in values]


@pytest.fixture
def importable(monkeypatch, request):
    # Workers are fresh interpreters: they find the toys by the environment, not by this process's path.
    found = (str(request.config.rootpath / "tests"), os.environ.get("PYTHONPATH"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, found)))
    monkeypatch.syspath_prepend(request.config.rootpath / "tests")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_is_reported_and_loses_nothing(tmp_path, importable, jobs):
    outcomes = run_tasks(tasks(tmp_path / "log", [2, -1, 3]), tmp_path / "work", jobs)
    assert [outcome.result for outcome in outcomes] == [{"square": 4}, None, {"square": 9}]
    assert "-1 is negative" in outcomes[1].error
    assert "-1 is negative" in (tmp_path / "work/toy/task-1.error.txt").read_text()


def test_a_second_run_computes_only_what_is_missing(tmp_path, importable):
    log = tmp_path / "log"
    run_tasks(tasks(log, [2, -1]), tmp_path / "work", 1)
    outcomes = run_tasks(tasks(log, [2, -1, 5]), tmp_path / "work", 1)
    assert log.read_text().split() == ["2", "-1", "-1", "5"]
    assert outcomes[2].result == {"square": 25}


def test_a_damaged_or_outdated_result_is_computed_again(tmp_path, importable):
    log = tmp_path / "log"
    run_tasks(tasks(log, [2, 3]), tmp_path / "work", 1)
    (tmp_path / "work/toy/task2.json").write_text('{"fingerprint": "')
    saved = json.loads((tmp_path / "work/toy/task3.json").read_text())
    (tmp_path / "work/toy/task3.json").write_text(json.dumps({**saved, "fingerprint": "older"}))
    outcomes = run_tasks(tasks(log, [2, 3]), tmp_path / "work", 1)
    assert [outcome.result["square"] for outcome in outcomes] == [4, 9]
    assert log.read_text().split() == ["2", "3", "2", "3"]


def test_an_interrupt_keeps_what_is_done(tmp_path, importable):
    def stop(outcome):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks(tasks(tmp_path / "log", [2, 3]), tmp_path / "work", 1, stop)
    assert json.loads((tmp_path / "work/toy/task2.json").read_text())["result"] == {"square": 4}


def test_a_worker_that_dies_takes_only_its_own_task_with_it(tmp_path, importable):
    deadly = Task("toy", "deadly", "long.experiments.toys:dies", {"dataset": "c"}, cost=9.0)
    outcomes = run_tasks([deadly, *tasks(tmp_path / "log", [2, 3, 4])], tmp_path / "work", 2)
    assert "the worker died" in outcomes[0].error
    assert [outcome.result["square"] for outcome in outcomes[1:]] == [4, 9, 16]


def test_tasks_that_are_alike_go_to_one_worker(tmp_path, importable):
    def task(dataset, value):
        arguments = {"dataset": dataset, "value": value}
        return Task("toy", f"{dataset}-{value}", "long.experiments.toys:process", arguments)

    outcomes = run_tasks([task(d, v) for v in range(4) for d in "ab"], tmp_path / "work", 2)
    seen = [(outcome.result["dataset"], outcome.result["process"]) for outcome in outcomes]
    assert len(set(seen)) <= 3  # two kinds with a worker each, and the last of one may go to whoever is idle
