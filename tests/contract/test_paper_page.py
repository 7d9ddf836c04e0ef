"""The tables of the page on the paper are made from what `quenched reproduce` writes."""

import csv
import importlib
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


@pytest.mark.parametrize("name", ["quick", "full", "improved"])
def test_what_is_held_is_a_table_of_results(name):
    with (DOCS / "paper" / f"{name}.csv").open(encoding="utf-8") as file:
        assert tuple(next(csv.reader(file))) == Record._fields


@pytest.mark.parametrize(
    ("part", "datasets"),
    [("densities", SKEW_PROPOSED), ("logistic", LOGISTIC_PROPOSED), ("multiclass", MULTICLASS_PROPOSED)],
)
def test_every_dataset_has_its_row(tables, part, datasets):
    rows = getattr(tables, part)().splitlines()[2:]
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
    with (tmp_path / "full.csv").open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, Record._fields)
        writer.writeheader()
        writer.writerows(changed)
    monkeypatch.setattr(tables, "HELD", tmp_path)
    assert "0.913 / 0.125" in tables.multiclass()
