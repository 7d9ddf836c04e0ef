"""Nested Laplace against quadrature."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jax.scipy.special import gammaln

import quenched as qd
from long.nesting.test_nested import normal
from quenched.baselines import nested_laplace

COUNTS = np.array([0.0, 3.0, 1.0, 6.0, 2.0, 0.0, 1.0])
START = {"effect": np.zeros(7), "log_sd": 0.0}


def of_count(seen, y):
    return y * seen["effect"] - jnp.exp(seen["effect"]) - gammaln(y + 1.0)


def of_effect(seen):
    return normal(seen["effect"], 0.0, jnp.exp(seen["log_sd"]))


def of_log_sd(seen):
    return normal(seen["log_sd"], 0.0, 0.5)


def written_out(parameters):
    return jnp.sum(of_count(parameters, COUNTS)) + jnp.sum(of_effect(parameters)) + of_log_sd(parameters)


TERMS = qd.sum_of(
    qd.each(of_count, COUNTS, sees={"effect": np.arange(7)}),
    qd.each(of_effect, sees={"effect": qd.each_entry, "log_sd": qd.whole}),
    qd.each(of_log_sd, sees={"log_sd": qd.whole}),
)


def by_quadrature():
    """Log evidence, mean and sd of log_sd, and mean, sd and skewness of the effects."""
    outer, inner = np.linspace(-3.0, 3.0, 301), np.linspace(-12.0, 12.0, 4001)
    log_likelihood = np.array([scipy.stats.poisson.logpmf(y, np.exp(inner)) for y in COUNTS])
    log_weights, moments = [], []
    for log_sd in outer:
        density = np.exp(log_likelihood + scipy.stats.norm.logpdf(inner, 0.0, np.exp(log_sd)))
        mass = np.trapezoid(density, inner, axis=1)
        log_weights.append(np.sum(np.log(mass)) + scipy.stats.norm.logpdf(log_sd, 0.0, 0.5))
        moments.append([np.trapezoid(density * inner**k, inner, axis=1) / mass for k in (1, 2, 3)])
    evidence = np.log(np.trapezoid(np.exp(log_weights), outer))
    weights = np.exp(np.array(log_weights) - max(log_weights))
    weights /= weights.sum()
    first, second, third = np.einsum("t,tki->ki", weights, np.array(moments))
    sd = np.sqrt(second - first**2)
    skewness = (third - 3.0 * first * second + 2.0 * first**3) / sd**3
    mean = weights @ outer
    return evidence, (mean, np.sqrt(weights @ (outer - mean) ** 2)), np.array([first, sd, skewness])


def test_evidence_and_marginals_are_near_those_of_quadrature():
    evidence, (mean, sd), inner = by_quadrature()
    found = {
        kind: nested_laplace(TERMS, START, outer=["log_sd"], design=kind, progress=False)
        for kind in (None, "composite")
    }
    assert found[None].settings["design"] == "grid"
    for fit, near in ((found[None], 0.02), (found["composite"], 0.05)):
        assert fit.settings["log_evidence"] == pytest.approx(evidence, abs=near)
        corrected = fit.settings["corrected"]
        assert corrected["name"] == [*(f"effect[{k}]" for k in range(7)), "log_sd"]
        columns = np.array([corrected[name] for name in ("mean", "sd", "skewness")])
        np.testing.assert_allclose(columns[0, :7], inner[0], atol=0.02)
        np.testing.assert_allclose(columns[1, :7], inner[1], rtol=0.04)
        np.testing.assert_allclose(columns[2, :7], inner[2], atol=0.06 if near == 0.02 else 0.25)
        assert corrected["mean"][7] == pytest.approx(mean, abs=0.02)
        assert corrected["sd"][7] == pytest.approx(sd, rel=0.03 if near == 0.02 else 0.08)
        np.testing.assert_allclose(fit.mean["effect"], inner[0], atol=0.03)
        assert np.all(np.diff([corrected[name] for name in ("5%", "50%", "95%")], axis=0) > 0.0)
    # Without the correction the effects stay on their modes.
    plain = nested_laplace(TERMS, START, outer=["log_sd"], correct=False, progress=False)
    assert "corrected" not in plain.settings
    assert np.abs(plain.mean["effect"] - inner[0]).min() > 0.05
    assert plain.check_bound < found[None].check_bound


def test_a_plain_log_density_gives_what_its_terms_give():
    terms, plain = (
        nested_laplace(target, START, outer=["log_sd"], progress=False).settings for target in (TERMS, written_out)
    )
    assert plain["log_evidence"] == pytest.approx(terms["log_evidence"], abs=1e-6)
    for name in ("mean", "sd", "skewness", "5%"):
        np.testing.assert_allclose(plain["corrected"][name], terms["corrected"][name], atol=1e-6)
