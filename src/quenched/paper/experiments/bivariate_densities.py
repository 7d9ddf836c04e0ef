"""Sec. 3.1: the best Gaussian for skew bivariate densities (Azzalini 2005), by frozen draws and by Laplace."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.scipy.special import log_ndtr
from scipy.special import log_ndtr as host_log_ndtr

from quenched.baselines import laplace
from quenched.draws import iid, sobol
from quenched.fitting import Alternating, fit
from quenched.paper.experiments import printed
from quenched.paper.experiments.experiment import Experiment, Section, results
from quenched.paper.experiments.records import Record, summarise
from quenched.paper.experiments.tasks import Outcome, Task
from quenched.plots import ORANGE, dress, new_figure
from quenched.report import figure, table
from quenched.results import Fit

_DRAWS = 50  # as in the paper
_SEEDS = 20
_BOXES = (3.0, 4.0, 6.0)  # half-widths of grids around the origin, to show what the paper's values depend on
_OPTIMUM_DRAWS = 2**14


def log_density(w, a):
    """log 2 N(w | 0, I) Φ(h(w)), Eq. (15): normalised, so the log evidence is 0 and KLD(q ‖ p) is minus the bound."""
    return skew_log_density(w, a, log_ndtr)


def skew_log_density(w, a, log_ndtr):
    """The same for many points, with the function of JAX or of SciPy."""
    x, y = w[..., 0], w[..., 1]
    h = a[0] * x + a[1] * y + a[2] * x * y**2 + a[3] * x**2 * y + a[4] * x**3 + a[5] * y**3
    return -np.log(np.pi) - 0.5 * (x**2 + y**2) + log_ndtr(h)


def divergence(fitted: Fit, a: Sequence[float]) -> float:
    """KLD(q ‖ p) on a grid that follows q: nine standard deviations each way, so that nothing is cut off."""
    side = np.linspace(-9.0, 9.0, 721)
    z = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    weights = np.exp(-0.5 * np.sum(z**2, axis=1))
    points = fitted.posterior.transform(z)
    gaps = fitted.posterior.log_density(points) - skew_log_density(points, a, host_log_ndtr)
    return float(np.sum(weights * gaps) / np.sum(weights))


def divergence_in_box(fitted: Fit, a: Sequence[float], half_width: float) -> float:
    """The same sum cut off at a box around the origin, both densities normalised on it: a grid that is too narrow."""
    side = np.linspace(-half_width, half_width, 601)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    log_q, log_p = fitted.posterior.log_density(points), skew_log_density(points, a, host_log_ndtr)
    q, p = np.exp(log_q), np.exp(log_p)
    return float(np.sum(q * (log_q - np.log(q.sum()) - log_p + np.log(p.sum()))) / q.sum())


def run(which: str, method: str, seed: int = 0) -> dict[str, Any]:
    """One fit of one density."""
    a = printed.SKEW_VECTORS[which]
    fitted = _fit(np.array(a), method, seed)
    boxes = {str(box): divergence_in_box(fitted, a, box) for box in _BOXES} if method == "laplace" else {}
    return {
        "divergence": divergence(fitted, a),
        "boxes": boxes,
        "mean": fitted.posterior.mean.tolist(),
        "covariance": fitted.covariance.tolist(),
        "n_draws": fitted.n_draws,
        "n_evaluations": fitted.n_evaluations,
        "seconds": fitted.seconds,
        "status": str(fitted.status),
        "verdict": fitted.verdict,
    }


def _fit(a: np.ndarray, method: str, seed: int) -> Fit:
    start, common = np.zeros(2), {"data": a, "throw": False, "progress": False}
    if method == "laplace":
        return laplace(log_density, start, **common)
    if method == "paper":
        return fit(log_density, start, draws=iid(_DRAWS, 2, seed), method=Alternating(), seed=seed, **common)
    if method == "matched":
        return fit(log_density, start, draws=_DRAWS, seed=seed, **common)
    if method == "optimum":
        return fit(log_density, start, draws=sobol(_OPTIMUM_DRAWS, 2, seed), starts=4, **common)
    return fit(log_density, start, seed=seed, **common)


def _tasks(full: bool) -> list[Task]:
    chosen = []
    for which in printed.SKEW_VECTORS:
        single = [("default", 0), ("laplace", 0), ("optimum", 0)]
        several = [(method, seed) for method in ("matched", "paper") for seed in range(_SEEDS)]
        for method, seed in single + several:
            arguments = {"which": which, "method": method, "seed": seed}
            chosen.append(Task("bivariate", f"{which}-{method}-{seed}", f"{__name__}:run", arguments))
    return chosen


_METHODS = {  # mode, label
    "paper": ("paper", f"iid draws, S={_DRAWS}, Algorithm 1"),
    "matched": ("default", f"matched draws, S={_DRAWS}"),
    "default": ("default", "matched draws, S grown"),
    "optimum": ("default", "best Gaussian"),
    "laplace": ("default", "Laplace"),
}


def _records(outcomes: Sequence[Outcome]) -> list[Record]:
    rows = []
    for which in printed.SKEW_VECTORS:
        for method, (mode, label) in _METHODS.items():
            found = results(outcomes, which=which, method=method)
            if not found:
                continue
            theirs = printed.SKEW_LAPLACE[which] if method == "laplace" else printed.SKEW_PROPOSED[which]
            theirs = None if method == "optimum" else theirs
            values = [result["divergence"] for result in found]
            rows.append(summarise("bivariate", which, mode, label, "divergence", values, theirs))
            if len(values) > 1:
                rows.append(rows[-1]._replace(metric="median divergence", value=float(np.median(values)), spread=None))
            work = [result["n_evaluations"] for result in found]
            rows.append(summarise("bivariate", which, mode, label, "evaluations", work))
    return rows


def _sections(outcomes: Sequence[Outcome], records: Sequence[Record]) -> list[Section]:
    rows, boxes = [], []
    for which in printed.SKEW_VECTORS:
        value = lambda method, which=which: _median(results(outcomes, which=which, method=method))
        rows.append(
            (which, printed.SKEW_PROPOSED[which], value("paper"), value("matched"), value("default"), value("optimum"))
            + (printed.SKEW_LAPLACE[which], value("laplace"))
        )
        for result in results(outcomes, which=which, method="laplace"):
            boxes.append((which, printed.SKEW_LAPLACE[which], *result["boxes"].values(), result["divergence"]))
    return [
        (
            "Bivariate skew densities (Sec. 3.1)",
            [
                "KLD(q ‖ p) in nats, lower is better. Means over seeds would be ruled by a few bad draws, so medians are "
                f"shown where there are several seeds ({_SEEDS}).",
                table(
                    ["density", "paper, proposed", f"iid S={_DRAWS}", f"matched S={_DRAWS}", "matched, S grown"]
                    + ["best Gaussian", "paper, Laplace", "Laplace"],
                    rows,
                ),
                figure(_contours(outcomes), "Densities (shaded) with the Gaussians of frozen draws and of Laplace."),
                "Laplace's divergence depends on the grid it is summed over: its Gaussian reaches far into the region "
                "where the density is all but zero and log p falls without bound. On a grid that follows q it is the last "
                "column; on boxes around the origin it is smaller.",
                table(["density", "paper", *(f"box ±{box:g}" for box in _BOXES), "wide enough"], boxes),
            ],
        )
    ]


def _median(found: list[Any]) -> float | None:
    return float(np.median([result["divergence"] for result in found])) if found else None


def _contours(outcomes: Sequence[Outcome]):
    drawn = new_figure(7.5, 7.0)
    axes = drawn.subplots(len(printed.SKEW_VECTORS), 2, sharex=True, sharey=True)
    side = np.linspace(-3.5, 3.5, 241)
    grid = np.stack(np.meshgrid(side, side), axis=-1)
    for row, (which, a) in zip(axes, printed.SKEW_VECTORS.items(), strict=True):
        density = np.exp(skew_log_density(grid, a, host_log_ndtr))
        for panel, method, label in zip(row, ("default", "laplace"), ("frozen draws", "Laplace"), strict=True):
            panel.contourf(side, side, density, levels=12, cmap="Blues")
            for result in results(outcomes, which=which, method=method):
                _ellipses(panel, result)
                dress(panel, title=f"{label}, KLD {result['divergence']:.3f}")
            panel.set_aspect("equal")
    return drawn


def _ellipses(panel, result: dict[str, Any]) -> None:
    turn = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    factor, mean = np.linalg.cholesky(np.array(result["covariance"])), np.array(result["mean"])
    for radius in (1.0, 2.0):
        x, y = mean[:, None] + radius * factor @ circle
        panel.plot(x, y, color="black", linestyle="--", linewidth=1.0)
    panel.plot(*mean, marker="x", color=ORANGE, markersize=7, markeredgewidth=2)
    panel.set_xlim(-3.5, 3.5)
    panel.set_ylim(-3.5, 3.5)


bivariate = Experiment("bivariate", "Bivariate skew densities", _tasks, _records, _sections)
