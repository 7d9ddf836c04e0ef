"""Hyperparameters: raised by gradient, by closed forms, or both at once."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import quenched as qd

Y = np.array([2.0, -1.5, 0.3, 3.1, -2.2, 0.9])


def normal_means(w, data, hyper):
    """y ~ N(w, 1), w ~ N(0, exp(h)): the evidence N(y | 0, 1 + exp(h)) is highest at exp(h) = mean(y²) - 1."""
    prior = norm.logpdf(w, hyper["centre"], jnp.exp(0.5 * hyper["log_variance"]))
    return jnp.sum(norm.logpdf(data, w, 1.0)) + jnp.sum(prior)


def best(y):
    """Where the evidence is highest: the centre at the mean, the variance at what noise does not explain."""
    return np.mean(y), np.log(np.var(y) - 1.0)


def log_evidence(y, centre, log_variance):
    variance = 1.0 + np.exp(log_variance)
    return -0.5 * np.sum((y - centre) ** 2 / variance + np.log(2.0 * np.pi * variance))


HYPER = {"centre": np.asarray(0.0), "log_variance": np.asarray(0.0)}


@pytest.mark.parametrize(
    "method",
    [qd.Joint(gradient_tolerance=1e-6), qd.Alternating(tolerance=1e-9, max_rounds=3000)],
    ids=["joint", "alternating"],
)
def test_gradients_raise_hyperparameters_to_the_known_optimum(method):
    fit = qd.fit(normal_means, np.zeros(6), data=Y, hyper=HYPER, draws=12, method=method, check=2, progress=False)
    centre, log_variance = best(Y)
    assert fit.converged
    np.testing.assert_allclose(fit.hyper["centre"], centre, atol=2e-3)
    np.testing.assert_allclose(fit.hyper["log_variance"], log_variance, atol=5e-3)
    np.testing.assert_allclose(fit.bound, log_evidence(Y, centre, log_variance), atol=1e-5)


def test_the_answer_has_the_structure_of_what_was_given():
    fit = qd.fit(normal_means, np.zeros(6), data=Y, hyper=HYPER, draws=12, progress=False)
    assert set(fit.hyper) == {"centre", "log_variance"}
    assert all(isinstance(value, np.ndarray) and value.shape == () for value in fit.hyper.values())
    assert all(value.dtype == np.float64 for value in fit.hyper.values())


def test_a_prior_precision_and_a_hyperparameter_are_learned_together():
    """y ~ N(w + shift, 1), w ~ N(0, 1 / alpha): shift = mean(y), 1 / alpha = var(y) - 1."""
    target = qd.with_gaussian_prior(lambda w, data, hyper: jnp.sum(norm.logpdf(data, w + hyper["shift"], 1.0)))
    method = qd.Joint(gradient_tolerance=1e-7)
    fit = qd.fit(target, np.zeros(6), data=Y, hyper={"shift": 0.0}, draws=12, method=method, progress=False)
    np.testing.assert_allclose(fit.hyper["prior_precision"], 1.0 / (np.var(Y) - 1.0), rtol=1e-3)
    np.testing.assert_allclose(fit.hyper["hyper"]["shift"], np.mean(Y), atol=1e-3)
    np.testing.assert_allclose(fit.bound, log_evidence(Y, *best(Y)), atol=1e-6)


def test_hyperparameters_may_be_keyword_only():
    def keywords(w, *, data, hyper):
        return normal_means(w, data, hyper)

    fits = [
        qd.fit(function, np.zeros(6), data=Y, hyper=HYPER, draws=12, progress=False)
        for function in (normal_means, keywords)
    ]
    np.testing.assert_allclose(fits[0].bound, fits[1].bound, rtol=1e-12)


def test_a_learned_prior_precision_is_at_its_closed_form():
    target = qd.with_gaussian_prior(lambda w, data: jnp.sum(norm.logpdf(data, w, 1.0)))
    fit = qd.fit(target, np.zeros(6), data=Y, draws=12, method=qd.Joint(gradient_tolerance=1e-5), progress=False)
    moment = np.sum(fit.mean**2) + np.trace(fit.covariance)
    np.testing.assert_allclose(fit.hyper["prior_precision"], 6.0 / moment, rtol=1e-6)
    np.testing.assert_allclose(1.0 / fit.hyper["prior_precision"], np.mean(Y**2) - 1.0, rtol=1e-3)


def test_a_fixed_prior_precision_stays():
    target = qd.with_gaussian_prior(lambda w, data: jnp.sum(norm.logpdf(data, w, 1.0)), prior_precision=4.0)
    fit = qd.fit(target, np.zeros(6), data=Y, draws=12, progress=False)
    assert fit.hyper == {"prior_precision": 4.0}
    np.testing.assert_allclose(fit.mean, Y / 5.0, atol=1e-6)
    np.testing.assert_allclose(fit.bound, log_evidence(Y, 0.0, np.log(0.25)), atol=1e-6)
