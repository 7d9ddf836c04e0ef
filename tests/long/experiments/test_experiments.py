"""The paper's experiments: their building blocks against independent truths, and one of them end to end."""

import csv
import importlib
import inspect
import json

import jax
import numpy as np
import pytest
from scipy import integrate, special, stats

import quenched as qd
from quenched.paper.experiments import EXPERIMENTS, features, printed, reproduce
from quenched.paper.experiments import bivariate_densities as bivariate
from quenched.paper.experiments import linear_regression as linear
from quenched.paper.experiments import logistic_regression as logistic
from quenched.paper.experiments import multiclass_classification as multiclass
from quenched.paper.experiments.records import Record
from quenched.paper.experiments.tasks import Outcome


@pytest.mark.parametrize("which", printed.SKEW_VECTORS)
def test_the_skew_densities_are_normalised(which):
    a = printed.SKEW_VECTORS[which]
    with jax.enable_x64(True):
        density = lambda y, x: float(np.exp(bivariate.log_density(np.array([x, y]), np.array(a))))
    side = np.linspace(-8, 8, 401)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    assert np.exp(bivariate.skew_log_density(grid, np.array(a), special.log_ndtr)).sum() * (
        side[1] - side[0]
    ) ** 2 == pytest.approx(1.0, abs=1e-6)
    assert density(0.3, -0.4) == pytest.approx(
        np.exp(bivariate.skew_log_density(np.array([[-0.4, 0.3]]), a, special.log_ndtr))[0], rel=1e-6
    )


def test_the_divergence_equals_that_of_an_independent_quadrature():
    a = printed.SKEW_VECTORS["top"]
    fit = qd.fit(bivariate.log_density, np.zeros(2), data=np.array(a), draws=64, progress=False)
    q = stats.multivariate_normal(fit.posterior.mean, fit.covariance)

    def integrand(y, x):
        log_q = q.logpdf([x, y])
        return np.exp(log_q) * (log_q - bivariate.skew_log_density(np.array([x, y]), a, special.log_ndtr))

    sd = np.sqrt(np.diag(fit.covariance))
    low, high = fit.posterior.mean - 7 * sd, fit.posterior.mean + 7 * sd
    expected, _ = integrate.dblquad(integrand, low[0], high[0], low[1], high[1], epsabs=1e-5)
    assert bivariate.divergence(fit, a) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("which", "optimum"), [("top", 0.179), ("middle", 0.250), ("bottom", 0.389)])
def test_default_settings_come_close_to_the_best_gaussian(which, optimum):
    assert bivariate.run(which, "default")["divergence"] < optimum + 0.02


@pytest.mark.parametrize("which", printed.SKEW_VECTORS)
def test_fifty_matched_draws_beat_the_paper(which):
    found = [bivariate.run(which, "matched", seed)["divergence"] for seed in range(20)]
    assert np.median(found) < printed.SKEW_PROPOSED[which]


def test_matched_draws_find_the_exact_regression():
    result = linear.run("matched", 42, "Joint")
    assert result["mean_error"] < 1e-3
    assert result["covariance_error"] < 1e-3
    assert result["bound"] == pytest.approx(result["evidence"], abs=1e-6)


def test_kernel_features_have_the_inner_products_of_their_kernel():
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    for kind in ("linear", "polynomial"):
        inner = features.kernel_features(kind, x, x) @ features.kernel_features(kind, z, x).T
        bias = 1.0 if kind == "linear" else 0.0
        np.testing.assert_allclose(inner, features.KERNELS[kind](x, z) + bias, atol=1e-12)
    np.testing.assert_allclose(
        features.kernel_features("gaussian", x, z)[:, :-1], np.exp(-((x[:, None] - z) ** 2).sum(-1) / 3)
    )


def test_every_quick_selection_is_part_of_the_full_one_or_says_its_rounds():
    for experiment in EXPERIMENTS.values():
        full = {task.name for task in experiment.tasks(True)}
        for task in experiment.tasks(False):
            assert task.name in full or "max_rounds" in task.arguments


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_task_names_a_function_that_takes_its_arguments(name):
    for task in EXPERIMENTS[name].tasks(True) + EXPERIMENTS[name].tasks(False):
        module, _, function = task.function.partition(":")
        inspect.signature(getattr(importlib.import_module(module), function)).bind(**task.arguments)


@pytest.mark.usefixtures("data_folder")
def test_one_partition_of_solar_with_all_methods():
    result = logistic.run("flare-solar", 0, "default")
    methods = result["methods"]
    best = methods["truth"]["true_bound"]
    assert methods["truth"]["bound"] == pytest.approx(best, abs=1e-4)
    assert methods["jaakkola"]["bound"] <= methods["jaakkola"]["true_bound"] + 1e-6
    for method in ("frozen", "jaakkola", "laplace"):
        assert methods[method]["true_bound"] <= best + 1e-3
    assert best - methods["frozen"]["true_bound"] < best - methods["laplace"]["true_bound"]
    value, spread = printed.LOGISTIC_PROPOSED["flare-solar"]
    assert abs(methods["frozen"]["accuracy"] - value) < 3 * spread


