"""The paper's experiments: their building blocks against independent truths, and one of them end to end."""

import csv

import jax
import numpy as np
import pytest
from scipy import integrate, stats

import quenched as qd
from quenched.reproduce import EXPERIMENTS, bivariate, features, linear, logistic, multiclass, paper, reproduce
from quenched.reproduce.records import Record


@pytest.mark.parametrize("which", paper.SKEW_VECTORS)
def test_the_skew_densities_are_normalised(which):
    a = paper.SKEW_VECTORS[which]
    with jax.enable_x64(True):
        density = lambda y, x: float(np.exp(bivariate.log_density(np.array([x, y]), np.array(a))))
    side = np.linspace(-8, 8, 401)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    assert np.exp(bivariate._log_p(grid, a)).sum() * (side[1] - side[0]) ** 2 == pytest.approx(1.0, abs=1e-6)
    assert density(0.3, -0.4) == pytest.approx(np.exp(bivariate._log_p(np.array([[-0.4, 0.3]]), a))[0], rel=1e-6)


def test_the_divergence_equals_that_of_an_independent_quadrature():
    a = paper.SKEW_VECTORS["top"]
    fit = qd.fit(bivariate.log_density, np.zeros(2), data=np.array(a), draws=64, progress=False)
    q = stats.multivariate_normal(fit.posterior.mean, fit.covariance)

    def integrand(y, x):
        log_q = q.logpdf([x, y])
        return np.exp(log_q) * (log_q - bivariate._log_p(np.array([[x, y]]), a)[0])

    sd = np.sqrt(np.diag(fit.covariance))
    low, high = fit.posterior.mean - 7 * sd, fit.posterior.mean + 7 * sd
    expected, _ = integrate.dblquad(integrand, low[0], high[0], low[1], high[1], epsabs=1e-5)
    assert bivariate.divergence(fit, a) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("which", "optimum"), [("top", 0.179), ("middle", 0.250), ("bottom", 0.389)])
def test_default_settings_come_close_to_the_best_gaussian(which, optimum):
    assert bivariate.run(which, "default")["divergence"] < optimum + 0.02


@pytest.mark.parametrize("which", paper.SKEW_VECTORS)
def test_fifty_matched_draws_beat_the_paper(which):
    found = [bivariate.run(which, "matched", seed)["divergence"] for seed in range(20)]
    assert np.median(found) < paper.SKEW_PROPOSED[which]


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
        np.testing.assert_allclose(inner, features.kernel(kind, x, z) + bias, atol=1e-12)
    np.testing.assert_allclose(
        features.kernel_features("gaussian", x, z)[:, :-1], np.exp(-((x[:, None] - z) ** 2).sum(-1) / 3)
    )


def test_standardising_uses_the_training_part_alone():
    train, test = np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([[4.0, 7.0]])
    scaled, moved = features.standardise(train, test)
    np.testing.assert_allclose(scaled, [[-1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(moved, [[3.0, 2.0]])


def test_every_quick_selection_is_part_of_the_full_one_or_says_its_rounds():
    for experiment in EXPERIMENTS.values():
        full = {task.name for task in experiment.tasks(True)}
        for task in experiment.tasks(False):
            assert task.name in full or "max_rounds" in task.arguments


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
    value, spread = paper.LOGISTIC_PROPOSED["flare-solar"]
    assert abs(methods["frozen"]["accuracy"] - value) < 3 * spread


@pytest.mark.usefixtures("data_folder")
def test_one_fold_of_crabs_in_both_modes_and_mrvm():
    for mode in ("default", "rvm"):
        assert multiclass.run("crabs", 1, mode)["accuracy"] > 0.7
    assert multiclass.run("crabs", 1, "paper", max_rounds=2)["evaluations"] > 0


def test_one_experiment_end_to_end_with_a_failure(tmp_path, monkeypatch):
    broken = dict(paper.SKEW_VECTORS, top=None)
    monkeypatch.setattr("quenched.reproduce.paper.SKEW_VECTORS", broken)
    monkeypatch.setattr("quenched.reproduce.bivariate._SEEDS", 1)
    monkeypatch.setattr("quenched.reproduce.bivariate._contours", lambda outcomes: _empty_figure())
    written = reproduce(["bivariate"], out=tmp_path, jobs=1)
    text = written.report.read_text(encoding="utf-8")
    assert {outcome.task.arguments["which"] for outcome in written.failed} == {"top"}
    assert "What failed" in text
    assert "bivariate/top-laplace-0" in text
    with (tmp_path / "results.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == Record._fields
    assert {row["dataset"] for row in rows} == {"middle", "bottom"}
    laplace = next(
        r for r in rows if r["method"] == "Laplace" and r["dataset"] == "bottom" and r["metric"] == "divergence"
    )
    assert float(laplace["paper_value"]) == 1.384


def _empty_figure():
    from quenched.plots import new_figure

    return new_figure(1, 1)


def test_an_unknown_experiment_is_named():
    with pytest.raises(ValueError, match="houses"):
        reproduce(["houses"])
