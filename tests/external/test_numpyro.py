"""NumPyro models, run through NumPyro."""

import json
from functools import partial

import numpy as np
import pytest

import quenched as qd
from quenched.cli import main

numpyro = pytest.importorskip("numpyro")
dist = pytest.importorskip("numpyro.distributions")
from jax import numpy as jnp  # noqa: E402
from jax import random  # noqa: E402
from numpyro import handlers  # noqa: E402
from numpyro.infer import MCMC, NUTS, Predictive  # noqa: E402


def eight_schools(errors, effects=None):
    mu, tau = numpyro.sample("mu", dist.Normal(0.0, 5.0)), numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("school", len(errors)):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        theta = numpyro.deterministic("theta", mu + tau * z)
        numpyro.sample("effects", dist.Normal(theta, errors), obs=effects)


def every_support(rows):
    numpyro.sample("angle", dist.VonMises(0.0, 2.0))
    below = numpyro.sample("below", dist.Uniform(0.0, 2.0))
    numpyro.sample("dynamic", dist.Uniform(0.0, below))
    numpyro.sample("lower", dist.TruncatedNormal(0.0, 1.0, low=-1.0))
    numpyro.sample("upper", dist.TruncatedNormal(0.0, 1.0, high=1.0))
    numpyro.sample("parts", dist.Dirichlet(jnp.ones(4)))
    ordered = dist.TransformedDistribution(
        dist.Normal(0.0, 1.0).expand([3]).to_event(1), dist.transforms.OrderedTransform()
    )
    numpyro.sample("cuts", ordered)
    numpyro.sample("zero_sum", dist.ZeroSumNormal(1.0, (4,)))
    numpyro.sample("correlation", dist.LKJ(3, 1.0))
    factor = numpyro.sample("factor", dist.LKJCholesky(3, 2.0))
    scale = numpyro.sample("scale", dist.HalfNormal(2.0).expand([3]).to_event(1))
    numpyro.factor("extra", -0.5 * (below - 1.0) ** 2)
    numpyro.sample("rows", dist.MultivariateNormal(jnp.zeros(3), scale_tril=scale[:, None] * factor), obs=rows)


def mixture(x, enumerate="parallel"):
    share = numpyro.sample("share", dist.Beta(1.0, 1.0))
    means = numpyro.sample("means", dist.Normal(jnp.array([-2.0, 2.0]), 1.0).to_event(1))
    with numpyro.plate("row", len(x)):
        which = numpyro.sample("which", dist.Bernoulli(share), infer={"enumerate": enumerate})
        numpyro.sample("x", dist.Normal(means[which], 1.0), obs=x)


def test_a_fit_speaks_the_language_of_mcmc(schools, tmp_path):
    effects, errors = schools
    model = qd.from_numpyro(eight_schools, errors, effects=effects)
    fit = qd.fit(model, progress=False)
    mcmc = MCMC(NUTS(eight_schools), num_warmup=300, num_samples=1000, progress_bar=False)
    mcmc.run(random.PRNGKey(0), errors, effects=effects)
    theirs, ours = mcmc.get_samples(), fit.sample(1000)
    assert {name: np.shape(value) for name, value in ours.items()} == {n: np.shape(v) for n, v in theirs.items()}
    np.testing.assert_allclose(ours["theta"].mean(axis=0), theirs["theta"].mean(axis=0), atol=1.0)
    np.testing.assert_allclose(ours["theta"], ours["mu"][:, None] + ours["tau"][:, None] * ours["z"])
    predicted = fit.predict(1000, seed=1)["effects"]
    assert predicted.shape == (1000, 8)
    np.testing.assert_allclose(predicted.std(axis=0), np.hypot(errors, ours["theta"].std(axis=0)), rtol=0.1)
    assert Predictive(eight_schools, ours)(random.PRNGKey(1), errors)["effects"].shape == (1000, 8)
    assert fit.model.log_likelihood(ours)["effects"].shape == (1000, 8)
    assert model.dims["theta"] == ("school",)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    assert sorted(loaded.sample(3)) == ["mu", "tau", "z"]  # what it deduces only the model knows
    np.testing.assert_array_equal(loaded.attach(model).sample(3)["theta"], fit.sample(3)["theta"])


def test_many_data_sets(schools):
    effects, errors = schools
    model = qd.from_numpyro(eight_schools, errors, effects=effects)
    data = {"errors": np.stack([errors, errors]), "effects": np.stack([effects, effects + 3.0])}
    fits = qd.fit_many(model, data=data, progress=False)
    alone = qd.fit(qd.from_numpyro(eight_schools, errors, effects=effects + 3.0), progress=False)
    np.testing.assert_allclose(fits[1].bound, alone.bound, atol=1e-4)
    np.testing.assert_array_equal(fits[1].model.observed["effects"], effects + 3.0)


