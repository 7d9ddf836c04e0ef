"""Hamiltonian chains and bridge sampling against integrals on a grid, from coordinates that do not fit."""

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.paper.rivals import bridge, convergence, hamiltonian


def skewed(w):
    return w[0] - jnp.exp(w[0]) - 0.5 * (w[1] - 0.5 * w[0]) ** 2


def test_means_sds_and_evidence_are_those_of_a_grid():
    side = np.linspace(-14.0, 9.0, 1201)
    x, y = np.meshgrid(side, side, indexing="ij")
    log_density = x - np.exp(x) - 0.5 * (y - 0.5 * x) ** 2
    weights = np.exp(log_density)
    evidence = np.log(weights.sum() * (side[1] - side[0]) ** 2)
    weights /= weights.sum()
    found = hamiltonian(qd.fit(skewed, np.zeros(2), progress=False), chains=8, draws=1500, warm=300)
    assert found.rhat < 1.03
    for axis, values in enumerate((x, y)):
        mean = np.sum(weights * values)
        sd = np.sqrt(np.sum(weights * (values - mean) ** 2))
        assert found.samples[..., axis].mean() == pytest.approx(mean, abs=0.08 * sd)
        assert found.samples[..., axis].std() == pytest.approx(sd, rel=0.08)
    assert found.evidence == pytest.approx(evidence, abs=max(0.02, 5.0 * found.evidence_error))


def test_the_bridge_between_two_gaussians():
    random = np.random.default_rng(0)
    q, p = random.standard_normal(4000), 0.5 + 1.3 * random.standard_normal(4000)
    log_ratio = lambda x: 2.0 - 0.5 * ((x - 0.5) / 1.3) ** 2 - np.log(1.3) + 0.5 * x**2
    assert bridge(log_ratio(p), log_ratio(q)) == pytest.approx(2.0, abs=0.05)


def test_chains_that_stay_apart_are_noticed():
    random = np.random.default_rng(0)
    together = random.standard_normal((4, 400, 1))
    rhat, effective = convergence(together)
    assert rhat < 1.05
    assert effective > 400
    apart, few = convergence(together + np.arange(4)[:, None, None])
    assert apart > 1.5
    assert few < 100
