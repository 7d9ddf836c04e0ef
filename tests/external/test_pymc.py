"""PyMC and Bambi models, run through PyMC."""

import numpy as np
import pytest

import quenched as qd
from quenched.cli import main

pm = pytest.importorskip("pymc")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def eight_schools(schools):
    effects, errors = schools
    with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
        scale, seen = pm.Data("errors", errors, dims="school"), pm.Data("seen", effects, dims="school")
        mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0)
        z = pm.Normal("z", 0.0, 1.0, dims="school")
        theta = pm.Deterministic("theta", mu + tau * z, dims="school")
        pm.Normal("effects", theta, scale, observed=seen, dims="school")
    return model


def test_a_fit_speaks_the_language_of_pymc(eight_schools, schools, tmp_path):
    effects, errors = schools
    model = qd.from_pymc(eight_schools)
    fit = qd.fit(model, progress=False)
    ours = fit.sample(1000)
    assert {name: value.shape[1:] for name, value in ours.items()} == {"mu": (), "tau": (), "z": (8,), "theta": (8,)}
    np.testing.assert_allclose(ours["theta"], ours["mu"][:, None] + ours["tau"][:, None] * ours["z"])
    predicted = fit.predict(1000, seed=1)["effects"]
    # Also that PyMC did not draw z anew from its prior.
    np.testing.assert_allclose(predicted.std(axis=0), np.hypot(errors, ours["theta"].std(axis=0)), rtol=0.1)
    assert fit.model.log_likelihood(ours)["effects"].shape == (1000, 8)
    assert model.dims["theta"] == ("school",)
    assert list(model.coords["school"]) == list("ABCDEFGH")
    np.testing.assert_array_equal(model.observed["effects"], effects)
    with eight_schools:
        theirs = pm.sample_posterior_predictive(fit.to_arviz(200), progressbar=False, random_seed=1)
    assert theirs.posterior_predictive["effects"].dims == ("chain", "draw", "school")
    assert theirs.posterior_predictive["effects"].shape == (1, 200, 8)
    loaded = qd.load(fit.save(tmp_path / "fit.npz")).attach(model)
    np.testing.assert_array_equal(loaded.sample(3)["theta"], fit.sample(3)["theta"])


def test_many_data_sets(eight_schools, schools):
    effects, errors = schools
    data = {"errors": np.stack([errors, errors]), "seen": np.stack([effects, effects + 3.0])}
    fits = qd.fit_many(qd.from_pymc(eight_schools), data=data, progress=False)
    with eight_schools:
        pm.set_data({"seen": effects + 3.0})
    alone = qd.fit(qd.from_pymc(eight_schools), progress=False)
    np.testing.assert_allclose(fits[1].bound, alone.bound, atol=1e-4)
    np.testing.assert_array_equal(fits[0].model.observed["effects"], effects)
    assert fits[0].predict(3)["effects"].shape == (3, 8)


def test_every_support_and_missing_values(tmp_path):
    seen = np.random.default_rng(3).standard_normal(12)
    seen[3] = np.nan
    with pm.Model() as model:
        pm.LKJCholeskyCov("factor", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        pm.Dirichlet("parts", np.ones(4))
        ordered = pm.distributions.transforms.ordered
        pm.Normal("cuts", 0.0, 1.0, shape=3, transform=ordered, initval=[-1.0, 0.0, 1.0])
        below = pm.Uniform("below", 0.0, 2.0)
        pm.Uniform("dynamic", 0.0, below)
        pm.ZeroSumNormal("zero_sum", 1.0, shape=4)
        pm.Potential("extra", -0.5 * (below - 1.0) ** 2)
        pm.Normal("seen", below, 1.0, observed=seen)
    known = qd.from_pymc(model)
    fit = qd.fit(known, draws=128, progress=False)
    samples = fit.sample(200)
    assert np.all(samples["dynamic"] < samples["below"])
    np.testing.assert_allclose(samples["parts"].sum(axis=-1), 1.0)
    assert np.all(np.diff(samples["cuts"], axis=-1) > 0)
    np.testing.assert_allclose(samples["seen"][:, 3], samples["seen_unobserved"][:, 0])  # imputed
    np.testing.assert_allclose(fit.mean["seen_unobserved"], fit.mean["below"], atol=0.05)
    assert samples["factor_corr"].shape == (200, 3, 3)
    # PyMC itself gives no log likelihood where a variable has an initval, as cut points must.
    assert fit.to_arviz(20).log_likelihood["seen_observed"].shape == (1, 20, 11)
    np.testing.assert_array_equal(model.rvs_to_initial_values[model["cuts"]], [-1.0, 0.0, 1.0])
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    np.testing.assert_array_equal(loaded.mean["factor"], fit.mean["factor"])
    np.testing.assert_array_equal(loaded.attach(known).sample(3)["factor_corr"], fit.sample(3)["factor_corr"])


def test_bambi_models_are_pymc_models():
    bambi, pandas = pytest.importorskip("bambi"), pytest.importorskip("pandas")
    random = np.random.default_rng(4)
    table = pandas.DataFrame({"x": random.standard_normal(90), "group": np.repeat(list("abcdef"), 15)})
    table["y"] = 1.0 + 2.0 * table.x + np.repeat(random.standard_normal(6), 15) + random.standard_normal(90)
    fit = qd.fit(qd.from_pymc(bambi.Model("y ~ x + (1|group)", table)), progress=False)
    samples = fit.sample(500)
    slope, error = (
        np.polynomial.polynomial.polyfit(table.x, table.y - table.groupby("group").y.transform("mean"), 1)[1],
        0.15,
    )
    assert abs(samples["x"].mean() - slope) < 3 * error
    assert samples["1|group"].shape == (500, 6)
    assert fit.predict(20)["y"].shape == (20, 90)


def test_what_cannot_be_fitted_is_named(eight_schools):
    with pm.Model() as discrete:
        pm.Normal("x", pm.Poisson("count", 3.0), 1.0)
    with pm.Model() as in_batches:
        some = pm.Minibatch(np.arange(10.0), batch_size=2)
        pm.Normal("y", pm.Normal("mu", 0.0, 1.0), 1.0, observed=some, total_size=10)
    for given, says in (
        (in_batches, "Minibatch takes some of its rows at random"),
        (discrete, "count is discrete"),
        (pm.Model(), "no free variable"),
        (3, "give a pymc.Model"),
    ):
        with pytest.raises(ValueError, match=says):
            qd.from_pymc(given)
    with pytest.raises(ValueError, match=r"Model of pymc.*from_pymc"):
        qd.fit(eight_schools)
    with pytest.raises(ValueError, match="transforms: the model brings its own"):
        qd.fit(qd.from_pymc(eight_schools), transforms={"tau": qd.positive})


def test_a_model_file_on_the_command_line(tmp_path):
    (tmp_path / "line.py").write_text(
        "import pymc as pm\nwith pm.Model() as model:\n    pm.Normal('y', pm.Normal('mu', 0.0, 1.0), 1.0, observed=[2.0])\n"
    )
    assert main(["fit", str(tmp_path / "line.py"), "--out", str(tmp_path), "--no-diagnosis", "--quiet"]) == 0
    np.testing.assert_allclose(qd.load(tmp_path / "line.npz").mean["mu"], 1.0, atol=1e-6)
