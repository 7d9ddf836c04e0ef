"""The best Gaussian against dense integration, Monte Carlo, finite differences and a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

from quenched.models.linear_predictors import softplus_expectations
from quenched.paper.rivals import best_gaussian, jaakkola_jordan, logistic_bound


def problem(n_items, n_weights, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_items, n_weights))
    labels = rng.random(n_items) < expit(1.5 * features @ rng.normal(size=n_weights))
    return features, labels.astype(float)


def some_gaussian(n_weights, scale, seed=5):
    rng = np.random.default_rng(seed)
    factor = scale * (np.eye(n_weights) + 0.3 * rng.normal(size=(n_weights, n_weights)))
    return rng.normal(size=n_weights), factor


def dense(function, mean, deviation):
    """E f(x) by the trapezium rule, whose error for these functions is below rounding at this step."""
    step = min(0.1, 0.1 * deviation)
    offset = np.arange(-13 * deviation, 13 * deviation, step)
    density = np.exp(-0.5 * (offset / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
    return np.sum(function(mean + offset) * density) * step


@pytest.mark.parametrize("deviation", [1e-3, 0.08, 0.33, 0.34, 0.55, 0.56, 0.98, 0.99, 1.39, 1.4, 3.0, 30.0, 300.0])
def test_expectations_at_every_width(deviation):
    means = np.array([-60.0, -7.0, -1.0, 0.0, 0.4, 3.0, 25.0])
    loss, miss, slope = softplus_expectations(means, np.full(means.size, deviation**2))
    for index, mean in enumerate(means):
        scale = max(1.0, abs(mean), deviation)
        assert loss[index] == pytest.approx(dense(lambda x: np.logaddexp(0, x), mean, deviation), abs=1e-10 * scale)
        assert miss[index] == pytest.approx(dense(expit, mean, deviation), abs=1e-10)
        assert slope[index] == pytest.approx(dense(lambda x: expit(x) * expit(-x), mean, deviation), abs=1e-10)


def test_expectations_do_not_depend_on_the_block_they_are_in():
    means, variances = np.linspace(-3, 3, 9001), np.linspace(1e-4, 9, 9001)
    whole = np.array(softplus_expectations(means, variances))
    parts = np.array([softplus_expectations(means[i : i + 1], variances[i : i + 1]) for i in (0, 500, 4500, 9000)])
    np.testing.assert_allclose(whole[:, [0, 500, 4500, 9000]], parts[:, :, 0].T, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.2, 3.0], ids=["narrow", "wide"])
def test_bound_equals_monte_carlo(scale):
    features, labels = problem(20, 3)
    mean, factor = some_gaussian(3, scale)
    z = np.random.default_rng(9).normal(size=(200_000, 3))
    weights = mean + z @ factor.T
    log_joint = log_expit((2 * labels - 1) * (weights @ features.T)).sum(axis=1)
    log_joint += 1.5 * np.log(0.8 / (2 * np.pi)) - 0.4 * np.sum(weights**2, axis=1)
    log_posterior = -1.5 * np.log(2 * np.pi) - np.linalg.slogdet(factor)[1] - 0.5 * np.sum(z**2, axis=1)
    terms = log_joint - log_posterior
    bound = logistic_bound(mean, factor @ factor.T, features, labels, 0.8)
    assert bound == pytest.approx(np.mean(terms), abs=4 * np.std(terms) / np.sqrt(terms.size))


@pytest.mark.parametrize("prior_precision", [0.1, 1.0])
def test_bound_is_below_the_evidence_and_closer_than_that_of_jaakkola_and_jordan(prior_precision):
    features, labels = problem(25, 2)
    line = np.linspace(-12, 12, 401) / np.sqrt(prior_precision)
    weights = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    log_joint = log_expit((2 * labels - 1) * (weights @ features.T)).sum(axis=1)
    log_joint += np.log(prior_precision / (2 * np.pi)) - 0.5 * prior_precision * np.sum(weights**2, axis=1)
    evidence = logsumexp(log_joint) + 2 * np.log(line[1] - line[0])
    best = best_gaussian(features, labels, prior_precision=prior_precision)
    rival = jaakkola_jordan(features, labels, prior_precision=prior_precision)
    rival_bound = logistic_bound(rival.mean, rival.covariance, features, labels, prior_precision)
    assert rival.bound < rival_bound < best.bound < evidence


@pytest.mark.parametrize("shape", [(40, 3), (4, 6)], ids=["tall", "wide"])
@pytest.mark.parametrize("prior_precision", [None, 0.01, 2.0])
def test_gradient_vanishes_at_the_best(shape, prior_precision):
    """Finite differences of the bound in the mean, the factor and the log prior precision."""
    features, labels = problem(*shape, seed=4)
    fit = best_gaussian(features, labels, prior_precision=prior_precision)
    factor = np.linalg.cholesky(fit.covariance)
    n_weights = shape[1]

    def bound(move):
        # Moves are in posterior standard deviations, so that one tolerance serves all of them.
        shape_change = np.eye(n_weights) + move[n_weights:-1].reshape(n_weights, n_weights)
        log_change = move[-1] if prior_precision is None else 0.0
        changed = factor @ shape_change
        alpha = fit.prior_precision * np.exp(log_change)
        return logistic_bound(fit.mean + factor @ move[:n_weights], changed @ changed.T, features, labels, alpha)

    moves = 1e-4 * np.eye(n_weights + n_weights**2 + 1)
    gradient = [(bound(move) - bound(-move)) / 2e-4 for move in moves]
    assert fit.converged
    assert fit.bound == pytest.approx(bound(0 * moves[0]), abs=1e-9)
    np.testing.assert_allclose(gradient, 0, atol=2e-7)
    assert all(bound(1e3 * move) < fit.bound for move in moves[:-1])


def test_one_weight_against_a_general_optimiser():
    features, labels = problem(15, 1)
    signs = 2 * labels - 1

    def loss(parameters):
        mean, deviation = parameters[0], np.exp(parameters[1])
        fit = sum(
            dense(log_expit, sign * row * mean, abs(row) * deviation)
            for sign, row in zip(signs, features[:, 0], strict=True)
        )
        divergence = 0.5 * (0.3 * (mean**2 + deviation**2) - 1 - np.log(0.3)) - np.log(deviation)
        return divergence - fit

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    fit = best_gaussian(features, labels, prior_precision=0.3)
    assert fit.bound == pytest.approx(-best.fun, abs=1e-9)
    assert fit.mean[0] == pytest.approx(best.x[0], abs=1e-5)
    assert np.sqrt(fit.covariance[0, 0]) == pytest.approx(np.exp(best.x[1]), abs=1e-5)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_learned_prior_precision_is_the_best(factor):
    features, labels = problem(50, 5)
    fit = best_gaussian(features, labels)
    other = best_gaussian(features, labels, prior_precision=fit.prior_precision * factor)
    assert other.bound < fit.bound - 1e-4
    spread = fit.mean @ fit.mean + np.trace(fit.covariance)
    assert fit.prior_precision == pytest.approx(5 / spread, rel=1e-6)


@pytest.mark.parametrize("prior_precision", [None, 1e-4])
def test_bound_never_falls_on_separable_data(prior_precision):
    features, _ = problem(60, 4)
    fit = best_gaussian(features, features[:, 0] > 0, prior_precision=prior_precision)
    assert fit.converged
    assert fit.bound == fit.history[-1]
    assert len(fit.history) == fit.n_rounds + 1 > 3
    assert np.all(np.diff(fit.history) >= -1e-10)


def test_rounds_that_run_out_are_reported():
    fit = best_gaussian(*problem(30, 4), max_rounds=2)
    assert (fit.n_rounds, fit.converged) == (2, False)


@pytest.mark.parametrize("seed", range(8))
def test_few_data_items_and_a_learned_prior_still_climb(seed):
    """Here the joint step of weights and prior precision often points down and must be split."""
    features, _ = problem(5, 7, seed)
    labels = np.random.default_rng(seed).permutation([0.0, 1.0, 0.0, 1.0, 1.0])
    fit = best_gaussian(features, labels)
    gains = [best_gaussian(features, labels, prior_precision=10.0**power).bound for power in range(-3, 8)]
    assert fit.bound >= max(gains) - 1e-6


def test_labels_that_ignore_the_features_are_reported():
    features = np.column_stack([np.ones(40), np.tile([1.0, 1.0, -1.0, -1.0], 10)])
    assert not best_gaussian(features, np.tile([0.0, 1.0], 20)).converged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": np.ones(3)}, r"mean has shape \(3,\); give a vector of shape \(2,\)"),
        ({"mean": [np.nan, 0.0]}, r"mean is nan at \(0,\)"),
        ({"covariance": np.eye(3)}, r"covariance has shape \(3, 3\); give \(2, 2\)"),
        ({"covariance": -np.eye(2)}, "covariance has eigenvalue -1; give a positive definite"),
        ({"covariance": [[1.0, 0.0], [0.5, 1.0]]}, "covariance is not symmetric"),
        ({"features": np.ones((4, 2, 1))}, r"features has shape \(4, 2, 1\)"),
        ({"labels": [0, 1, 2, 1]}, "labels has the value 2.0; give 0 and 1 only"),
        ({"labels": np.zeros(4)}, "labels are all 0"),
        ({"prior_precision": -2.0}, "prior_precision is -2.0"),
    ],
)
def test_misuse_of_the_bound(change, message):
    arguments = {
        "mean": np.zeros(2),
        "covariance": np.eye(2),
        "features": np.arange(8.0).reshape(4, 2),
        "labels": [0, 1, 0, 1],
        "prior_precision": 1.0,
    } | change
    with pytest.raises(ValueError, match=message):
        logistic_bound(**arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [-1, 1, 1, -1]}, "labels has the value -1.0"),
        ({"labels": np.ones(4)}, "labels are all 1"),
        ({"features": np.full((4, 1), np.inf)}, r"features is inf at \(0, 0\)"),
        ({"prior_precision": 0.0}, "prior_precision is 0.0"),
        ({"max_rounds": 0}, "max_rounds=0"),
    ],
)
def test_misuse_of_the_fit(change, message):
    arguments = {"features": np.arange(4.0)[:, None], "labels": [0, 1, 0, 1]} | change
    with pytest.raises(ValueError, match=message):
        best_gaussian(arguments.pop("features"), arguments.pop("labels"), **arguments)
