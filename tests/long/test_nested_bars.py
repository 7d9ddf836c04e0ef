"""Nested fits on problems with published answers, and on a log density of which no terms are known."""

import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln

import quenched as qd
from long.nesting.test_nested import START, TERMS, Y, exact, normal, written_out


def test_a_plain_log_density_gives_what_its_terms_give():
    truth = exact()
    plain = qd.nested(written_out, START, outer=["log_sd"], data=Y, progress=False)
    for name in ("log_sd", "level"):
        mean, sd = truth[name]
        assert plain.mean[name] == pytest.approx(mean, abs=0.05 * sd)
        assert plain.sd[name] == pytest.approx(sd, rel=0.05)


def test_laplace_inside_is_exact_for_a_gaussian_likelihood():
    truth = exact()
    fit = qd.baselines.nested_laplace(TERMS, START, outer=["log_sd"], progress=False)
    assert fit.mean["log_sd"] == pytest.approx(truth["log_sd"][0], abs=0.03)
    assert fit.settings["log_evidence"] == pytest.approx(truth["evidence"], abs=0.03)


def of_mating(seen, row):
    predictor = seen["beta"] + seen["female"] + seen["male"]
    return row * predictor - jnp.logaddexp(0.0, predictor)


def of_females(seen):
    return normal(seen["female"], 0.0, jnp.exp(seen["log_sd"][0]))


def of_males(seen):
    return normal(seen["male"], 0.0, jnp.exp(seen["log_sd"][1]))


def of_fixed(seen):
    return normal(seen["beta"], 0.0, jnp.sqrt(1000.0))


def of_precisions(seen):
    """Gamma(1, rate 0.622) for both precisions."""
    precision = jnp.exp(-2.0 * seen["log_sd"])
    return jnp.sum(jnp.log(0.622) - 0.622 * precision + jnp.log(2.0 * precision))


def test_salamander_is_nearer_to_nuts_than_published_nested_laplace():
    """Experiment 1. NUTS (2 x 5,000): 1.416, 0.838; Fong, Rue and Wakefield (2010) by nested Laplace: 1.29, 0.78."""
    pandas = pytest.importorskip("pandas")
    file = Path(os.environ.get("QUENCHED_DATA", "")) / "mixed" / "salamander.csv"
    if not file.exists():
        pytest.skip("needs the salamander data")
    table = pandas.read_csv(file).query("Experiment == 1")
    female, male = ((table[name] == "W").to_numpy(float) for name in ("TypeF", "TypeM"))
    design = np.stack([np.ones(len(table)), female, male, female * male], axis=1)
    codes = lambda name: pandas.Categorical(table[name]).codes.astype(int)
    target = qd.sum_of(
        qd.each(
            of_mating,
            table["Mate"].to_numpy(float),
            sees={"beta": qd.dot(design), "female": codes("Female"), "male": codes("Male")},
        ),
        qd.each(of_females, sees={"female": qd.each_entry, "log_sd": qd.whole}),
        qd.each(of_males, sees={"male": qd.each_entry, "log_sd": qd.whole}),
        qd.each(of_fixed, sees={"beta": qd.each_entry}),
        qd.each(of_precisions, sees={"log_sd": qd.whole}),
    )
    start = {"beta": np.zeros(4), "female": np.zeros(20), "male": np.zeros(20), "log_sd": np.zeros(2)}
    fit = qd.nested(target, start, progress=False)
    sds = np.exp(fit.sample(20_000)["log_sd"]).mean(axis=0)
    assert np.all(np.abs(sds - [1.416, 0.838]) < np.abs(np.array([1.29, 0.78]) - [1.416, 0.838]))
    np.testing.assert_allclose(fit.sd["beta"], [0.78, 1.11, 0.82, 1.16], rtol=0.06)


def of_plate(seen, row):
    predictor = seen["beta"] + seen["plate"]
    ways = gammaln(row["n"] + 1.0) - gammaln(row["r"] + 1.0) - gammaln(row["n"] - row["r"] + 1.0)
    return ways + row["r"] * predictor - row["n"] * jnp.logaddexp(0.0, predictor)


