"""Sec. 3.2: Bayesian linear regression, where the exact posterior is known, and the monitor of overfitting."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import quenched as qd
from quenched.baselines.exact_linear_regression import exact_linear_regression
from quenched.plots import canvas
from quenched.report import figure, table
from quenched.reproduce.experiment import Experiment, Section, results
from quenched.reproduce.features import radial_basis
from quenched.reproduce.records import Record, summarise
from quenched.reproduce.tasks import Outcome, Task

_N, _CENTRES, _SEED = 100, 20, 0  # the paper gives none of them
_CHECK = 500  # S' of the paper
_GRID = np.linspace(-6.0, 6.0, 241)


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
    maker = {"iid": qd.iid, "matched": qd.matched}[draws]
    chosen = qd.Alternating(max_rounds=max_rounds) if method == "Alternating" else qd.Joint()
    fit = qd.fit(
        qd.regression(predictions, features, y),
        np.random.default_rng(_SEED).standard_normal(dim) if method == "Alternating" else np.zeros(dim),
        draws=maker(n, dim, seed=_SEED),
        method=chosen,
        check=_CHECK,
        throw=False,
        progress=False,
    )
    on_grid = radial_basis(_GRID, centres, 1.0)
    return {
        "bound": fit.bound,
        "check_bound": fit.check_bound,
        "evidence": exact.evidence,
        "overfits": fit.overfits,
        "verdict": fit.verdict,
        "n_evaluations": fit.n_evaluations,
        "n_objective_evaluations": fit.n_objective_evaluations,
        "seconds": fit.seconds,
        "bounds": fit.history.bound.tolist(),
        "check_bounds": fit.history.check_bound.tolist(),
        "prediction": (on_grid @ fit.posterior.mean).tolist(),
        "exact_prediction": (on_grid @ exact.mean).tolist(),
        "covariance": fit.covariance.tolist(),
        "exact_covariance": exact.covariance.tolist(),
        "prior_precision": [fit.hyper["prior_precision"], exact.prior_precision],
        "noise_precision": [fit.hyper["noise_precision"], exact.noise_precision],
        "mean_error": float(np.max(np.abs(fit.posterior.mean - exact.mean) / np.sqrt(np.diag(exact.covariance)))),
        "covariance_error": float(np.max(np.abs(fit.covariance - exact.covariance)) / np.max(np.abs(exact.covariance))),
    }


def _tasks(full: bool) -> list[Task]:
    dim = _CENTRES + 1
    rounds = 1000 if full else 200
    settings = [
        ("paper", "iid", 100, "Alternating"),
        ("paper", "iid", 10, "Alternating"),
        ("default", "matched", 100, "Joint"),
        ("default", "matched", 2 * dim, "Joint"),
        ("default", "iid", 100, "Joint"),
    ]
    return [
        Task(
            "linear",
            f"{draws}-{n}-{method}-{rounds}",
            "quenched.reproduce.linear:run",
            {"draws": draws, "n": n, "method": method, "max_rounds": rounds},
        )
        for _, draws, n, method in settings
    ]


def _label(arguments: dict[str, Any]) -> str:
    return f"{arguments['draws']} draws, S={arguments['n']}, {arguments['method']}"


def _records(outcomes: Sequence[Outcome]) -> list[Record]:
    rows = []
    for outcome in outcomes:
        if outcome.error is not None:
            continue
        mode = "paper" if outcome.task.arguments["method"] == "Alternating" else "default"
        for metric in (
            "bound",
            "check_bound",
            "evidence",
            "mean_error",
            "covariance_error",
            "n_evaluations",
            "seconds",
        ):
            rows.append(
                summarise("linear", "synthetic", mode, _label(outcome.task.arguments), metric, [outcome.result[metric]])
            )
    return rows


def _sections(outcomes: Sequence[Outcome]) -> list[Section]:
    good = [outcome for outcome in outcomes if outcome.error is None]
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


def _find(good: Sequence[Outcome], **wanted: Any) -> Any:
    found = results(good, **wanted)
    return found[0] if found else None


def _prediction_figure(good: Sequence[Outcome]):
    x, y, _ = data()
    drawn = canvas.new_figure(7.5, 3.2)
    axes = drawn.subplots()
    axes.plot(_GRID, truth(_GRID), color=canvas.ORANGE, label="true function")
    axes.scatter(x, y, s=12, color=canvas.GREEN, label="data")
    result = good[0].result
    axes.plot(_GRID, result["exact_prediction"], color="black", label="exact", linewidth=2.5, alpha=0.6)
    axes.plot(_GRID, result["prediction"], color=canvas.BLUE, linestyle="--", label=_label(good[0].task.arguments))
    axes.legend(frameon=False, fontsize=canvas.SMALL)
    canvas.dress(axes, xlabel="x", ylabel="y")
    return drawn


def _covariance_figure(good: Sequence[Outcome]):
    shown = [("exact", good[0].result["exact_covariance"])]
    for draws, n in (("iid", 100), ("matched", 100)):
        for outcome in good:
            arguments = outcome.task.arguments
            if arguments["draws"] == draws and arguments["n"] == n:
                shown.append((_label(arguments), outcome.result["covariance"]))
                break
    drawn = canvas.new_figure(7.5, 2.7)
    panels = drawn.subplots(1, len(shown))
    limit = float(np.max(np.abs(shown[0][1])))
    for panel, (label, matrix) in zip(np.atleast_1d(panels), shown, strict=True):
        panel.imshow(matrix, vmin=-limit, vmax=limit, cmap="RdBu_r")
        canvas.dress(panel, title=label)
    return drawn


def _monitor_figure(good: Sequence[Outcome]):
    wanted = [("iid", 100, "Alternating"), ("iid", 10, "Alternating"), ("matched", 42, "Joint")]
    drawn = canvas.new_figure(7.5, 2.8)
    panels = np.atleast_1d(drawn.subplots(1, len(wanted)))
    for panel, (draws, n, method) in zip(panels, wanted, strict=True):
        result = _find(good, draws=draws, n=n, method=method)
        if result is None:
            continue
        rounds = np.arange(1, len(result["bounds"]) + 1)
        mark = "o" if len(rounds) < 3 else None
        panel.plot(rounds, result["bounds"], color=canvas.BLUE, linestyle="--", marker=mark, label="on Z")
        panel.plot(rounds, result["check_bounds"], color=canvas.GREEN, marker=mark, label="on Z′")
        if np.ptp([*result["bounds"], *result["check_bounds"]]) > 1.0:
            panel.set_yscale("symlog", linthresh=100.0)
        else:  # nothing to see but that all agree
            panel.set_ylim(result["evidence"] - 1.0, result["evidence"] + 1.0)
        panel.axhline(result["evidence"], color=canvas.GREY, linewidth=0.8, linestyle=":", label="exact evidence")
        canvas.dress(panel, title=f"{draws}, S={n}", xlabel="round", ylabel="nats")
    panels[0].legend(frameon=False, fontsize=canvas.SMALL)
    return drawn


linear = Experiment("linear", "Linear regression", _tasks, _records, _sections)
