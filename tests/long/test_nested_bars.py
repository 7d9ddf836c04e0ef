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
