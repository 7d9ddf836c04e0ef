"""A fit as ArviZ data."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from fits import make_fit
from quenched.export import arviz as export
from quenched.models import PoissonRegression

START = {"mu": 4.0, "net": {"w": np.zeros((3, 2))}, "tau": 2.0}


@pytest.fixture(autouse=True)
def newer_arviz(monkeypatch):
    """As with arviz-base alone; `tests/external` has the older one."""
    monkeypatch.setattr(export, "_old_arviz", lambda: False)


@pytest.fixture
def fit():
    return make_fit(START, transforms={"tau": qd.positive})


def test_leaves_are_variables_with_one_chain(fit):
    posterior = fit.to_arviz(n=50).posterior
    shapes = {name: variable.shape for name, variable in posterior.data_vars.items()}
    assert shapes == {"mu": (1, 50), "net.w": (1, 50, 3, 2), "tau": (1, 50)}
    assert posterior["net.w"].dims[:2] == ("chain", "draw")


def test_values_are_the_samples_in_natural_units(fit):
    posterior = fit.to_arviz(n=50, seed=3).posterior
    samples = fit.sample(50, seed=3)
    np.testing.assert_array_equal(posterior["tau"].values[0], samples["tau"])
    np.testing.assert_array_equal(posterior["net.w"].values[0], samples["net"]["w"])
    assert (posterior["tau"].values > 0).all()


def test_a_bare_array_is_called_parameters():
    assert make_fit(np.zeros(4)).to_arviz(n=5).posterior["parameters"].shape == (1, 5, 4)


def test_the_verdict_travels_with_the_samples(fit):
    attributes = fit.to_arviz(n=5).posterior.attrs
    assert attributes["bound"] == -32.1
    assert attributes["check_bound"] == -32.15
    assert attributes["status"] == "converged"
    assert attributes["verdict"] == fit.verdict
    assert attributes["inference_library"] == "quenched"
    assert attributes["inference_library_version"] == qd.__version__
    assert all(type(value) in (str, float, int) for value in attributes.values())


def test_without_arviz_the_extra_is_named(fit, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(ImportError, match=r'pip install "quenched\[arviz\]"'):
        fit.to_arviz()


@pytest.fixture(scope="module")
def counts():
    """A model of rows, with one column and with three."""
    random = np.random.default_rng(1)
    X = random.normal(size=(50, 3))
    y = random.poisson(np.exp(0.2 + 0.8 * X[:, 0]))
    return [PoissonRegression(prior_precision=1.0).fit(X[:, columns], y).fit_ for columns in ([1], [0, 1, 2])]


def test_a_model_brings_predictions_rows_and_observations(counts):
    fit = counts[1]
    fit.diagnose(progress=False)
    data = fit.to_arviz(n=40, seed=2)
    samples = fit.sample(40, seed=2)
    assert set(data.children) == {
        "posterior",
        "posterior_predictive",
        "log_likelihood",
        "sample_stats",
        "observed_data",
    }
    assert data.posterior["coef"].dims == ("chain", "draw", "feature")
    assert data.posterior["feature"].values.tolist() == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(data.posterior_predictive["y"].values[0], fit.model.predict(samples, 2)["y"])
    np.testing.assert_allclose(data.log_likelihood["y"].values[0], fit.model.log_likelihood(samples)["y"])
    statistics = data.sample_stats
    log_q = fit.posterior.log_density(fit.posterior.sample(40, seed=2))
    np.testing.assert_allclose(statistics["lp"].values[0], statistics["log_weight"].values[0] + log_q)
    # The log density is the log likelihood of the rows and the prior.
    prior = -0.5 * np.sum(samples["coef"] ** 2, axis=1) - 1.5 * np.log(2 * np.pi)
    data_of_fit = fit.origin.problem.data
    centred = samples["intercept"] + samples["coef"] @ np.asarray(data_of_fit["centre"])
    prior += -0.5 * ((centred - float(data_of_fit["intercept_mean"])) / 10) ** 2 - np.log(10) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(statistics["lp"].values[0], data.log_likelihood["y"].values[0].sum(axis=1) + prior)
    attributes = data.posterior.attrs
    assert attributes["khat"] == fit.khat
    assert attributes["optimisation_error"] == fit.diagnosis.optimisation_error


def test_leave_one_out_prefers_the_model_that_made_the_data(counts):
    pytest.importorskip("xarray_einstats")  # without it arviz-stats takes arrays only
    stats = pytest.importorskip("arviz_stats")
    less, more = (fit.to_arviz() for fit in counts)
    assert stats.loo(more).elpd > stats.loo(less).elpd
    assert list(stats.compare({"less": less, "more": more}).index) == ["more", "less"]
    assert "coef[x0]" in stats.summary(more).index


def test_terms_with_data_are_the_likelihood():
    random = np.random.default_rng(2)
    design = random.normal(size=(30, 2))
    y = design @ [1.0, -1.0] + random.normal(size=30)
    outcome = lambda seen, row: -0.5 * jnp.log(2 * jnp.pi) - 0.5 * (row - seen["w"]) ** 2
    prior = lambda seen: -0.5 * seen["w"] ** 2 - 0.5 * jnp.log(2 * jnp.pi)
    outcome.__name__ = "outcome"
    target = qd.sum_of(qd.each(outcome, data=y, sees={"w": qd.dot(design)}), qd.each(prior, sees={"w": qd.each_entry}))
    fit = qd.fit(target, {"w": np.zeros(2)}, progress=False)
    data, samples = fit.to_arviz(n=30), fit.sample(30)["w"]
    wanted = -0.5 * np.log(2 * np.pi) - 0.5 * (y - samples @ design.T) ** 2
    assert list(data.log_likelihood.data_vars) == ["outcome"]
    np.testing.assert_allclose(data.log_likelihood["outcome"].values[0], wanted)
    np.testing.assert_array_equal(data.observed_data["outcome.data"].values, y)
    own = wanted.sum(axis=1) - 0.5 * np.sum(samples**2, axis=1) - np.log(2 * np.pi)
    np.testing.assert_allclose(data.sample_stats["lp"].values[0], own)
