"""Which fits are run, each in a fresh process, and how they are written down.

Every fit is one row of a CSV file, appended as it comes: a run that is stopped goes on where it was. Fits are run one after the
other, so that none is timed beside another; how many cores other work took is written down, and seconds beside other work do not count.
"""

import csv
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.leaderboard import nifty_peers, ours, peers, pymc_peers
from benchmarks.leaderboard.one_fit import UNFINISHED
from benchmarks.leaderboard.other_work import quiet_now
from benchmarks.leaderboard.summary import free

RESULTS = Path(__file__).parent / "results"
COLUMNS = [
    "part",
    "problem",
    "dim",
    "method",
    "seed",
    "seconds_cold",
    "seconds_warm",
    "seconds_import",
    "seconds_import_jax",
    "gradients",
    "own_gradients",
    "values",
    "true_bound",
    "true_bound_error",
    "mean_error",
    "worst_mean_error",
    "sd_error",
    "worst_sd_error",
    "answer",
    "says",
    "message",
    "others",
    "versions",
    "machine",
]
LEADERBOARD = (*ours.METHODS, *peers.METHODS, *pymc_peers.METHODS, *nifty_peers.METHODS)
# In the short run, those that differ in kind.
FEW_METHODS = (
    "quenched",
    "quenched, warped",
    "NumPyro full rank",
    "BlackJAX full rank",
    "BlackJAX Pathfinder",
    "GSM-VI",
    "pymc-extras DADVI",
    "NIFTy MGVI",
    "NUTS",
)
FEW_PROBLEMS = ("skew top", "eight schools", "garch11", "GP-Poisson", "logistic 101", "Gaussian 100")
ABLATED = ("eight schools", "GP-Poisson", "skew top", "garch11", "logistic 101", "Poisson mixed model")
# Of Gaussians of 1000 dimensions these need hours, or more memory than there is; they are shown with that message.
TOO_LARGE = {("Gaussian 1000", "PyMC full-rank ADVI"): "500,500 parameters by single-draw gradients: not run"}


class Fit(NamedTuple):
    """One row to be."""

    part: str  # "leaderboard", "best" or "ablation"
    problem: str
    method: str
    seed: int


def planned(problems: tuple[str, ...], methods: tuple[str, ...], ablated: tuple[str, ...], seeds: int) -> Iterator[Fit]:
    """By seeds, so that a run that is stopped has seen every problem and method as often as any other."""
    yield from (Fit("best", problem, method, 0) for problem in problems for method in ours.BEST)
    for seed in range(seeds):
        yield from (Fit("leaderboard", problem, method, seed) for problem in problems for method in methods)
        yield from (Fit("ablation", problem, method, seed) for problem in ablated for method in ours.ABLATIONS)


def machine() -> str:
    """Cores and model of the processor."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    return f"{os.cpu_count()} cores, {model}; Python {platform.python_version()}"


def read(path: Path) -> list[dict[str, str]]:
    """All rows of a file of results; of a fit that was run again, the last."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = {(row["part"], row["problem"], row["method"], row["seed"]): row for row in csv.DictReader(file)}
    return list(rows.values())


def append(path: Path, row: dict) -> None:
    """One more row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow({name: _short(value) for name, value in row.items()})


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def run(fits: list[Fit], path: Path, limit: float, budget: float | None = None) -> None:
    """Run those that are not in the file yet; none longer than `limit` seconds, all of them no longer than `budget`.

    On a quiet machine, those too whose seconds were taken beside other work.
    """
    quiet = quiet_now()
    known = {
        (row["part"], row["problem"], row["method"], int(row["seed"]))
        for row in read(path)
        if free(row) or not quiet or row["part"] != "leaderboard"
    }
    left, began, where = [fit for fit in fits if tuple(fit) not in known], time.monotonic(), machine()
    for number, fit in enumerate(left, start=1):
        if budget is not None and time.monotonic() - began > budget:
            print(f"stopped after {budget:.0f} s; {len(left) - number + 1} fits are left for the next run")
            return
        row = {**fit._asdict(), **one(fit, limit), "machine": where}
        append(path, row)
        print(f"{number}/{len(left)}  {fit.problem}, {fit.method}, seed {fit.seed}: {_line(row)}", flush=True)


def _line(row: dict) -> str:
    if row.get("message"):
        return row["message"]
    return f"cold {row['seconds_cold']:.2f} s, warm {row['seconds_warm']:.3f} s, bound {row['true_bound']:.3f}"


def one(fit: Fit, limit: float) -> dict:
    """What a fresh process prints of one fit: the last whole line of it, should it be stopped."""
    if (fit.problem, fit.method) in TOO_LARGE:
        return {"message": TOO_LARGE[fit.problem, fit.method]}
    command = [sys.executable, "-m", "benchmarks.leaderboard.one_fit", fit.problem, fit.method, str(fit.seed)]
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "TQDM_DISABLE": "1"}
    environment.pop("QUENCHED_PROGRAMS", None)  # what was compiled before would be no cold start
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
        printed, why = done.stdout, f"the process ended with code {done.returncode}"
    except subprocess.TimeoutExpired as slow:
        printed, why = (slow.stdout or b"").decode(errors="replace"), f"no answer in {limit:.0f} s"
    row = last_line(printed)
    if "true_bound" not in row and row.get("message", "") in ("", UNFINISHED):
        return {**row, "message": why}
    return row


def last_line(printed: str) -> dict:
    """The last line that is JSON."""
    for line in reversed(printed.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except json.JSONDecodeError:
                continue
    return {}
