"""Takes what the page on the paper shows from what `quenched reproduce` wrote: `python docs/take_run.py out/reproduce`.

The rows of every experiment that was run replace those held in `docs/paper/quick.csv` or `full.csv`, whichever the run was; the
JSON file beside it says of each experiment what its rows were made with.
"""

import csv
import json
import sys
from pathlib import Path

HELD = Path(__file__).parent / "paper"
SHOWN = {  # the rows of an experiment that its table is made from
    "bivariate": lambda row: row["metric"] in ("divergence", "median divergence"),
    "linear": lambda row: row["metric"] != "seconds",
    "logistic": lambda row: row["metric"] == "accuracy",
    "multiclass": lambda row: row["metric"] == "accuracy",
    "faces": lambda row: row["dataset"] == "all",
    "groundmotion": lambda row: row["metric"] in ("error", "absurd"),
}


def take(folder: Path, held: Path = HELD) -> Path:
    """Write both files, and give the first."""
    made_with = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    table = held / ("full.csv" if made_with["selection"].startswith("every") else "quick.csv")
    runs = table.with_suffix(".json")
    taken = [row for row in _rows(folder / "results.csv") if SHOWN.get(row["experiment"], lambda row: False)(row)]
    fresh = {row["experiment"] for row in taken}
    kept = [row for row in _rows(table) if row["experiment"] not in fresh]
    order = list(SHOWN)
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(taken[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(taken + kept, key=lambda row: order.index(row["experiment"])))
    known = json.loads(runs.read_text(encoding="utf-8")) if runs.exists() else {}
    known |= {experiment: made_with for experiment in fresh}
    runs.write_text(json.dumps({name: known[name] for name in order if name in known}, indent=2) + "\n")
    return table


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    print(take(Path(sys.argv[1])))
