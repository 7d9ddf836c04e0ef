"""Laplace's approximation: the mode and its curvature, in the same `Fit`."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

import problems
import quenched as qd
from quenched.trust import Trust


def test_a_gaussian_is_exact():
    problem = problems.gaussian(5, 1e6)
    fit = qd.laplace(problem.log_density, problem.start, data=problem.data, progress=False)
    np.testing.assert_allclose(fit.mean, problem.mean, atol=1e-8)
    np.testing.assert_allclose(fit.covariance, problem.covariance, atol=1e-8)
    np.testing.assert_allclose(fit.bound, problem.evidence, atol=1e-6)
    assert fit.settings["method"] == "Laplace"


def test_the_mode_is_a_mode_and_the_precision_its_hessian():
    """Against SciPy and finite differences."""
    problem = problems.PROBLEMS["logistic(2)"]
    fit = qd.laplace(problem.log_density, problem.start, data=problem.data, progress=False)
    function = lambda w: -problems.numpy_logistic(w[None], problem.data)[0]
    mode = optimize.minimize(function, np.zeros(2), tol=1e-12).x
    np.testing.assert_allclose(fit.mean, mode, atol=1e-5)
    step = 1e-4 * np.eye(2)
    hessian = [
        [
            function(mode + a + b) - function(mode + a - b) - function(mode - a + b) + function(mode - a - b)
            for a in step
        ]
        for b in step
    ]
    np.testing.assert_allclose(np.linalg.inv(fit.covariance), np.array(hessian) / 4e-8, rtol=1e-4)


@pytest.mark.parametrize("name", ["logistic(5)", "poisson", "skew_normal"])
def test_a_fit_is_never_worse_by_the_bound(name):
    problem = problems.PROBLEMS[name]
    draws = qd.matched(64, problem.dim)
    laplace = qd.laplace(problem.log_density, problem.start, data=problem.data, draws=draws, progress=False)
    assert problem.fit(draws=draws).bound >= laplace.bound


def test_a_flat_direction_is_named_and_survived():
    fit = qd.laplace(lambda p: -0.5 * p["seen"] ** 2 + 0.0 * p["flat"], {"seen": 1.0, "flat": 2.0}, progress=False)
    assert "flat (flat)" in fit.verdict
    assert "its standard deviation is a guess" in fit.verdict
    np.testing.assert_allclose(fit.sd["seen"], 1.0, rtol=1e-6)
    assert np.isfinite(fit.covariance).all()


def test_a_saddle_is_named_and_survived():
    """The start is a stationary point that curves upwards along one parameter."""
    log_density = lambda p: -0.5 * p["down"] ** 2 + 2.0 * p["up"] ** 2 - p["up"] ** 4
    fit = qd.laplace(log_density, {"down": 1.0, "up": 0.0}, progress=False)
    assert "up (uphill)" in fit.verdict
    assert np.isfinite(fit.covariance).all()


def test_a_singular_hessian_is_survived():
    """Two parameters of which only the sum matters, and no prior."""
    fit = qd.laplace(lambda w: -0.5 * (w[0] + w[1] - 1.0) ** 2, np.zeros(2), progress=False, throw=False)
    np.testing.assert_allclose(fit.mean.sum(), 1.0, atol=1e-6)
    assert np.isfinite(fit.covariance).all()
    assert "not a maximum in 1 direction" in fit.verdict


@pytest.mark.parametrize(
    "log_density",
    [
        lambda w: 0.0 * w.sum(),
        lambda w: w[0],
        lambda w: -0.5 * (w[0] + w[1] - 1.0) ** 2,
        lambda w: -0.5 * w[0] ** 2 + 2.0 * w[1] ** 2 - w[1] ** 4,
        lambda w: -jnp.sum(jnp.exp(-w)),  # its curvature and its slope vanish together: Newton's steps promise nothing
    ],
    ids=["flat", "rising", "flat along one", "saddle", "levelling off"],
)
def test_what_is_no_maximum_has_not_converged(log_density):
    fit = qd.laplace(log_density, np.zeros(2), progress=False)
    assert fit.status is qd.Status.NO_MAXIMUM
    assert not fit.converged
    assert "Converged" not in fit.verdict
    assert fit.answer.trust is Trust.NEITHER


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7])
def test_a_maximum_far_away_is_one(scale):
    fit = qd.laplace(lambda w: -0.5 * jnp.sum((w - 3.0 * scale) ** 2) / scale**2, np.zeros(2), progress=False)
    assert fit.status is qd.Status.CONVERGED


def test_constraints_and_precisions_work_as_in_fit():
    gamma = qd.laplace(lambda w: 4.0 * jnp.log(w) - 2.0 * w, 1.0, transforms=qd.positive, progress=False)
    # On the log scale: 5 u - 2 exp(u) has its mode at log 2.5 and curvature 5.
    np.testing.assert_allclose(gamma.posterior.mean, np.log(2.5), atol=1e-6)
    np.testing.assert_allclose(gamma.covariance, 1 / 5, rtol=1e-6)
    features = np.random.default_rng(0).standard_normal((30, 2))
    y = features @ np.array([1.0, -2.0]) + 0.3 * np.random.default_rng(1).standard_normal(30)
    target = qd.regression(lambda w, x: x @ w, features, y)
    ours = qd.fit(target, np.zeros(2), progress=False)
    laplace = qd.laplace(target, np.zeros(2), progress=False)  # exact for a linear model
    np.testing.assert_allclose(laplace.mean, ours.mean, atol=2e-2)
    np.testing.assert_allclose(laplace.hyper["noise_precision"], ours.hyper["noise_precision"], rtol=0.1)


def test_a_hessian_that_is_not_finite_is_explained():
    with pytest.raises(qd.FitError, match="second derivatives"):
        qd.laplace(lambda w: -jnp.sum(jnp.abs(w) ** 1.5), np.zeros(2), progress=False)