def of_precision(seen):
    """Gamma(1/2, rate 0.0164) for the precision."""
    log_precision = -2.0 * seen["log_sd"]
    return 0.5 * log_precision - 0.0164 * jnp.exp(log_precision)


def test_seeds_as_published():
    """Nested Laplace of Fong, Rue and Wakefield (2010): -0.389 ± 0.173, -0.351 ± 0.221, 1.033 ± 0.212; sd 0.315 ± 0.125."""
    file = Path(os.environ.get("QUENCHED_DATA", "")) / "mixed" / "Seeds.txt"
    if not file.exists():
        pytest.skip("needs the seeds data")
    table = np.genfromtxt(file, names=True)
    design = np.stack([np.ones(21), table["x1"], table["x2"]], axis=1)
    target = qd.sum_of(
        qd.each(of_plate, {"r": table["r"], "n": table["n"]}, sees={"beta": qd.dot(design), "plate": np.arange(21)}),
        qd.each(
            lambda seen: normal(seen["plate"], 0.0, jnp.exp(seen["log_sd"])),
            sees={"plate": qd.each_entry, "log_sd": qd.whole},
        ),
        qd.each(lambda seen: normal(seen["beta"], 0.0, jnp.sqrt(1000.0)), sees={"beta": qd.each_entry}),
        qd.each(of_precision, sees={"log_sd": qd.whole}),
    )
    start = {"beta": np.zeros(3), "plate": np.zeros(21), "log_sd": -0.5}
    fit = qd.baselines.nested_laplace(target, start, outer=["log_sd"], progress=False)
    np.testing.assert_allclose(fit.mean["beta"], [-0.389, -0.351, 1.033], atol=0.01)
    np.testing.assert_allclose(fit.sd["beta"], [0.173, 0.221, 0.212], rtol=0.05)
    sds = np.exp(fit.sample(20_000)["log_sd"])
    assert (sds.mean(), sds.std()) == pytest.approx((0.315, 0.125), abs=0.01)


def of_return(seen, y):
    log_variance = seen["state"] + seen["level"]
    return -0.5 * (jnp.log(2.0 * jnp.pi) + log_variance + y**2 * jnp.exp(-log_variance))


def of_step(seen):
    before, now = seen["state"]
    return normal(now, jnp.tanh(seen["turn"]) * before, jnp.exp(seen["log_noise"]))


def of_first(seen):
    return normal(seen["state"], 0.0, jnp.exp(seen["log_noise"]) / jnp.sqrt(1.0 - jnp.tanh(seen["turn"]) ** 2))


def of_volatility(seen):
    """(1 + persistence) / 2 has Beta(20, 1.5), the noise a half-normal of scale 1."""
    persistence = jnp.tanh(seen["turn"])
    share = 0.5 * (1.0 + persistence)
    beta = 19.0 * jnp.log(share) + 0.5 * jnp.log1p(-share) + jnp.log1p(-(persistence**2))
    return beta + normal(jnp.exp(seen["log_noise"]), 0.0, 1.0) + seen["log_noise"]


