"""Jaakkola and Jordan's method against its equations written out, and against the evidence by brute force."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, logsumexp

from quenched.models.linear_predictors import Design, View, site_posterior
from quenched.paper.rivals import jaakkola_jordan
from quenched.paper.rivals.best_gaussian import logistic_problem
from quenched.paper.rivals.jaakkola_jordan import quadratic_coefficient


def problem(n_items, n_weights, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_items, n_weights))
    labels = rng.random(n_items) < expit(1.5 * features @ rng.normal(size=n_weights))
    return features, labels.astype(float)


def log_evidence(features, labels, prior_precision):
    """One or two weights: a sum over a fine grid, exact to many digits for a smooth integrand."""
    line = np.linspace(-12, 12, 401) / np.sqrt(prior_precision)
    step = line[1] - line[0]
    weights = np.stack(np.meshgrid(*[line] * features.shape[1], indexing="ij"), axis=-1)
    weights = weights.reshape(-1, features.shape[1])
    log_joint = log_expit((2 * labels - 1) * (weights @ features.T)).sum(axis=1)
    log_joint += 0.5 * features.shape[1] * np.log(prior_precision / (2 * np.pi))
    log_joint -= 0.5 * prior_precision * (weights**2).sum(axis=1)
    return logsumexp(log_joint) + features.shape[1] * np.log(step)


def plain_round(features, labels, tightness, prior_precision):
    """One EM round as printed, with inverses: posterior for this ξ, its bound, and the next ξ."""
    curvature = (expit(tightness) - 0.5) / (2 * tightness)
    n_weights = features.shape[1]
    precision = prior_precision * np.eye(n_weights) + 2 * (features.T * curvature) @ features
    covariance = np.linalg.inv(precision)
    mean = covariance @ features.T @ (labels - 0.5)
    bound = 0.5 * np.linalg.slogdet(covariance)[1] + 0.5 * n_weights * np.log(prior_precision)
    bound += 0.5 * mean @ precision @ mean
    bound += np.sum(log_expit(tightness) - tightness / 2 + curvature * tightness**2)
    second_moment = covariance + np.outer(mean, mean)
    return mean, covariance, bound, np.sqrt(np.einsum("ni,ij,nj->n", features, second_moment, features))


@pytest.mark.parametrize("n_weights", [1, 2])
@pytest.mark.parametrize("prior_precision", [0.05, 1.0, None])
def test_bound_is_below_the_evidence_and_near_it(n_weights, prior_precision):
    features, labels = problem(25, n_weights)
    fit = jaakkola_jordan(features, labels, prior_precision=prior_precision)
    evidence = log_evidence(features, labels, fit.prior_precision)
    assert fit.converged
    assert evidence - 2.0 < fit.bound < evidence


@pytest.mark.parametrize("shape", [(30, 4), (8, 20)], ids=["tall", "wide"])
def test_one_round_equals_the_hand_calculation(shape):
    features, labels = problem(*shape)
    tightness = np.sqrt(np.sum(features**2, axis=1) / 0.7)  # the prior's
    _, _, first_bound, tightness = plain_round(features, labels, tightness, 0.7)
    mean, covariance, bound, _ = plain_round(features, labels, tightness, 0.7)
    fit = jaakkola_jordan(features, labels, prior_precision=0.7, max_rounds=1)
    np.testing.assert_allclose(fit.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(fit.covariance, covariance, atol=1e-10)
    np.testing.assert_allclose(fit.history, [first_bound, bound], rtol=1e-10)
    assert (fit.n_rounds, fit.converged, fit.bound) == (1, False, fit.history[-1])


@pytest.mark.parametrize("shape", [(60, 5), (12, 30)], ids=["tall", "wide"])
def test_extrapolation_ends_where_plain_rounds_end(shape):
    features, labels = problem(*shape)
    fit = jaakkola_jordan(features, labels)
    tightness, prior_precision = np.ones(shape[0]), 1.0
    for _ in range(4000):
        mean, covariance, bound, tightness = plain_round(features, labels, tightness, prior_precision)
        prior_precision = shape[1] / (mean @ mean + np.trace(covariance))
    assert fit.converged
    assert fit.prior_precision == pytest.approx(prior_precision, rel=1e-5)
    assert fit.bound == pytest.approx(bound, abs=1e-8)
    np.testing.assert_allclose(fit.mean, mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("prior_precision", [None, 1e-3, 10.0])
@pytest.mark.parametrize("shape", [(80, 6), (15, 40)], ids=["tall", "wide"])
def test_bound_never_falls(shape, prior_precision):
    fit = jaakkola_jordan(*problem(*shape), prior_precision=prior_precision)
    assert fit.converged
    assert len(fit.history) == fit.n_rounds + 1 > 3
    assert np.all(np.diff(fit.history) >= -1e-10)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_learned_prior_precision_is_the_best(factor):
    features, labels = problem(50, 5)
    fit = jaakkola_jordan(features, labels)
    other = jaakkola_jordan(features, labels, prior_precision=fit.prior_precision * factor)
    assert other.bound < fit.bound - 1e-4


def test_quadratic_coefficient_and_its_limit_at_zero():
    assert quadratic_coefficient(np.zeros(1))[0] == 0.125
    tightness = np.array([1e-3, 0.5, 3.0, 800.0])
    np.testing.assert_allclose(quadratic_coefficient(tightness), (expit(tightness) - 0.5) / (2 * tightness), rtol=1e-12)
    below, above = quadratic_coefficient(np.array([0.99999e-4, 1.00001e-4]))
    assert below == pytest.approx(above, rel=1e-12)


def test_a_row_of_zeros_costs_one_coin_toss():
    """Its ξ is zero, where λ takes its limit."""
    features, labels = problem(20, 3)
    fit = jaakkola_jordan(features, labels, prior_precision=1.0)
    more = jaakkola_jordan(np.vstack([features, np.zeros(3)]), np.append(labels, 1.0), prior_precision=1.0)
    assert more.bound == pytest.approx(fit.bound - np.log(2), abs=1e-9)
    np.testing.assert_allclose(more.mean, fit.mean, atol=1e-8)


def test_dependent_features_under_a_very_weak_prior():
    features, labels = problem(40, 2)
    doubled = np.column_stack([features, features])
    fit = jaakkola_jordan(doubled, labels, prior_precision=1e-18)
    single = jaakkola_jordan(features, labels, prior_precision=2e-18)
    np.testing.assert_allclose(doubled @ fit.mean, features @ single.mean, rtol=1e-5)


def test_the_weights_are_rotated_into_the_span_of_the_features():
    features, labels = problem(40, 2)
    doubled = np.column_stack([features, features])
    design = logistic_problem(doubled, labels, 1.0)[0].design
    assert design.stored.shape == (40, 2)
    np.testing.assert_allclose(design.view.weights(design.stored), doubled, atol=1e-12)


def test_nearly_dependent_features_keep_their_digits():
    """The faint direction is lost if the precision matrix is formed and factorised as it stands."""
    rng = np.random.default_rng(6)
    left, right = np.linalg.qr(rng.normal(size=(30, 2)))[0], np.linalg.qr(rng.normal(size=(2, 2)))[0]
    sizes = np.array([1.0, 1e-7])
    design = Design(View(2), (left * sizes) @ right)
    posterior = site_posterior(design, np.full(30, 0.25), np.zeros(2), np.full(2, 1e-14))
    variances = sizes**2 / (1e-14 + 0.25 * sizes**2)
    np.testing.assert_allclose(posterior.variances, left**2 @ variances, rtol=1e-6)
    assert posterior.n_effective == pytest.approx(0.25 * np.sum(variances), rel=1e-6)


def test_labels_that_ignore_the_features_are_reported():
    features = np.column_stack([np.ones(40), np.tile([1.0, 1.0, -1.0, -1.0], 10)])
    fit = jaakkola_jordan(features, np.tile([0.0, 1.0], 20))
    assert not fit.converged
    assert fit.bound == pytest.approx(-40 * np.log(2), abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.ones(4)}, r"features has shape \(4,\)"),
        ({"features": [[1.0], [np.nan], [0.0], [2.0]]}, r"features is nan at \(1, 0\)"),
        ({"features": np.zeros((4, 2))}, "features are all zero.*give prior_precision"),
        ({"labels": np.ones(3)}, r"labels has shape \(3,\); give a vector of shape \(4,\)"),
        ({"labels": [-1.0, 1.0, 1.0, -1.0]}, r"labels has the value -1.0; give 0 and 1 only"),
        ({"labels": np.ones(4)}, "labels are all 1; give data items of both classes"),
        ({"prior_precision": 0.0}, "prior_precision is 0.0; give a positive number"),
        ({"prior_precision": np.nan}, "prior_precision is nan"),
        ({"max_rounds": 0}, "max_rounds=0"),
        ({"tolerance": -1.0}, "tolerance=-1.0"),
    ],
)
def test_misuse(change, message):
    arguments = {"features": np.array([[1.0], [2.0], [3.0], [5.0]]), "labels": [0, 1, 0, 1]} | change
    with pytest.raises(ValueError, match=message):
        jaakkola_jordan(arguments.pop("features"), arguments.pop("labels"), **arguments)