def test_every_support(tmp_path):
    rows = np.random.default_rng(1).standard_normal((40, 3))
    model = qd.from_numpyro(every_support, rows)
    fit = qd.fit(model, draws=128, progress=False)
    samples = fit.sample(200)
    assert np.all(samples["dynamic"] < samples["below"])
    np.testing.assert_allclose(samples["parts"].sum(axis=-1), 1.0)
    np.testing.assert_allclose(samples["zero_sum"].sum(axis=-1), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.einsum("nii->ni", samples["correlation"]), 1.0)
    assert np.all(np.diff(samples["cuts"], axis=-1) > 0)
    np.testing.assert_allclose(fit.mean["dynamic"], samples["dynamic"].mean(), atol=0.1)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    np.testing.assert_array_equal(loaded.mean["dynamic"], fit.mean["dynamic"])
    assert str(loaded) == str(fit)
    with pytest.raises(ValueError, match="attach"):
        loaded.sample(3)
    np.testing.assert_array_equal(loaded.attach(model).sample(3)["dynamic"], fit.sample(3)["dynamic"])


def _improper(y):
    rate = numpyro.sample("rate", dist.ImproperUniform(dist.constraints.positive, (), (2,)))
    numpyro.sample("y", dist.Gamma(3.0, rate).to_event(1), obs=y)


def test_a_site_without_a_sampler():
    """Nothing can be drawn from an improper prior; the posterior is known all the same: Gamma(4, y)."""
    fit = qd.fit(qd.from_numpyro(_improper, np.array([2.0, 5.0])), family="warped", progress=False)
    away = (fit.mean["rate"] - [2.0, 0.8]) / [1.0, 0.4]  # in sds of the truth
    assert np.all(np.abs(away) < 0.05)
    assert fit.predict(4)["y"].shape == (4, 2)


def _alike(y):
    loc = numpyro.sample("loc", dist.VonMises(0.0, 0.5))
    numpyro.sample("y", dist.VonMises(loc, numpyro.param("concentration", 4.0)), obs=y)


def test_rows_that_are_all_alike_and_in_no_plate():
    """Their distribution has no axis of its own; what is predicted has that of the data, and so has ArviZ."""
    y = np.random.default_rng(7).vonmises(1.0, 4.0, 30)
    fit = qd.fit(qd.from_numpyro(_alike, y), progress=False)
    predicted = fit.predict(200)["y"]
    assert predicted.shape == (200, 30)
    np.testing.assert_allclose(np.mean(np.cos(predicted - 1.0)), np.mean(np.cos(y - 1.0)), atol=0.1)
    assert len(np.unique(predicted[0])) == 30
    assert fit.to_arviz(20).posterior_predictive["y"].shape == (1, 20, 30)
    assert "Held at the first value, since numpyro.param gives no prior: concentration" in fit.verdict


def test_discrete_sites_are_summed_out():
    random_ = np.random.default_rng(2)
    x = np.concatenate([random_.normal(-2.0, 1.0, 30), random_.normal(2.0, 1.0, 70)])

    def by_hand(p):
        terms = jnp.log(jnp.stack([1 - p["share"], p["share"]])) + _normal(x[:, None], p["means"], 1.0)
        prior = jnp.sum(_normal(p["means"], jnp.array([-2.0, 2.0]), 1.0))
        return jnp.sum(jnp.logaddexp(terms[:, 0], terms[:, 1])) + prior

    fit = qd.fit(qd.from_numpyro(mixture, x), progress=False)
    start = {"share": 0.5, "means": np.array([-2.0, 2.0])}
    own = qd.fit(by_hand, start, transforms={"share": qd.interval(0.0, 1.0)}, progress=False)
    np.testing.assert_allclose(fit.bound, own.bound, atol=1e-3)
    np.testing.assert_allclose(fit.mean["share"], own.mean["share"], atol=1e-3)
    assert sorted(fit.sample(3)) == ["means", "share"]
    assert fit.predict(5)["x"].shape == (5, 100)


def _normal(x, mean, sd):
    return -0.5 * ((x - mean) / sd) ** 2 - jnp.log(sd) - 0.5 * jnp.log(2 * jnp.pi)


def _counts():
    numpyro.sample("rate", dist.Gamma(1.0, 1.0))
    numpyro.sample("count", dist.Poisson(3.0))


def _subsampled(x):
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("row", len(x), subsample_size=2) as rows:
        numpyro.sample("x", dist.Normal(mean, 1.0), obs=x[rows])