def test_stochastic_volatility_has_the_sds_of_nuts():
    """500 states. NUTS (NumPyro, non-centred, 4 x 2,000): persistence, noise and level 0.9438, 0.2320, -1.158, sds below."""
    random, n = np.random.default_rng(20240815), 500
    state = np.zeros(n)
    state[0] = random.normal() * 0.25 / np.sqrt(1.0 - 0.95**2)
    for t in range(1, n):
        state[t] = 0.95 * state[t - 1] + 0.25 * random.normal()
    returns = np.exp((state - 1.0) / 2.0) * random.normal(size=n)
    both = {"turn": qd.whole, "log_noise": qd.whole}
    target = qd.sum_of(
        qd.each(of_return, returns, sees={"state": np.arange(n), "level": qd.whole}),
        qd.each(of_step, sees={"state": np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), **both}),
        qd.each(of_first, sees={"state": np.array([0]), **both}),
        qd.each(of_volatility, sees=both),
        qd.each(lambda seen: normal(seen["level"], 0.0, 3.0), sees={"level": qd.whole}),
    )
    start = {"state": np.zeros(n), "level": 0.0, "turn": 1.5, "log_noise": -1.5}
    samples = qd.nested(target, start, ["turn", "log_noise"], progress=False).sample(20_000)
    found = np.stack([np.tanh(samples["turn"]), np.exp(samples["log_noise"]), samples["level"]])
    sds = np.array([0.02984, 0.06366, 0.2387])
    np.testing.assert_allclose(found.std(axis=1), sds, rtol=0.1)
    np.testing.assert_allclose((found.mean(axis=1) - [0.9438, 0.2320, -1.158]) / sds, 0.0, atol=0.1)


def of_response(seen, row):
    return normal(row["y"], seen["mean"] + seen["level"] + seen["slope"] * row["x"], jnp.exp(seen["log_noise"]))


def of_spreads(seen):
    return jnp.sum(normal(jnp.exp(seen["log_sd"]), 0.0, 1.0) + seen["log_sd"])


def test_varying_slopes_have_the_sds_of_nuts():
    """30 groups of 6. NUTS (NumPyro, non-centred, 4 x 2,000): sds of levels and slopes 0.308 and 0.378, noise 1.071.

    The sds of logarithms, which have long tails, are those of the exact marginal likelihood on a grid.
    """
    random = np.random.default_rng(1002)
    group = np.repeat(np.arange(30), 6)
    x, levels, slopes = random.normal(size=180), random.normal(size=30) * 0.5, random.normal(size=30) * 0.3
    y = 1.0 + levels[group] + (0.5 + slopes[group]) * x + random.normal(size=180)
    design = np.stack([np.ones(180), x], axis=1)
    target = qd.sum_of(
        qd.each(
            of_response,
            {"y": y, "x": x},
            sees={"mean": qd.dot(design), "level": group, "slope": group, "log_noise": qd.whole},
        ),
        qd.each(
            lambda seen: normal(seen["level"], 0.0, jnp.exp(seen["log_sd"][0])),
            sees={"level": qd.each_entry, "log_sd": qd.whole},
        ),
        qd.each(
            lambda seen: normal(seen["slope"], 0.0, jnp.exp(seen["log_sd"][1])),
            sees={"slope": qd.each_entry, "log_sd": qd.whole},
        ),
        qd.each(lambda seen: normal(seen["mean"], 0.0, 5.0), sees={"mean": qd.each_entry}),
        qd.each(of_spreads, sees={"log_sd": qd.whole}),
        qd.each(
            lambda seen: normal(jnp.exp(seen["log_noise"]), 0.0, 2.0) + seen["log_noise"], sees={"log_noise": qd.whole}
        ),
    )
    start = {
        "level": np.zeros(30),
        "slope": np.zeros(30),
        "mean": np.zeros(2),
        "log_noise": 0.0,
        "log_sd": np.full(2, -0.7),
    }
    samples = qd.nested(target, start, ["log_sd", "log_noise"], progress=False).sample(20_000)
    logs = np.column_stack([samples["log_sd"], samples["log_noise"]])
    np.testing.assert_allclose(logs.std(axis=0), [0.7016, 0.6693, 0.0645], rtol=0.1)
    found = np.exp(logs)
    sds = np.array([0.1433, 0.1717, 0.0685])
    np.testing.assert_allclose(found.std(axis=0), sds, rtol=0.1)
    np.testing.assert_allclose((found.mean(axis=0) - [0.3083, 0.3778, 1.0709]) / sds, 0.0, atol=0.15)
    np.testing.assert_allclose(samples["mean"].std(axis=0), [0.1046, 0.1268], rtol=0.1)
