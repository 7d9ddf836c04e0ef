"""Moments by importance weights, against quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.diagnostics.importance import weigh
from quenched.trust import reweight


def lopsided(parameters):  # tails lighter than Gaussian, so that weights have a variance
    return jnp.sum(parameters["a"] - parameters["a"] ** 4)


GRID = np.linspace(-4.0, 4.0, 8001)
DENSITY = np.exp(GRID - GRID**4) / np.sum(np.exp(GRID - GRID**4))
MEAN = float(DENSITY @ GRID)
SD = float(np.sqrt(DENSITY @ (GRID - MEAN) ** 2))


@pytest.fixture(scope="module")
def fit():
    return qd.fit(lopsided, {"a": np.zeros((2, 1))}, progress=False)


def by_weights(fit, seed, n=2000):
    with jax.enable_x64(True):
        importance = weigh(fit.origin.problem, fit.posterior.member, fit.origin.hyper, n, seed)
        return reweight(fit.space, fit.mean, fit.sd, importance.samples, importance.weights.weights)


def test_moments_of_the_target_and_their_errors(fit):
    """Over many sets of samples: right on average, and as far off as the errors say."""
    found = [by_weights(fit, seed) for seed in range(60)]
    for name, truth in (("mean", MEAN), ("sd", SD)):
        values = np.array([getattr(each, name)["a"] for each in found]).reshape(60, 2)
        errors = np.array([getattr(each, f"{name}_error")["a"] for each in found]).reshape(60, 2)
        scores = (values - truth) / errors
        assert 0.5 < np.sqrt(np.mean(scores**2)) < 1.5
        assert abs(np.mean(values) - truth) < 0.01
    assert abs(float(fit.sd["a"][0, 0]) / SD - 1.0) > 0.03  # the Gaussian itself is not right


def test_a_posterior_that_is_the_target_is_left_alone():
    gaussian = qd.fit(lambda w: -0.5 * jnp.sum(w**2), np.zeros(3), progress=False)
    same = by_weights(gaussian, 0)
    np.testing.assert_allclose(same.mean, gaussian.mean, atol=1e-6)
    np.testing.assert_allclose(same.sd, gaussian.sd, atol=1e-6)
    assert np.max(same.mean_error) < 1e-6


def test_a_diagnosis_has_them(fit):
    diagnosis = fit.diagnose(progress=False)
    assert diagnosis.reweighted.mean["a"].shape == (2, 1)
    np.testing.assert_allclose(diagnosis.reweighted.mean["a"], MEAN, atol=0.05)
