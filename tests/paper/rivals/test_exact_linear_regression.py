"""Exact linear regression against scikit-learn, and against the density of the targets themselves."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge

from quenched.paper.rivals import exact_linear_regression

SHAPES = {"tall": (60, 7), "square": (30, 30), "wide": (12, 25)}


def problem(n_items, n_weights, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_items, n_weights))
    return features, features @ rng.normal(size=n_weights) * 0.6 + 0.9 * rng.normal(size=n_items)


def log_density_of_targets(features, targets, prior_precision, noise_precision):
    covariance = features @ features.T / prior_precision + np.eye(len(targets)) / noise_precision
    return multivariate_normal(np.zeros(len(targets)), covariance).logpdf(targets)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_posterior_and_evidence_for_given_precisions(shape):
    features, targets = problem(*shape)
    fit = exact_linear_regression(features, targets, prior_precision=1.7, noise_precision=2.3)
    precision = 1.7 * np.eye(shape[1]) + 2.3 * features.T @ features
    np.testing.assert_allclose(fit.covariance @ precision, np.eye(shape[1]), atol=1e-10)
    np.testing.assert_allclose(fit.mean, np.linalg.solve(precision, 2.3 * features.T @ targets), atol=1e-10)
    assert fit.evidence == pytest.approx(log_density_of_targets(features, targets, 1.7, 2.3), abs=1e-9)
    assert (fit.prior_precision, fit.noise_precision, fit.converged) == (1.7, 2.3, True)


@pytest.mark.parametrize("shape", [SHAPES["tall"], SHAPES["square"]], ids=["tall", "square"])
def test_learned_precisions_agree_with_scikit_learn(shape):
    features, targets = problem(*shape)
    fit = exact_linear_regression(features, targets)
    ridge = BayesianRidge(
        alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, fit_intercept=False, tol=1e-12, max_iter=20000
    ).fit(features, targets)
    assert fit.converged
    assert fit.prior_precision == pytest.approx(ridge.lambda_, rel=1e-6)
    assert fit.noise_precision == pytest.approx(ridge.alpha_, rel=1e-6)
    np.testing.assert_allclose(fit.mean, ridge.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(fit.covariance, ridge.sigma_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "given",
    [{}, {"prior_precision": 0.2}, {"noise_precision": 0.4}],
    ids=["both unknown", "noise unknown", "prior unknown"],
)
def test_no_other_precision_has_a_higher_evidence(given):
    features, targets = problem(40, 10, seed=3)
    fit = exact_linear_regression(features, targets, **given)
    assert fit.converged
    grid = np.logspace(-3, 3, 25)
    for prior in [given["prior_precision"]] if "prior_precision" in given else fit.prior_precision * grid:
        for noise in [given["noise_precision"]] if "noise_precision" in given else fit.noise_precision * grid:
            assert log_density_of_targets(features, targets, prior, noise) <= fit.evidence + 1e-9
    nudged = {
        "prior_precision": given.get("prior_precision", fit.prior_precision * 1.05),
        "noise_precision": given.get("noise_precision", fit.noise_precision * 1.05),
    }
    assert exact_linear_regression(features, targets, **nudged).evidence < fit.evidence


@pytest.mark.parametrize("n_faint", [2, 5])
def test_the_higher_of_two_maxima_is_found(n_faint):
    """Strong features want a strong prior, faint ones a weak prior; which wins depends on their number."""
    features = np.diag([1000.0] * 4 + [1.0] * n_faint)
    targets = np.array([10.0] * 4 + [4.0] * n_faint)
    priors = np.logspace(-3, 8, 500)
    evidences = np.array([log_density_of_targets(features, targets, prior, 1.0) for prior in priors])
    peaks = np.flatnonzero((evidences[1:-1] > evidences[:-2]) & (evidences[1:-1] > evidences[2:])) + 1
    assert len(peaks) == 2
    fit = exact_linear_regression(features, targets, noise_precision=1.0)
    assert fit.converged
    assert fit.prior_precision == pytest.approx(priors[np.argmax(evidences)], rel=0.1)


def test_the_noise_of_the_papers_curve_is_recovered():
    rng = np.random.default_rng(1)
    x = rng.uniform(-6, 6, size=200)
    targets = 2 * np.cos(x) * np.sin(x) - 0.1 * x**2 + 0.2 * rng.normal(size=200)
    centres = np.linspace(-6, 6, 40)
    features = np.column_stack([np.exp(-((x[:, None] - centres) ** 2) / 2), np.ones(200)])
    fit = exact_linear_regression(features, targets)
    assert fit.noise_precision**-0.5 == pytest.approx(0.2, rel=0.15)


def test_targets_without_signal_are_reported():
    features = np.column_stack([np.ones(20), np.tile([1.0, -1.0], 10)])
    targets = np.tile([1.0, 1.0, -1.0, -1.0], 5)  # orthogonal to both columns
    fit = exact_linear_regression(features, targets)
    assert not fit.converged
    np.testing.assert_allclose(fit.mean, 0, atol=1e-6)


@pytest.mark.parametrize("shape", [(30, 4), (10, 30)], ids=["exactly linear", "more weights than data"])
def test_targets_without_noise_are_reported(shape):
    features, _ = problem(*shape)
    fit = exact_linear_regression(features, features @ np.ones(shape[1]))
    assert not fit.converged
    np.testing.assert_allclose(features @ fit.mean, features @ np.ones(shape[1]), rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.ones(4)}, r"features has shape \(4,\)"),
        ({"features": np.ones((4, 0))}, r"features has shape \(4, 0\)"),
        ({"features": [[1.0], [np.nan], [0.0], [2.0]]}, r"features is nan at \(1, 0\)"),
        ({"targets": np.ones(3)}, r"targets has shape \(3,\); give a vector of shape \(4,\)"),
        ({"targets": [1.0, 2.0, np.inf, 0.0]}, r"targets is inf at \(2,\)"),
        ({"targets": np.zeros(4)}, "targets are all zero.*give both"),
        ({"features": np.zeros((4, 1))}, "features are all zero.*give prior_precision"),
        ({"prior_precision": -1.0}, "prior_precision is -1.0; give a positive number"),
        ({"noise_precision": 0.0}, "noise_precision is 0.0; give a positive number"),
    ],
)
def test_misuse(change, message):
    arguments = {"features": np.array([[1.0], [2.0], [3.0], [5.0]]), "targets": [1.0, 2.0, 2.5, 4.0]} | change
    with pytest.raises(ValueError, match=message):
        exact_linear_regression(arguments.pop("features"), arguments.pop("targets"), **arguments)
