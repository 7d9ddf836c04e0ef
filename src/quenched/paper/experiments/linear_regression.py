"""Sec. 3.2: Bayesian linear regression, where the exact posterior is known, and the monitor of overfitting."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quenched.draws import iid, matched
from quenched.fitting import Alternating, Joint, fit
from quenched.paper.experiments.experiment import Experiment, Section, results
from quenched.paper.experiments.features import radial_basis
from quenched.paper.experiments.records import Record, summarise
from quenched.paper.experiments.tasks import Outcome, Task
from quenched.paper.rivals import exact_linear_regression
from quenched.plots import BLUE, GREEN, GREY, ORANGE, SMALL, dress, new_figure
from quenched.report import figure, table
from quenched.targets import regression

_N, _CENTRES, _SEED = 100, 20, 0  # the paper gives none of them
_CHECK = 500  # S' of the paper
_GRID = np.linspace(-6.0, 6.0, 241)
_SETTINGS = (
    ("iid", 100, "Alternating"),
    ("iid", 10, "Alternating"),
    ("matched", 100, "Joint"),
    ("matched", 2 * (_CENTRES + 1), "Joint"),
    ("iid", 100, "Joint"),
)
_METRICS = ("bound", "check_bound", "evidence", "mean_error", "covariance_error", "n_evaluations", "seconds")


def truth(x: np.ndarray) -> np.ndarray:
    """The curve of the paper."""
    return 2.0 * np.cos(x) * np.sin(x) - 0.1 * x**2


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, noisy targets, centres."""
    rng = np.random.default_rng(_SEED)
    x = rng.uniform(-6.0, 6.0, _N)
    return x, truth(x) + 0.2 * rng.standard_normal(_N), np.linspace(-6.0, 6.0, _CENTRES)


def predictions(weights, features):
    return features @ weights


def run(draws: str, n: int, method: str, max_rounds: int = 1000) -> dict[str, Any]:
    """One fit, compared with exact inference."""
    x, y, centres = data()
    features = radial_basis(x, centres, 1.0)
    dim = features.shape[1]
    exact = exact_linear_regression(features, y)
    maker = {"iid": iid, "matched": matched}[draws]
    chosen = Alternating(max_rounds=max_rounds) if method == "Alternating" else Joint(gradient_tolerance=1e-6)
    fitted = fit(
        regression(predictions, features, y),
        np.random.default_rng(_SEED).standard_normal(dim) if method == "Alternating" else np.zeros(dim),
        draws=maker(n, dim, seed=_SEED),
        method=chosen,
        check=_CHECK,
        throw=False,
        progress=False,
    )
    on_grid = radial_basis(_GRID, centres, 1.0)
    return {
        "bound": fitted.bound,
        "check_bound": fitted.check_bound,
        "evidence": exact.evidence,
        "overfits": fitted.overfits,
        "verdict": fitted.verdict,
        "n_evaluations": fitted.n_evaluations,
        "n_objective_evaluations": fitted.n_objective_evaluations,
        "seconds": fitted.seconds,
        "bounds": fitted.history.bound.tolist(),
        "check_bounds": fitted.history.check_bound.tolist(),
        "prediction": (on_grid @ fitted.posterior.mean).tolist(),
        "exact_prediction": (on_grid @ exact.mean).tolist(),
        "covariance": fitted.covariance.tolist(),
        "exact_covariance": exact.covariance.tolist(),
        "prior_precision": [fitted.hyper["prior_precision"], exact.prior_precision],
        "noise_precision": [fitted.hyper["noise_precision"], exact.noise_precision],
        "mean_error": float(np.max(np.abs(fitted.posterior.mean - exact.mean) / np.sqrt(np.diag(exact.covariance)))),
        "covariance_error": float(
            np.max(np.abs(fitted.covariance - exact.covariance)) / np.max(np.abs(exact.covariance))
        ),
    }


def _tasks(full: bool) -> list[Task]:
    rounds = 1000 if full else 200
    chosen = []
    for draws, n, method in _SETTINGS:
        arguments = {"draws": draws, "n": n, "method": method, "max_rounds": rounds}
        chosen.append(Task("linear", f"{draws}-{n}-{method}-{rounds}", f"{__name__}:run", arguments))
    return chosen


def _label(arguments: dict[str, Any]) -> str:
    return f"{arguments['draws']} draws, S={arguments['n']}, {arguments['method']}"


def _records(outcomes: Sequence[Outcome]) -> list[Record]:
    rows = []
    for outcome in _good(outcomes):
        mode = "paper" if outcome.task.arguments["method"] == "Alternating" else "default"
        label = _label(outcome.task.arguments)
        rows += [summarise("linear", "synthetic", mode, label, metric, [outcome.result[metric]]) for metric in _METRICS]
    return rows


