"""mRVM2 against Monte Carlo, the two-class closed form, its own equations, and the iris flowers."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm
from sklearn.datasets import load_iris

from quenched.models import fit_multiclass_rvm
from quenched.models.multiclass_rvm import probit_probability, truncated_moments


def gaussian_kernel(left, right):
    return np.exp(-np.sum((left[:, None] - right[None]) ** 2, axis=-1) / left.shape[1])


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 30)
    inputs = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[labels] + 0.7 * rng.normal(size=(90, 2))
    return gaussian_kernel(inputs, inputs), labels


@pytest.fixture(scope="module")
def iris():
    data = load_iris()
    order = np.random.default_rng(1).permutation(150)
    train, test = order[:100], order[100:]
    inputs = (data.data - data.data[train].mean(axis=0)) / data.data[train].std(axis=0)
    kernel = gaussian_kernel(inputs, inputs[train])
    return kernel[train], data.target[train], kernel[test], data.target[test]


@pytest.mark.parametrize("label", [0, 1, 2])
def test_moments_equal_those_of_truncated_gaussians(label):
    scores = np.array([0.4, -0.3, 1.1])
    y = scores + np.random.default_rng(label).normal(size=(1_000_000, 3))
    inside = y[np.argmax(y, axis=1) == label]
    moments, log_probability = truncated_moments(scores[None], np.array([label]))
    error = inside.std(axis=0) / np.sqrt(len(inside))
    np.testing.assert_array_less(np.abs(moments[0] - inside.mean(axis=0)), 4 * error)
    share = len(inside) / len(y)
    assert np.exp(log_probability[0]) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / len(y)))


@pytest.mark.parametrize("gap", [-200.0, -30.0, -4.0, 0.0, 0.5, 6.0, 200.0])
def test_two_classes_have_a_closed_form_at_any_gap(gap):
    """y_1 − y_0 is N(gap, 2) cut at zero: badly wrong scores must not spoil the moments."""
    scores = np.array([[0.0, gap]])
    moments, log_probability = truncated_moments(scores, np.array([1]))
    standard = gap / np.sqrt(2)
    push = np.exp(norm.logpdf(standard) - log_ndtr(standard)) / np.sqrt(2)
    np.testing.assert_allclose(moments[0], [-push, gap + push], rtol=1e-7, atol=1e-8)
    assert log_probability[0] == pytest.approx(log_ndtr(standard), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 8])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_probabilities_of_all_classes_sum_to_one_before_normalising(n_classes, scale):
    scores = scale * np.random.default_rng(2).normal(size=(50, n_classes))
    total = sum(np.exp(truncated_moments(scores, np.full(50, label))[1]) for label in range(n_classes))
    np.testing.assert_allclose(total, 1, atol=1e-7)


def test_probabilities_match_monte_carlo():
    scores = np.array([[0.4, -0.3, 1.1, 0.0], [3.0, 2.0, -1.0, 2.5]])
    noise = np.random.default_rng(3).normal(size=(400_000, 1, 4))
    winners = np.argmax(scores + noise, axis=2)
    shares = np.array([[np.mean(winners[:, n] == c) for c in range(4)] for n in range(2)])
    probability = probit_probability(scores)
    np.testing.assert_allclose(probability, shares, atol=4 * 0.5 / np.sqrt(400_000))
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-14)


def test_equal_scores_give_equal_probabilities():
    np.testing.assert_allclose(probit_probability(np.full((1, 5), 7.0)), 0.2, rtol=1e-8)


def test_iris(iris):
    kernel, labels, test_kernel, test_labels = iris
    fit = fit_multiclass_rvm(kernel, labels)
    probability = fit.predict_probability(test_kernel)
    assert fit.converged
    assert np.mean(np.argmax(probability, axis=1) == test_labels) >= 0.9
    assert 3 <= len(fit.relevance) <= 15
    assert fit.weights.shape == fit.precisions.shape == (len(fit.relevance), 3)
    # Better than knowing the shares of the classes only: the probabilities mean something.
    assert np.mean(np.log(probability[np.arange(50), test_labels])) > -0.4


def test_samples_that_left_do_not_come_back(blobs):
    sets = [set(fit_multiclass_rvm(*blobs, max_rounds=rounds).relevance) for rounds in (1, 5, 10, 20, 40)]
    assert all(later <= earlier for earlier, later in pairwise(sets))
    assert len(sets[-1]) < len(sets[0])
    fit = fit_multiclass_rvm(*blobs)
    assert np.all(np.diff(fit.n_kept) <= 0)
    assert (len(fit.n_kept), fit.n_kept[-1]) == (fit.n_rounds, len(fit.relevance))


def test_weights_solve_the_printed_equations(blobs):
    kernel, labels = blobs
    fit = fit_multiclass_rvm(kernel, labels, tolerance=1e-4, max_rounds=5000)
    active = kernel[:, fit.relevance]
    wanted, _ = truncated_moments(active @ fit.weights, labels)
    size = np.mean(kernel**2)
    assert fit.converged
    np.testing.assert_allclose(fit.precisions, (1 + 2e-8) / (fit.weights**2 + 2e-8 / size), rtol=1e-6)
    for label in range(3):
        system = active.T @ active + np.diag(fit.precisions[:, label])
        np.testing.assert_allclose(
            np.linalg.solve(system, active.T @ wanted[:, label]), fit.weights[:, label], rtol=1e-3, atol=1e-5
        )


def test_likelihood_rises_from_that_of_a_guess(blobs):
    fit = fit_multiclass_rvm(*blobs)
    assert fit.history[0] == pytest.approx(-90 * np.log(3), rel=1e-8)
    assert fit.history[-1] > fit.history[0] / 2
    last = fit_multiclass_rvm(*blobs, max_rounds=fit.n_rounds - 1)
    probability = last.predict_probability(blobs[0])
    assert fit.history[-1] == pytest.approx(np.sum(np.log(probability[np.arange(90), blobs[1]])), abs=1e-6)


def test_the_size_of_the_kernel_does_not_matter(blobs):
    kernel, labels = blobs
    fit, large = fit_multiclass_rvm(kernel, labels), fit_multiclass_rvm(1000 * kernel, labels)
    np.testing.assert_array_equal(fit.relevance, large.relevance)
    np.testing.assert_allclose(fit.weights, 1000 * large.weights, rtol=1e-6)
    np.testing.assert_allclose(fit.predict_probability(kernel), large.predict_probability(1000 * kernel), atol=1e-8)


def test_renaming_the_classes_renames_the_answer(blobs):
    kernel, labels = blobs
    fit = fit_multiclass_rvm(kernel, labels)
    renamed = fit_multiclass_rvm(kernel, np.array([2, 0, 1])[labels])
    np.testing.assert_allclose(
        renamed.predict_probability(kernel)[:, [2, 0, 1]], fit.predict_probability(kernel), atol=1e-6
    )


def test_a_class_without_samples_is_allowed(blobs):
    kernel, labels = blobs
    fit = fit_multiclass_rvm(kernel, labels, n_classes=4)
    probability = fit.predict_probability(kernel)
    assert (fit.n_classes, probability.shape) == (4, (90, 4))
    assert np.mean(probability[:, 3]) < 0.1


def test_the_last_sample_is_never_dropped(blobs, monkeypatch):
    monkeypatch.setattr("quenched.models.multiclass_rvm._PRUNE_ABOVE", 1e-6)
    assert len(fit_multiclass_rvm(*blobs).relevance) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sample_weight": [1.0, 1.0, 0.0, 1.0]}, "sample_weight has the value 0.0"),
        ({"kernel": np.full((4, 4), np.nan)}, r"kernel is nan at \(0, 0\)"),
        ({"kernel": np.zeros((4, 4))}, "kernel is all zero"),
        ({"labels": [0, 1, 2]}, r"labels has shape \(3,\)"),
        ({"labels": [0, 1, 0.5, 1]}, "labels has the value 0.5; give integers"),
        ({"labels": [0, 1, -1, 1]}, "labels has the value -1.0"),
        ({"labels": [0, 1, 1e300, 1]}, r"labels has the value 1e\+300"),
        ({"labels": [1, 1, 1, 1]}, "labels are all 1; give samples of two"),
        ({"n_classes": 2, "labels": [0, 1, 2, 1]}, "n_classes is 2 but labels has 2"),
        ({"max_rounds": 0}, "max_rounds=0"),
    ],
)
def test_misuse(change, message):
    arguments = {"kernel": np.eye(4), "labels": [0, 1, 0, 1]} | change
    with pytest.raises(ValueError, match=message):
        fit_multiclass_rvm(arguments.pop("kernel"), arguments.pop("labels"), **arguments)


def test_prediction_wants_a_column_per_training_sample(blobs):
    fit = fit_multiclass_rvm(*blobs, max_rounds=3)
    with pytest.raises(ValueError, match="kernel_rows has 2 columns; give one per training sample, 90"):
        fit.predict_probability(np.ones((5, 2)))
