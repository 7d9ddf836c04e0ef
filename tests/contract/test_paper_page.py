"""The tables of the page on the paper are made from what `quenched reproduce` writes."""

import csv
import importlib
import json
import sys
from pathlib import Path

import pytest

from quenched.paper.experiments.printed import LOGISTIC_PROPOSED, MULTICLASS_PROPOSED, SKEW_PROPOSED
from quenched.paper.experiments.records import Record

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    yield importlib.import_module("paper_tables")
    sys.modules.pop("paper_tables", None)


def _rows(table: str) -> list[str]:
    return [line for line in table.splitlines() if line.startswith("|")][2:]


@pytest.mark.parametrize("name", ["quick", "full", "improved"])
def test_what_is_held_is_a_table_of_results(name):
    with (DOCS / "paper" / f"{name}.csv").open(encoding="utf-8") as file:
        assert tuple(next(csv.reader(file))) == Record._fields


@pytest.mark.parametrize(
    ("part", "datasets"),
    [("densities", SKEW_PROPOSED), ("logistic", LOGISTIC_PROPOSED), ("multiclass", MULTICLASS_PROPOSED)],
)
def test_every_dataset_has_its_row(tables, part, datasets):
    rows = _rows(getattr(tables, part)())
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [tables.NAMES.get(d, d) for d in datasets]
    assert f"<!-- {part} -->" in (DOCS / "paper.md").read_text(encoding="utf-8")


def test_the_comparison_has_all_methods_of_what_was_run(tables):
    with (DOCS / "paper" / "improved.csv").open(encoding="utf-8") as file:
        datasets = list(dict.fromkeys(row["dataset"] for row in csv.DictReader(file)))
    page = (DOCS / "which_method.md").read_text(encoding="utf-8")
    for part in ("improved", "improved_seconds"):
        rows = [row.strip("| ").split(" | ") for row in getattr(tables, part)().splitlines()[2:]]
        assert [row[0] for row in rows] == datasets
        assert all(len(row) == 2 + len(tables.METHODS) for row in rows)  # the last is of the truth
        assert f"<!-- {part} -->" in page


def test_the_numbers_are_those_of_the_run(tables, tmp_path, monkeypatch):
    with (DOCS / "paper" / "full.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == "iris"]
    changed = [{**row, "value": "0.125"} if row["method"] == "mRVM2" else row for row in rows]
    _write(tmp_path / "full.csv", changed)
    monkeypatch.setattr(tables, "HELD", tmp_path)
    assert "0.913 / 0.125" in tables.multiclass()


def test_rows_of_a_newer_run_replace_those_of_its_experiments(tables, tmp_path, monkeypatch):
    row = dict.fromkeys(Record._fields, "") | {
        "dataset": "d",
        "metric": "accuracy",
        "paper_value": "1",
        "paper_spread": "0",
        "repetitions": "10",
    }
    made_with = {"selection": "every partition and fold", "versions": "quenched 9", "date": "2030-01-01"}
    held, run = tmp_path / "held", tmp_path / "run"
    for folder in (held, run):
        folder.mkdir()
    kinds = (("default", "frozen draws"), ("paper", "frozen draws"), ("default", "Jaakkola–Jordan"))
    old = [row | {"experiment": "logistic", "mode": a, "method": b, "value": "0.5", "spread": "0.1"} for a, b in kinds]
    kept = row | {"experiment": "multiclass", "mode": "default", "method": "mRVM2", "value": "0.25"}
    _write(held / "full.csv", [*old, kept])
    monkeypatch.setattr(tables, "HELD", held)
    assert "earlier `--full` run" in tables.logistic()
    _write(run / "results.csv", [one | {"value": "0.75"} for one in old] + [old[0] | {"metric": "seconds"}])
    (run / "run.json").write_text(json.dumps(made_with), encoding="utf-8")
    take_run = importlib.import_module("take_run")
    assert take_run.take(run, held) == held / "full.csv"
    assert "From a `--full` run (quenched 9, 2030-01-01)" in tables.logistic()
    assert _rows(tables.logistic()) == [
        "| d | 1.000 ± 0.000 | 0.750 ± 0.100 | 0.750 ± 0.100 | 1.000 / 0.750 |".replace(" ± ", "\u00a0±\u00a0")
    ]
    with (held / "full.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [one["metric"] for one in rows] == ["accuracy"] * 4
    assert rows[-1] == kept


@pytest.mark.parametrize("part", ["densities", "linear", "logistic", "multiclass", "faces", "groundmotion"])
def test_a_quick_run_alone_makes_every_table(tables, part, tmp_path, monkeypatch):
    for name in ("quick.csv", "quick.json"):
        (tmp_path / name).write_bytes((DOCS / "paper" / name).read_bytes())
    monkeypatch.setattr(tables, "HELD", tmp_path)
    made = getattr(tables, part)()
    assert made.startswith("From a `--quick` run (quenched")
    assert _rows(made)
    if part in ("logistic", "multiclass"):
        assert f"over 1 to {2 if part == 'logistic' else 5} partitions or folds" in made


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, Record._fields)
        writer.writeheader()
        writer.writerows(rows)
