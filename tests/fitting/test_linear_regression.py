"""The paper's linear regression (Sec. 3.2): radial basis functions of width 1 and a bias, precisions learned."""

import numpy as np
import pytest

import quenched as qd
from quenched.paper.rivals import exact_linear_regression


def linear(w, features):
    return features @ w


def paper_data(n_weights, n=50, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-6.0, 6.0, n)
    y = 2.0 * np.cos(x) * np.sin(x) - 0.1 * x**2 + 0.2 * generator.standard_normal(n)
    centres = np.linspace(-6.0, 6.0, n_weights - 1)
    return np.concatenate([np.exp(-0.5 * (x[:, None] - centres) ** 2), np.ones((n, 1))], axis=1), y


@pytest.mark.parametrize("n_weights", [8, 21])
def test_exact_inference_and_ours_agree(n_weights):
    features, y = paper_data(n_weights, n=80)
    exact = exact_linear_regression(features, y)
    method = qd.Joint(gradient_tolerance=1e-7)
    target = qd.regression(linear, features, y)
    fit = qd.fit(target, np.zeros(n_weights), draws=2 * n_weights, method=method, progress=False)
    np.testing.assert_allclose(fit.bound, exact.evidence, atol=1e-6)
    np.testing.assert_allclose(fit.hyper["prior_precision"], exact.prior_precision, rtol=1e-5)
    np.testing.assert_allclose(fit.hyper["noise_precision"], exact.noise_precision, rtol=1e-5)
    np.testing.assert_allclose(fit.mean, exact.mean, atol=1e-5 * np.abs(exact.mean).max())
    np.testing.assert_allclose(fit.covariance, exact.covariance, atol=1e-5 * exact.covariance.max())


def test_alternating_agrees_too():
    """Algorithm 1 ends when a round gains less than its tolerance, hence not quite at the optimum."""
    features, y = paper_data(8)
    exact = exact_linear_regression(features, y)
    fit = qd.fit(
        qd.regression(linear, features, y),
        np.zeros(8),
        draws=16,
        method=qd.Alternating(tolerance=1e-8),
        check=2,
        progress=False,
    )
    assert fit.converged
    np.testing.assert_allclose(fit.bound, exact.evidence, atol=1e-4)
    np.testing.assert_allclose(fit.mean, exact.mean, atol=1e-2 * np.abs(exact.mean).max())
    np.testing.assert_allclose(fit.hyper["noise_precision"], exact.noise_precision, rtol=1e-2)


def test_fixed_precisions_stay_fixed():
    features, y = paper_data(8)
    exact = exact_linear_regression(features, y, prior_precision=0.5, noise_precision=20.0)
    target = qd.regression(linear, features, y, prior_precision=0.5, noise_precision=20.0)
    fit = qd.fit(target, np.zeros(8), draws=16, progress=False)
    assert fit.hyper == {"prior_precision": 0.5, "noise_precision": 20.0}
    np.testing.assert_allclose(fit.bound, exact.evidence, atol=1e-6)
    np.testing.assert_allclose(fit.mean, exact.mean, atol=1e-6)


def test_a_model_in_the_order_of_the_paper_is_recognised():
    features, y = paper_data(8)
    ours, paper = (
        qd.fit(qd.regression(f, features, y), np.zeros(8), draws=16, progress=False)
        for f in (linear, lambda x, w: linear(w, x))
    )
    np.testing.assert_allclose(paper.bound, ours.bound, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:draws. 10 draws do not span")
@pytest.mark.parametrize("n_weights", [8, 11])
def test_ten_independent_draws_overfit_and_a_hundred_do_not(n_weights):
    """The figure of the paper in words: the bound on Z rises while the one on Z' falls."""
    features, y = paper_data(n_weights)
    target = qd.regression(linear, features, y)
    options = {"check": 500, "progress": False, "method": qd.Joint(max_evaluations=200)}
    few = qd.fit(target, np.zeros(n_weights), draws=qd.iid(10, n_weights), **options)
    many = qd.fit(target, np.zeros(n_weights), draws=qd.iid(100, n_weights), **options)
    assert few.overfits
    assert "Overfitting to the draws" in few.verdict
    assert "10" in few.verdict
    assert not many.overfits
    assert "verfit" not in many.verdict
    assert few.bound > many.bound
    assert few.check_bound < many.check_bound


def test_fewer_draws_than_weights_are_warned_about():
    features, y = paper_data(11)
    target = qd.regression(linear, features, y)
    with pytest.warns(UserWarning, match="10 draws do not span the 11 coupled coordinates; the posterior stays at"):
        qd.fit(target, np.zeros(11), draws=qd.iid(10, 11), method=qd.Joint(max_evaluations=3), progress=False)


def test_the_history_of_the_monitor_shows_overfitting():
    """Round by round, as in the paper: with S = 10 the two bounds part, with S = 100 they rise together."""
    features, y = paper_data(8)
    target = qd.regression(linear, features, y)
    options = {"method": qd.Alternating(max_rounds=12), "check": 500, "progress": False}
    few = qd.fit(target, np.zeros(8), draws=qd.iid(10, 8, seed=2), **options)
    many = qd.fit(target, np.zeros(8), draws=qd.iid(100, 8, seed=2), **options)
    gaps = few.history.bound - few.history.check_bound
    assert abs(gaps[0]) < 1.0
    assert gaps[-1] > 10.0
    assert np.max(np.abs(many.history.bound - many.history.check_bound)) < 2.0
    assert many.history.check_bound[-1] > few.history.check_bound[-1] + 10.0
    assert (np.diff(few.history.bound) >= -1e-9).all()
    assert (np.diff(few.history.n_evaluations) >= 0).all()
    assert set(few.history["n_draws"]) == {10}
