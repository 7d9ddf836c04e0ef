"""Are the errors that a diagnosis reports the true ones? Writes docs/calibration.md and its figures.

Sixteen posteriors with known truth: k-hat and the verdict against the true error of means and sds. Three problems over
many seeds: how often the intervals due to the draws cover the answer of very many draws.

Needs QUENCHED_DATA and numpyro. Run from the root of the project: python -m benchmarks.calibration.study [fits]
What has been computed is kept in out/calibration.json, and not computed again.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from coverage import CASES, Coverage, cover

import problems
import quenched as qd
from quenched.diagnostics.verdict import findings
from quenched.plots import BLUE, GREEN, ORANGE

ROOT = Path(__file__).parents[2]
DOCS, KEPT = ROOT / "docs", ROOT / "out" / "calibration.json"
FAMILIES = {"full": (BLUE, "o"), "diagonal": (ORANGE, "x"), "warped": (GREEN, "^")}  # told apart in grey, too
FINE_MEAN, FINE_SD = 0.1, 0.1  # what a user would call right: in sds, and relative
TRUSTS = ("neither", "means", "both")  # by the first sentence of a verdict
WRONG_MEAN, WRONG_SD = 0.25, 0.25  # what nobody would call right


def kept(key: str, compute: Callable[[], Any]) -> Any:
    """The result under this key: from the file, or computed and put there."""
    known = lambda: json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if key not in known():
        value = compute()  # which may keep something itself
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(json.dumps(known() | {key: value}, indent=1))
        print(key, value, flush=True)
    return known()[key]


def judge(problem: problems.Problem, family: str) -> dict:
    """One row of the table."""
    long_run = lambda: [moment.tolist() for moment in problems.by_nuts(problem)]
    mean, sd = problem.truth or map(np.asarray, kept(f"NUTS {problem.name}", long_run))
    fit = problem.fit(family=family)
    diagnosis = fit.diagnose(progress=False)
    ours, spread = problem.moments(fit.sample(20_000, seed=1))
    response = diagnosis.linear_response.of(lambda p: jax.numpy.ravel(jax.numpy.asarray(problem.reported(p))))
    worst = lambda own: float(np.max(np.abs(own / sd - 1.0)))
    row = {
        "problem": problem.name,
        "family": family,
        "draws": fit.n_draws,
        "khat": diagnosis.khat,
        "gap": diagnosis.family_gap,
        "mean": float(np.max(np.abs(ours - mean) / sd)),
        "sd": worst(spread),
        "response": worst(response.sd),
        "findings": [finding.name for finding in findings(diagnosis)],
    }
    row["right"] = row["mean"] <= FINE_MEAN and row["sd"] <= FINE_SD
    row["trust"] = TRUSTS[diagnosis.answer.trust]
    row["trusted_wrongly"] = _wrongly(row)
    return row


def _wrongly(row: dict) -> bool:
    """What the first sentence trusts is far off."""
    means, sds = row["mean"] > WRONG_MEAN, row["sd"] > WRONG_SD
    return {"neither": False, "means": means, "both": means or sds}[row["trust"]]


def table(rows: list[dict]) -> list[str]:
    lines = [
        "| problem | family | draws | k-hat | nats below the evidence | worst mean error, sds | worst sd error | by linear response "
        "| trust | the verdict finds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        numbers = f"{row['khat']:.2f} | {row['gap']:.2f} | {row['mean']:.3f} | {row['sd']:.3f} | {row['response']:.3f}"
        found = ", ".join(row["findings"])
        lines.append(f"| {row['problem']} | {row['family']} | {row['draws']} | {numbers} | {row['trust']} | {found} |")
    return lines


def scatter(rows: list[dict], path: Path) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharex=True)
    for panel, key, label in zip(panels, ("mean", "sd"), ("mean, in sds", "sd, relative"), strict=True):
        for family, (colour, mark) in FAMILIES.items():
            chosen = [row for row in rows if row["family"] == family]
            x = [min(row["khat"], 2.5) for row in chosen]
            panel.scatter(x, [max(row[key], 1e-3) for row in chosen], color=colour, marker=mark, label=family, s=24)
        panel.set(yscale="log", xlabel="k-hat (2.5 and above at the edge)", ylabel=f"worst true error of a {label}")
        panel.axvline(0.7, color="grey", lw=0.8, ls="--")
        panel.axhline(0.1, color="grey", lw=0.8, ls=":")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def intervals(covered: list[Coverage], n_fits: int, path: Path) -> None:
    names = list(dict.fromkeys(case.name for case in covered))
    figure, panels = plt.subplots(1, len(names), figsize=(9, 3.0), layout="constrained", sharey=True)
    for panel, name in zip(panels, names, strict=True):
        chosen = [case for case in covered if case.name == name]
        for key, (colour, mark) in zip(("mean", "sd", "bound"), FAMILIES.values(), strict=True):
            shares = np.array([getattr(case, key) for case in chosen])
            # Of the fits, not of the parameters: those of one fit are not independent.
            error = 2.0 * np.sqrt(shares * (1.0 - shares) / n_fits)
            place = np.arange(len(chosen)) + {"mean": -0.12, "sd": 0.0, "bound": 0.12}[key]
            panel.errorbar(place, shares, error, fmt=mark, ms=5, lw=1.0, color=colour, label=key)
        panel.axhline(0.95, color="grey", lw=0.8, ls="--")
        panel.set(title=name, xlabel="draws", xticks=range(len(chosen)), xticklabels=[case.n_draws for case in chosen])
    panels[0].set_ylabel("share of 95 % intervals that cover")
    panels[0].set_ylim(0.88, 1.01)
    panels[0].legend(frameon=False, ncols=3, loc="lower left", columnspacing=0.8, handletextpad=0.1)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def agreement(rows: list[dict]) -> list[str]:
    """Counts by the first sentence and by the truth."""
    kinds = {
        "means and sds right": lambda r: r["right"],
        "means right alone": lambda r: not r["right"] and r["mean"] <= FINE_MEAN,
        "neither": lambda r: not r["right"] and r["mean"] > FINE_MEAN,
    }
    said = {"both": "Trust means and sds", "means": "Trust the means, not the sds", "neither": "Trust neither"}
    counted = lambda trust: (sum(r["trust"] == trust and holds(r) for r in rows) for holds in kinds.values())
    return [
        f"| the first sentence | {' | '.join(kinds)} |",
        "|---|---|---|---|",
        *(f"| {words} | {' | '.join(map(str, counted(trust)))} |" for trust, words in said.items()),
    ]


def main(n_fits: int) -> None:
    chosen = problems.from_posteriordb() + problems.own()
    rows = [
        kept(f"{problem.name} {family}", lambda: judge(problem, family))  # noqa: B023
        for problem in chosen
        for family in FAMILIES
    ]
    scatter(rows, DOCS / "calibration_khat.png")
    covered = [
        Coverage(*kept(f"{name} {n_draws} {n_fits}", lambda: cover(name, n_draws, n_fits)))  # noqa: B023
        for name, sizes in CASES.items()
        for n_draws in sizes
    ]
    intervals(covered, n_fits, DOCS / "calibration_coverage.png")
    lines = [
        "# Calibration: do the reported errors tell the truth?",
        "",
        "Written by `benchmarks/calibration/study.py`; every number is measured. Means are compared in true posterior sds,",
        "sds relative to the true ones; the worst over all reported quantities counts.",
        "",
        "## Errors due to the draws",
        "",
        f"{n_fits} fits with different draws for each row; intervals of ± t · error, t the 97.5 % quantile of Student's t with",
        "seven degrees of freedom. The share of intervals that cover the answer of very many draws; it should be 0.95.",
        "",
        "![Coverage against the number of draws](calibration_coverage.png)",
        "",
        "| problem | dim | draws | means | sds | bound |",
        "|---|---|---|---|---|---|",
        *(f"| {c.name} | {c.dim} | {c.n_draws} | {c.mean:.3f} | {c.sd:.3f} | {c.bound:.3f} |" for c in covered),
        "",
        "## Errors of the family",
        "",
        "![k-hat against true errors](calibration_khat.png)",
        "",
        *table(rows),
        "",
        "## The verdict against the truth",
        "",
        f"Right: every mean within {FINE_MEAN} sds, every sd within {FINE_SD:.0%}; after a diagnosis.",
        "",
        *agreement(rows),
        "",
        f"Trusted, and yet off by more than {WRONG_MEAN} sds or {WRONG_SD:.0%}: "
        + ("; ".join(f"{r['problem']}, {r['family']}" for r in rows if r["trusted_wrongly"]) or "none")
        + ".",
        "",
        f"quenched {qd.__version__}, jax {jax.__version__}, numpy {np.__version__}; seed 0 for the fits of the table, 0 to "
        f"{n_fits - 1} for the coverage.",
        "",
    ]
    (DOCS / "calibration.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