def _good(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.error is None]


def _sections(outcomes: Sequence[Outcome], records: Sequence[Record]) -> list[Section]:
    good = _good(outcomes)
    if not good:
        return []
    rows = [
        (
            _label(outcome.task.arguments),
            f"{outcome.result['bound']:.4f}",
            f"{outcome.result['check_bound']:.4f}",
            f"{outcome.result['evidence']:.4f}",
            outcome.result["mean_error"],
            outcome.result["covariance_error"],
            outcome.result["n_objective_evaluations"],
            "yes" if outcome.result["overfits"] else "no",
        )
        for outcome in good
    ]
    columns = ["draws and method", "bound", "check bound", "exact evidence", "mean error (sd)", "covariance error"]
    return [
        (
            "Linear regression (Sec. 3.2)",
            [
                f"{_N} points, {_CENTRES} radial basis functions and a bias, prior and noise precision learned. The paper "
                "gives neither number; these are ours. Matched draws are exact here from S = 2·dim on, to the tolerance "
                "of the optimiser; below that they cannot span the weights and are refused.",
                table([*columns, "evaluations of the bound", "overfits"], rows),
                figure(_prediction_figure(good), "Mean predictions. Exact and approximate lie on each other."),
                figure(_covariance_figure(good), "Posterior covariance matrices of the weights."),
                figure(_monitor_figure(good), "The monitor: the bound on the draws and on 500 check draws, per round."),
            ],
        )
    ]


def _prediction_figure(good: Sequence[Outcome]):
    x, y, _ = data()
    drawn = new_figure(7.5, 3.2)
    axes = drawn.subplots()
    axes.plot(_GRID, truth(_GRID), color=ORANGE, label="true function")
    axes.scatter(x, y, s=12, color=GREEN, label="data")
    result = good[0].result
    axes.plot(_GRID, result["exact_prediction"], color="black", label="exact", linewidth=2.5, alpha=0.6)
    axes.plot(_GRID, result["prediction"], color=BLUE, linestyle="--", label=_label(good[0].task.arguments))
    axes.legend(frameon=False, fontsize=SMALL)
    dress(axes, xlabel="x", ylabel="y")
    return drawn


def _covariance_figure(good: Sequence[Outcome]):
    shown = {"exact": good[0].result["exact_covariance"]}
    for draws in ("iid", "matched"):
        alike = [o for o in good if (o.task.arguments["draws"], o.task.arguments["n"]) == (draws, 100)]
        shown |= {_label(outcome.task.arguments): outcome.result["covariance"] for outcome in alike[:1]}
    drawn = new_figure(7.5, 2.7)
    panels = drawn.subplots(1, len(shown))
    limit = float(np.max(np.abs(shown["exact"])))
    for panel, (label, matrix) in zip(np.atleast_1d(panels), shown.items(), strict=True):
        panel.imshow(matrix, vmin=-limit, vmax=limit, cmap="RdBu_r")
        dress(panel, title=label)
    return drawn


def _monitor_figure(good: Sequence[Outcome]):
    wanted = [("iid", 100, "Alternating"), ("iid", 10, "Alternating"), ("matched", 42, "Joint")]
    drawn = new_figure(7.5, 2.8)
    panels = drawn.subplots(1, len(wanted))
    for panel, (draws, n, method) in zip(panels, wanted, strict=True):
        for result in results(good, draws=draws, n=n, method=method):
            _draw_monitor(panel, result)
            dress(panel, title=f"{draws}, S={n}", xlabel="round", ylabel="nats")
    panels[0].legend(frameon=False, fontsize=SMALL)
    return drawn


def _draw_monitor(panel, result: dict[str, Any]) -> None:
    rounds = np.arange(1, len(result["bounds"]) + 1)
    mark = "o" if len(rounds) < 3 else None
    panel.plot(rounds, result["bounds"], color=BLUE, linestyle="--", marker=mark, label="on Z")
    panel.plot(rounds, result["check_bounds"], color=GREEN, marker=mark, label="on Z′")
    if np.ptp([*result["bounds"], *result["check_bounds"]]) > 1.0:
        panel.set_yscale("symlog", linthresh=100.0)
    else:  # nothing to see but that all agree
        panel.set_ylim(result["evidence"] - 1.0, result["evidence"] + 1.0)
    panel.axhline(result["evidence"], color=GREY, linewidth=0.8, linestyle=":", label="exact evidence")


linear = Experiment("linear", "Linear regression", _tasks, _records, _sections)
