"""Mixed models by formula, on small simulated tables."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
import scipy.stats as st
from scipy.special import expit
from sklearn.exceptions import NotFittedError

import quenched as qd
from quenched.models import MixedModel
from quenched.models.mixed.design import read_design, read_new_rows
from quenched.models.mixed.likelihoods import likelihoods
from quenched.models.mixed.terms import OfCorrelation, write

pytest.importorskip("formulae")


def simulated():
    random = np.random.default_rng(11)
    group = np.repeat(np.arange(12), 8)
    x = random.standard_normal(96)
    y = 1.0 + 0.5 * x + 0.8 * random.standard_normal(12)[group] + 0.6 * random.standard_normal(96)
    return pandas.DataFrame({"y": y, "x": x, "group": [f"g{one:02d}" for one in group]})


RESPONSES = {
    "gaussian": lambda table, eta, shape: st.norm.logpdf(table["y"], eta, shape),
    "bernoulli": lambda table, eta, shape: st.bernoulli.logpmf(table["y"], expit(eta)),
    "binomial": lambda table, eta, shape: st.binom.logpmf(table["y"], table["n"], expit(eta)),
    "poisson": lambda table, eta, shape: st.poisson.logpmf(table["y"], np.exp(eta)),
    "negative binomial": lambda table, eta, shape: st.nbinom.logpmf(table["y"], shape, shape / (shape + np.exp(eta))),
    "ordinal": lambda table, eta, cuts: np.log(np.diff(expit(cuts - eta[:, None]))[np.arange(len(eta)), table["y"]]),
    "beta": lambda table, eta, shape: st.beta.logpdf(table["y"], shape * expit(eta), shape * (1.0 - expit(eta))),
}


@pytest.mark.parametrize("likelihood", RESPONSES)
def test_the_log_density_is_the_one_that_is_written_down(likelihood):
    """Correlated slopes, a crossed and a nested grouping, offset and weights: likelihood and every prior, with constants."""
    random = np.random.default_rng(20)
    n = 40
    table = pandas.DataFrame({"x": random.standard_normal(n), "t": random.uniform(1.0, 2.0, n)})
    table["a"], table["b"] = [f"a{one}" for one in np.arange(n) % 4], [f"b{one}" for one in random.permutation(n) % 3]
    table["n"] = random.integers(2, 6, n)
    responses = {"gaussian": 3.0 + random.standard_normal(n), "binomial": random.integers(0, 3, n)}
    responses |= {"bernoulli": np.arange(n) % 2, "ordinal": np.arange(n) % 3, "beta": random.uniform(0.1, 0.9, n)}
    table["y"] = responses.get(likelihood, random.poisson(2.0, n))
    response = {"binomial": "prop(y, n)", "ordinal": "grade"}.get(likelihood, "y")
    table["grade"] = pandas.Categorical.from_codes(table["y"].astype(int) % 3, ["low", "middle", "high"], ordered=True)
    formula = f"{response} ~ x + offset(t) + (x|a) + (1|b) + (1|a:b)"
    weights = random.uniform(0.5, 2.0, n)
    written = write(read_design(formula, table, likelihood), likelihood, weights, raised=False)
    shaken = lambda leaf: np.asarray(leaf) + 0.3 * random.standard_normal(np.shape(leaf))
    at = jax.tree.map(shaken, written.start)
    angle = 0.4
    at["correlation"]["a"] = np.array([[1.0, 0.0], [np.sin(angle), np.cos(angle)]])
    with jax.enable_x64(True):
        found = sum(np.sum(one) for one in written.target.terms.log_densities(at, (written.target.data, None)))

    names = sorted(set(table["a"] + ":" + table["b"]))
    codes = {"a": table["a"].str[1:].astype(int), "b": table["b"].str[1:].astype(int)}
    codes["a:b"] = (table["a"] + ":" + table["b"]).map(names.index)
    effects, (sd_a, sd_slope, sd_b, sd_ab) = at["effects"], np.exp(at["log_sd"])
    *intercepts, slope = at["fixed"]  # cut points are the intercepts of an ordinal response
    intercept = sum(intercepts)
    eta = intercept + slope * table["x"] + table["t"] + effects["b"][codes["b"]] + effects["a:b"][codes["a:b"]]
    eta = (eta + effects["a"][codes["a"], 0] + effects["a"][codes["a"], 1] * table["x"]).to_numpy()
    unit = table["y"].std(ddof=0) if likelihood == "gaussian" else 1.0
    shape = np.exp(at.get("log_dispersion", 0.0))
    expected = 0.0
    if likelihood == "ordinal":
        steps = at["cut_steps"]
        shape = np.array([-np.inf, steps[0], steps[0] + np.exp(steps[1]), np.inf])
        expected += st.norm.logpdf(steps[0], 0.0, 5.0) + st.norm.logpdf(steps[1], 0.0, 1.5)
    elif "log_dispersion" in at:
        expected += st.norm.logpdf(at["log_dispersion"], np.log(unit), 2.0)
    expected += weights @ RESPONSES[likelihood](table, eta, shape)
    around = abs(table["y"].mean()) if likelihood == "gaussian" else 0.0
    expected += st.norm.logpdf(slope, 0.0, 10.0 * unit / table["x"].std(ddof=0))
    expected += np.sum(st.norm.logpdf(intercepts, 0.0, 10.0 * unit + around))
    expected += np.sum(st.halfnorm.logpdf(np.exp(at["log_sd"]), scale=2.5 * unit) + at["log_sd"])
    correlation = np.sin(angle)
    covariance = np.array([[sd_a**2, correlation * sd_a * sd_slope], [correlation * sd_a * sd_slope, sd_slope**2]])
    expected += np.sum(st.multivariate_normal(np.zeros(2), covariance).logpdf(effects["a"]))
    expected += np.sum(st.norm.logpdf(effects["b"], 0.0, sd_b)) + np.sum(st.norm.logpdf(effects["a:b"], 0.0, sd_ab))
    expected += np.log(0.75 * (1.0 - correlation**2))  # LKJ(2) of two, a density of the correlation
    assert found == pytest.approx(expected, rel=1e-10)


def test_a_mean_next_to_one_is_as_good_as_one_next_to_zero():
    with jax.enable_x64(True):
        of = jax.value_and_grad(lambda eta, y: likelihoods["beta"].log_density(eta, {"y": y}, 1.0))
        np.testing.assert_allclose(of(40.0, 0.25)[0], of(-40.0, 0.75)[0], rtol=1e-12)
        np.testing.assert_allclose(of(40.0, 0.25)[1], -1.0, rtol=1e-12)


@pytest.mark.parametrize("size", [2, 3])
def test_the_prior_of_correlations_adds_up_to_one(size):
    """On the real line, by a sum over a grid: evidences of models with and without correlations can be compared."""
    n = size * (size - 1) // 2
    axis = np.linspace(-7.0, 7.0, 57)
    grid = np.stack(np.meshgrid(*[axis] * n, indexing="ij"), axis=-1).reshape(-1, n)
    prior = OfCorrelation("g", size)
    with jax.enable_x64(True):
        at = lambda real: qd.correlation_cholesky.to_natural(real)
        volume = jax.vmap(qd.correlation_cholesky.log_jacobian)(jnp.asarray(grid))
        values = jax.vmap(lambda real: prior({"correlation.g": at(real)}))(jnp.asarray(grid)) + volume
    assert np.sum(np.exp(values)) * (axis[1] - axis[0]) ** n == pytest.approx(1.0, abs=1e-5)


def test_raised_standard_deviations_are_those_of_highest_likelihood():
    """Against the marginal likelihood of the Gaussian model, maximised by itself."""
    from scipy.optimize import minimize
    from scipy.stats import multivariate_normal

    table = simulated()
    model = MixedModel("y ~ x + (1|group)", hyper="raised").fit(table)
    same = table["group"].to_numpy()[:, None] == table["group"].to_numpy()
    design = np.column_stack([np.ones(96), table["x"]])
    prior = (
        np.diag(
            [
                10.0 * table["y"].std(ddof=0) + abs(table["y"].mean()),
                10.0 * table["y"].std(ddof=0) / table["x"].std(ddof=0),
            ]
        )
        ** 2
    )

    def surprise(logs):
        covariance = design @ prior @ design.T + np.exp(2 * logs[0]) * same + np.exp(2 * logs[1]) * np.eye(96)
        return -multivariate_normal(np.zeros(96), covariance).logpdf(table["y"])

    best = minimize(surprise, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    np.testing.assert_allclose(model.sd_.loc[["1|group", "residual"], "mean"], np.exp(best.x), rtol=1e-3)
    assert model.fit_.bound == pytest.approx(-best.fun, abs=1e-3)
    assert list(model.fixed_.index) == ["Intercept", "x"]
    assert list(model.effects_["1|group"].index) == [f"g{one:02d}" for one in range(12)]
    new = model.predict(pandas.DataFrame({"x": [0.0, 0.0], "group": ["g00", "unseen"]}))
    assert new["sd"][1] > 2.0 * new["sd"][0]


def test_effects_from_different_brackets_do_not_correlate():
    """As in lme4, where (x||group) is short for (1|group) + (0 + x|group)."""
    table = simulated()
    model, written_out = (
        MixedModel(f"y ~ x + {varying}", hyper="raised").fit(table)
        for varying in ("(x||group)", "(1|group) + (0 + x|group)")
    )
    assert model.correlation_ == {}
    assert list(model.sd_.index) == ["1|group", "x|group", "residual"]
    assert "levels: group 12\n" in model.summary()
    pandas.testing.assert_frame_equal(model.sd_, written_out.sd_)
    pandas.testing.assert_frame_equal(model.predict(table), written_out.predict(table))
    design = read_design("y ~ (x|group)", table, "gaussian")
    assert [factor.terms for factor in design.factors] == [("1|group", "x|group")]
    kept = read_design("y ~ (1 + log(x + 9)||group)", table, "gaussian")
    assert [factor.name for factor in kept.factors] == ["group", "group.1"]


def test_levels_are_those_that_have_rows():
    """Classes with names of their own: schools times classes would be many times as many."""
    table = simulated().assign(part=[f"p{row // 4}" for row in range(96)])
    design = read_design("y ~ x + (1|group/part)", table, "gaussian")
    assert [len(factor.levels) for factor in design.factors] == [12, 24]
    assert design.factors[1].levels[:3] == ("g00:p0", "g00:p1", "g01:p2")
    np.testing.assert_array_equal(design.factors[1].index, np.arange(96) // 4)
    new = pandas.DataFrame({"x": 0.0, "group": ["g01", "g00", "g01", "new"], "part": ["p2", "p2", "new", "p0"]})
    of_groups, of_parts = (index for index, _ in read_new_rows(design, new).varying)
    assert list(of_groups) == [1, 0, 1, 12]
    assert of_parts[0] == 2
    assert sorted(of_parts[1:]) == [24, 25, 26]  # none of which has been seen
    numbers = table.assign(group=np.arange(96) // 8)
    as_floats = pandas.DataFrame({"x": 0.0, "group": [3.0, 77.0]})
    (index, _), *_ = read_new_rows(read_design("y ~ x + (1|group)", numbers, "gaussian"), as_floats).varying
    assert list(index) == [3, 12]


def test_what_is_wrong_is_named():
    table = simulated()
    with pytest.raises(ValueError, match=r"group has no value in row 1, .* a level that was not fitted, such as 'new'"):
        read_new_rows(read_design("y ~ (1|group)", table, "gaussian"), pandas.DataFrame({"group": ["g00", None]}))
    kinds = table.assign(kind=np.tile(["a", "b", "c"], 32))
    with pytest.raises(
        ValueError, match=r"needs two categories, and the response has a, b, c; write kind\['c'\] for one"
    ):
        MixedModel("kind ~ x + (1|group)", likelihood="bernoulli").fit(kinds)
    with pytest.raises(ValueError, match="likelihood='gaussian' needs numbers"):
        MixedModel("kind ~ x + (1|group)").fit(kinds)
    assert read_design("kind['c'] ~ x", kinds, "bernoulli").response.sum() == 32.0
    with pytest.raises(ValueError, match="put brackets around what varies"):
        MixedModel("y ~ x + 1|group").fit(table)
    with pytest.raises(ValueError, match=r"\(x\|a\|group\) has more than one bar"):
        MixedModel("y ~ x + (x|a|group)").fit(table)
    with pytest.raises(ValueError, match="x, twice are not told apart"):
        MixedModel("y ~ x + twice + (1|group)").fit(table.assign(twice=2.0 * table["x"]))
    with pytest.raises(ValueError, match=r"incomplete rows. Drop them first, as by table.dropna()"):
        MixedModel("y ~ x + (1|group)").fit(table.assign(x=table["x"].where(table["x"] > -1.0)))
    with pytest.raises(ValueError, match="needs counts"):
        MixedModel("y ~ x + (1|group)", likelihood="poisson").fit(table)
    with pytest.raises(ValueError, match="likelihood='probit'"):
        MixedModel("y ~ x", likelihood="probit").fit(table)
    with pytest.raises(ValueError, match="the fixed effects give the response exactly"):
        MixedModel("y ~ x + (1|group)").fit(table.assign(y=2.0 - 3.0 * table["x"]))
    with pytest.raises(NotFittedError, match=r"call fit\(table\) first"):
        MixedModel("y ~ x").predict(table)


def test_predictions_have_the_index_of_their_table_which_must_have_all_columns():
    table = simulated().assign(kind=np.tile(["a", "b"], 48))
    model = MixedModel("y ~ x + kind + (1|group)", hyper="raised").fit(table)
    late = table[table["x"] > 0.5]
    again = model.predict(late)
    assert list(again.index) == list(late.index)
    pandas.testing.assert_frame_equal(again, model.predict().loc[late.index])
    with pytest.raises(ValueError, match="no column 'group', which the formula asks for"):
        model.predict(table[["x", "kind"]])
    with pytest.raises(ValueError, match=r"levels \(c\) in 'kind' are not present"):
        model.predict(table.assign(kind="c"))
    with pytest.raises(ValueError, match=r"give a pandas.DataFrame"):
        model.predict({"x": [1.0]})


def test_a_long_table_takes_no_square_of_its_rows():
    random = np.random.default_rng(3)
    table = pandas.DataFrame({"y": random.standard_normal(200_000), "x": random.standard_normal(200_000)})
    assert read_design("y ~ x", table, "gaussian").fixed.shape == (200_000, 2)
    with pytest.raises(ValueError, match="not told apart"):
        read_design("y ~ x + z", table.assign(z=2.0 * table["x"]), "gaussian")


def test_ordered_categories_have_cut_points_and_probabilities():
    """Without effects the fit is that of the cumulative logit, whose likelihood is maximised by itself."""
    from scipy.optimize import minimize

    random = np.random.default_rng(4)
    x = random.standard_normal(200)
    latent = 0.8 * x + random.logistic(size=200)
    grade = pandas.cut(latent, [-99.0, -1.0, 0.3, 99.0], labels=["low", "middle", "high"])
    model = MixedModel("grade ~ x", likelihood="ordinal", hyper="raised").fit(
        pandas.DataFrame({"grade": grade, "x": x})
    )
    codes = grade.codes.astype(int)

    def surprise(parameters):
        slope, first, step = parameters
        below = expit(np.array([first, first + np.exp(step)])[:, None] - slope * x)
        shares = np.diff(np.concatenate([np.zeros((1, 200)), below, np.ones((1, 200))]), axis=0)
        return -np.sum(np.log(shares[codes, np.arange(200)]))

    best = minimize(surprise, [0.0, -1.0, 0.0]).x
    assert model.fixed_.loc["x", "mean"] == pytest.approx(best[0], abs=0.05)
    np.testing.assert_allclose(model.cuts_["mean"], [best[1], best[1] + np.exp(best[2])], atol=0.05)
    assert list(model.cuts_.index) == ["low|middle", "middle|high"]
    shares = model.predict(pandas.DataFrame({"x": [-2.0, 2.0]}))[["low", "middle", "high"]].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-9)
    assert shares[0, 0] > 0.5 > shares[1, 0]


def test_counts_with_an_offset_and_what_separates_them():
    random = np.random.default_rng(6)
    table = simulated().assign(exposure=random.uniform(1.0, 3.0, 96))
    table["count"] = random.poisson(np.exp(0.2 + 0.3 * table["x"]) * table["exposure"])
    model = MixedModel("count ~ x + offset(log(exposure)) + (1|group)", likelihood="poisson", hyper="raised").fit(table)
    assert model.fixed_.loc["x", "mean"] == pytest.approx(0.3, abs=0.15)
    assert len(model.plot_effects("1|group").axes[0].get_yticklabels()) == 12
    never = table.assign(never=(table.index < 5).astype(float), count=np.where(table.index < 5, 0, table["count"]))
    with pytest.warns(UserWarning, match="never separate"):
        MixedModel("count ~ never", likelihood="poisson", hyper="raised").fit(never)
    with pytest.raises(ValueError, match="'logarithm' is neither a column"):
        MixedModel("count ~ logarithm(x)", likelihood="poisson").fit(table)


def test_more_effects_than_nested_can_hold_are_said(monkeypatch):
    monkeypatch.setattr("quenched.nesting.few.MOST_INSIDE", 10)
    with pytest.warns(UserWarning, match="Effects and hyperparameters have one Gaussian together"):
        model = MixedModel("y ~ x + (1|group)").fit(simulated())
    assert model.fit_.settings["family"] != "nested"
    assert model.sd_.loc["1|group", "sd"] > 0.0


def test_time_that_is_up_leaves_tables():
    model = MixedModel("y ~ x + (1|group)").fit(simulated(), max_seconds=1e-3)
    assert model.fit_.status == "max_seconds"
    assert np.isfinite(model.fixed_.to_numpy()).all()
    with pytest.raises(ValueError, match="max_seconds=-1"):
        MixedModel("y ~ x + (1|group)").fit(simulated(), max_seconds=-1)