@pytest.mark.usefixtures("data_folder")
def test_one_fold_of_crabs_in_both_modes_and_mrvm():
    for mode in ("default", "rvm"):
        assert multiclass.run("crabs", 1, mode)["accuracy"] > 0.7
    assert multiclass.run("crabs", 1, "paper", max_rounds=2)["evaluations"] > 0


def logistic_result(accuracy):
    method = dict.fromkeys(("sample_accuracy", "test_log_likelihood", "bound", "true_bound", "seconds"), 0.25)
    method |= {"accuracy": accuracy, "evaluations": 40}
    methods = {key: dict(method) for key in ("frozen", "jaakkola", "laplace", "truth")}
    methods["jaakkola"]["evaluations"] = None
    return {"methods": methods, "n_weights": 17}


def test_the_report_on_logistic_regression_has_both_tables():
    chosen = [task for task in EXPERIMENTS["logistic"].tasks(True) if task.arguments["dataset"] == "heart"]
    chosen = [task for task in chosen if task.arguments["mode"] == "default"][:2]
    outcomes = [
        Outcome(task, {**logistic_result(accuracy), "origin": f"partition {number} of 100"})
        for number, (task, accuracy) in enumerate(zip(chosen, (0.5, 0.6), strict=True), start=1)
    ]
    records = logistic.logistic.records(outcomes)
    ((_, (setting, accuracies, _, bounds, _, gained)),) = logistic.logistic.sections(outcomes, records)
    assert "Partitions: partition 1, 2 of 100." in setting
    rows = [line for line in str(accuracies).split("<tr>") if "frozen draws" in line]
    assert len(rows) == 1
    for cell in ("heart", "default", "17", "0.5500 ± 0.0707", "0.5500 ± 0.0476", "0.250 ± 0.000"):
        assert cell in rows[0], cell
    assert "0.25 ± 0.00" in str(bounds)
    assert "40 ± 0" in str(bounds)
    assert "–" in next(line for line in str(bounds).split("<tr>") if "Jaakkola" in line)
    assert "heart" in str(gained)


def test_the_report_on_classification_has_a_row_per_method():
    chosen = [task for task in EXPERIMENTS["multiclass"].tasks(True) if task.arguments["dataset"] == "crabs"]
    chosen = [task for task in chosen if task.arguments["fold"] == 0]
    common = {"accuracy": 0.9, "test_log_likelihood": -0.5, "seconds": 2.0, "status": "max_evaluations"}
    outcomes = [Outcome(task, {**common, "evaluations": 30, "gap": 1.5, "relevance_vectors": None}) for task in chosen]
    records = multiclass.multiclass.records(outcomes)
    ((_, (setting, _, accuracies, _, gained)),) = multiclass.multiclass.sections(outcomes, records)
    assert "1 of 1 runs did" in setting
    rows = str(accuracies).split("<tr>")
    for method, theirs in (("mRVM2", "0.915 ± 0.071"), ("matched", "0.950 ± 0.033"), ("iid", "0.950 ± 0.033")):
        (row,) = (line for line in rows if method in line)
        for cell in ("crabs", "linear", "0.900", theirs, "-0.500", "2.00", "30", "1.5"):
            assert cell in row, (method, cell)
    assert "1.0×" in str(gained)


def test_one_experiment_end_to_end_with_a_failure(tmp_path, monkeypatch):
    broken = dict(printed.SKEW_VECTORS, top=None)
    monkeypatch.setattr("quenched.paper.experiments.printed.SKEW_VECTORS", broken)
    monkeypatch.setattr("quenched.paper.experiments.bivariate_densities._SEEDS", 1)
    monkeypatch.setattr("quenched.paper.experiments.bivariate_densities._contours", lambda outcomes: _empty_figure())
    written = reproduce(["bivariate"], out=tmp_path, jobs=1)
    text = written.report.read_text(encoding="utf-8")
    assert {outcome.task.arguments["which"] for outcome in written.failed} == {"top"}
    assert "What failed" in text
    assert text.index('class="verdict bad"') < text.index("<table")
    assert "bivariate/top-laplace-0" in text
    with (tmp_path / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == Record._fields
    assert "jax" in json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["versions"]
    assert {row["dataset"] for row in rows} == {"middle", "bottom"}
    laplace = next(
        r for r in rows if r["method"] == "Laplace" and r["dataset"] == "bottom" and r["metric"] == "divergence"
    )
    assert float(laplace["paper_value"]) == 1.384

    # The next run reads what is there and tries only what failed.
    before = written.table.read_bytes()
    monkeypatch.setattr("quenched.paper.experiments.bivariate_densities._fit", _unwanted)
    again = reproduce(["bivariate"], out=tmp_path, jobs=1)
    assert len(again.failed) == len(written.failed)
    assert again.table.read_bytes() == before


def _unwanted(*arguments):
    raise AssertionError("computed again")


def _empty_figure():
    from quenched.plots import new_figure

    return new_figure(1, 1)


def test_an_unknown_experiment_is_named():
    with pytest.raises(ValueError, match="houses"):
        reproduce(["houses"])