@pytest.mark.parametrize(
    ("model", "arguments", "says"),
    [
        (_counts, (), "'count' is discrete .* no end of values"),
        (_subsampled, (np.zeros(4),), "'row' takes 2 of its 4 rows"),
        (mixture, (np.zeros(4), "sequential"), "'which' is discrete"),
        (lambda: numpyro.sample("y", dist.Normal(0.0, 1.0), obs=1.0), (), "no latent site"),
        (eight_schools, (), "missing a required argument"),
    ],
)
def test_what_cannot_be_fitted_is_named(model, arguments, says):
    with pytest.raises(ValueError, match=says):
        qd.from_numpyro(model, *arguments)


def _inside():
    import numpyro as there

    return lambda: there.sample("x", dist.Normal(0.0, 1.0))


class _Object:
    def model(self):
        numpyro.sample("x", dist.Normal(0.0, 1.0))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (eight_schools, "eight_schools"),
        (partial(eight_schools, effects=None), "model"),
        (handlers.condition(eight_schools, data={"tau": 1.0}), "eight_schools"),
        (_inside(), "<lambda>"),
        (_Object().model, "model"),
    ],
)
def test_a_bare_model_is_told_its_reader(model, name):
    with pytest.raises(ValueError, match=rf"from_numpyro\({name}"):
        qd.fit(model, np.zeros(8))


def test_a_density_of_numpyro_is_no_model():
    assert qd.fit(dist.Normal(2.0, 1.0).log_prob, np.zeros(()), progress=False).mean == pytest.approx(2.0)


def test_a_model_file_on_the_command_line(tmp_path, schools):
    effects, errors = schools
    (tmp_path / "schools.py").write_text(
        "import numpyro\nimport numpyro.distributions as dist\nimport numpy as np\n"
        f"errors = np.array({errors.tolist()})\n"
        "def model(errors, effects=None):\n"
        "    mu = numpyro.sample('mu', dist.Normal(0.0, 5.0))\n"
        "    numpyro.sample('effects', dist.Normal(mu, errors), obs=effects)\n"
    )
    (tmp_path / "data.json").write_text(json.dumps({"effects": effects.tolist()}))
    command = ["fit", str(tmp_path / "schools.py"), "--data", str(tmp_path / "data.json"), "--out", str(tmp_path)]
    assert main([*command, "--no-diagnosis", "--quiet"]) == 0
    precision = 1.0 / 25.0 + np.sum(errors**-2.0)
    found = qd.load(tmp_path / "schools.npz")
    np.testing.assert_allclose(found.mean["mu"], np.sum(effects / errors**2) / precision, atol=1e-6)


GROUPS, EACH = 120, 5


def hierarchy(group, x, counts=None):
    mean, sd = numpyro.sample("mean", dist.Normal(0.0, 5.0)), numpyro.sample("sd", dist.HalfNormal(1.0))
    slopes = numpyro.sample("slopes", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    with numpyro.plate("group", GROUPS):
        effect = numpyro.sample("effect", dist.Normal(mean, sd))
    with numpyro.plate("row", len(group)):
        numpyro.sample("counts", dist.Poisson(jnp.exp(effect[group] + x @ slopes)), obs=counts)


def test_plates_become_sums_of_terms(tmp_path):
    random_ = np.random.default_rng(6)
    group, x = np.repeat(np.arange(GROUPS), EACH), random_.standard_normal((GROUPS * EACH, 2))
    counts = random_.poisson(np.exp(0.5 + 0.6 * random_.standard_normal(GROUPS)[group] + x @ [0.3, -0.2]))
    model = qd.from_numpyro(hierarchy, group, x, counts=counts)
    fit = qd.fit(model, progress=False)
    assert fit.settings["family"] == "sparse"
    assert "seen through, as a sum of" in fit.verdict
    # Plain, as one function of all parameters.
    plain = qd.fit(model, family="full", draws=2048, progress=False)
    for name in ("mean", "sd", "slopes", "effect"):
        np.testing.assert_allclose(fit.mean[name], plain.mean[name], atol=0.15 * np.max(plain.sd[name]))
        np.testing.assert_allclose(fit.sd[name], plain.sd[name], rtol=0.15)
    np.testing.assert_allclose(fit.check_bound, plain.check_bound, atol=0.3)
    assert fit.sample(20)["effect"].shape == (20, GROUPS)
    assert fit.predict(20)["counts"].shape == (20, GROUPS * EACH)
    loaded = qd.load(fit.save(tmp_path / "fit.npz")).attach(model)
    np.testing.assert_array_equal(loaded.sample(3)["effect"], fit.sample(3)["effect"])
