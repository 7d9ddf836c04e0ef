"""Diagnoses of nested fits: errors due to the draws, and verdicts where inner Gaussians suffice and where they do not."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import quenched as qd
from long.nesting.test_nested import START, TERMS
from quenched.nesting import outer_of


def test_a_gaussian_hierarchy_is_trusted(tmp_path):
    fit = qd.nested(TERMS, START, draws=16, progress=False)
    diagnosis = fit.diagnose(progress=False)
    assert fit.answer.trust.words == "Trust means and sds"
    assert fit.verdict == diagnosis.verdict
    assert "Use it as it is." in fit.verdict
    assert diagnosis.at_maximum
    assert diagnosis.optimisation_error < 1e-4
    assert diagnosis.outer is not None
    assert diagnosis.outer.share > 0.95
    # The errors due to 16 draws of the outer parameters are those that other seeds show.
    seeds = [qd.nested(TERMS, START, draws=16, seed=seed, progress=False) for seed in (1, 2, 3, 4)]
    many = qd.nested(TERMS, START, draws=512, progress=False)
    for name in ("log_sd", "level"):
        for of, error in (("mean", diagnosis.mean_error[name]), ("sd", diagnosis.sd_error[name])):
            away = [abs(getattr(one, of)[name] - getattr(many, of)[name]) for one in (fit, *seeds)]
            assert max(away) < 5.0 * error + 2e-3, (name, of)
            assert error < 0.1 * fit.sd[name]
    assert set(diagnosis.mean_error) == set(START)
    assert diagnosis.mean_error["effect"].shape == (6,)
    assert list(diagnosis.linear_response.sd) == ["log_sd"]
    table = fit.summary().to_frame()
    assert table.loc["log_sd", "mean_error"] == pytest.approx(float(diagnosis.mean_error["log_sd"]))
    loaded = qd.load(fit.save(tmp_path / "nested.npz")).attach(TERMS)
    assert outer_of(loaded).bound == pytest.approx(outer_of(fit).bound, abs=1e-7)


def skewed_inside(parameters):
    """Inner parameters whose exponentials are gamma variables of shape 0.3, on a scale that is itself unknown."""
    scaled = parameters["x"] * jnp.exp(-0.3 * parameters["log_scale"])
    inner = jnp.sum(0.3 * scaled - jnp.exp(scaled) - 0.3 * parameters["log_scale"])
    return inner + norm.logpdf(parameters["log_scale"])


def test_inner_parameters_that_are_not_gaussian_are_not_trusted():
    fit = qd.nested(skewed_inside, {"log_scale": 0.0, "x": np.zeros(3)}, outer=["log_scale"], progress=False)
    diagnosis = fit.diagnose(progress=False)
    assert fit.answer.trust.words != "Trust means and sds"
    assert diagnosis.outer is not None
    assert diagnosis.outer.khat < 0.5  # the outer posterior itself is as it should be
    assert "which are not Gaussian given the outer ones" in diagnosis.verdict
    assert "Try qd.nested" not in diagnosis.verdict
    random = np.random.default_rng(5)
    true = np.log(random.gamma(0.3, size=200_000)) * np.exp(0.3 * random.standard_normal(200_000))
    assert fit.sd["x"].max() < 0.9 * true.std()  # and indeed
