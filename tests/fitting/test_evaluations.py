"""How many evaluations of the bound L-BFGS needs in whitened coordinates: few, whatever the dimension."""

import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd
from quenched.draws import CheckDraws, Purpose, check_draws, generator


def log_likelihood(w, data):
    scores = data["features"] @ w
    return jnp.sum(data["labels"] * scores - jnp.logaddexp(0.0, scores))


@pytest.mark.parametrize(("dim", "n"), [(5, 40), (20, 200), (50, 400)])
def test_logistic_regression_needs_at_most_25(dim, n):
    fit = problems.logistic_problem(dim, n).fit()
    assert fit.converged
    assert fit.n_objective_evaluations <= 25


@pytest.mark.skipif(
    "QUENCHED_DATA" not in os.environ, reason="QUENCHED_DATA, the folder of the banana data, is not set"
)
def test_logistic_regression_with_401_weights_needs_at_most_40():
    """Banana: one radial basis function per training point and a bias, the prior precision learned."""
    folder = Path(os.environ["QUENCHED_DATA"]) / "banana"
    inputs = np.loadtxt(folder / "banana_train_data_1.asc")
    labels = (np.loadtxt(folder / "banana_train_labels_1.asc") > 0).astype(float)
    squares = np.sum((inputs[:, None] - inputs) ** 2, axis=-1)
    features = np.concatenate([np.exp(-0.5 * squares / 0.5**2), np.ones((len(inputs), 1))], axis=1)
    fit = qd.fit(
        qd.with_gaussian_prior(log_likelihood),
        np.zeros(401),
        data={"features": features, "labels": labels},
        draws=2 * 401,
        progress=False,
    )
    assert fit.converged
    assert fit.n_objective_evaluations <= 40
    np.testing.assert_allclose(fit.hyper["prior_precision"], 401 / fit_second_moment(fit), rtol=1e-4)


def fit_second_moment(fit):
    return fit.posterior.mean @ fit.posterior.mean + np.sum(fit.posterior.variance())


def test_evaluations_are_counted_as_they_happen():
    """Against a host function that counts its own calls; checks are values, not gradients, and do not count."""
    calls = []

    def function(w):
        calls.append(w)
        return -0.25 * float(np.sum(w**4) + np.sum(w**2)), -(w**3) - 0.5 * w

    fit = qd.fit(qd.from_value_and_grad(function), np.ones(2), draws=8, check=2, progress=False)
    assert fit.n_evaluations == len(calls) - 2
    again = qd.fit(qd.from_value_and_grad(function), fit, draws=8, check=2, progress=False)
    assert again.n_evaluations == 8 * (again.n_objective_evaluations + 1)  # once on other draws


@pytest.mark.parametrize(("dim", "kept"), [(3, True), (900, False)])
def test_check_draws_are_made_once_and_are_those_that_a_fit_makes_again(dim, kept):
    """Whether more of them are asked for later, or all at once; beyond what is kept, too."""
    made = CheckDraws(dim, seed=5)
    few, more = (np.concatenate(list(made.batches(n))) for n in (200, 2000))
    np.testing.assert_array_equal(few, more[:200])
    assert (next(iter(made.batches(640))).base is next(iter(made.batches(2560))).base) == kept
    again = check_draws(4000, dim, generator(5, Purpose.CHECK))
    np.testing.assert_array_equal(more, again[:2000])
    np.testing.assert_array_equal(np.concatenate(list(made.batches(4000))), again)


@pytest.mark.parametrize("draws", [16, 150])
def test_more_check_draws_evaluate_only_what_is_new(draws):
    """Uneven weights ask for 2,560 after 640, or 750, of the same posterior."""
    calls = []

    def function(w):
        calls.append(len(w))
        return -2.0 * np.log1p(w @ w / 3.0), -4.0 * w / (3.0 + w @ w)  # long tails: no Gaussian has them

    fit = qd.fit(qd.from_value_and_grad(function), np.ones(2), draws=draws, progress=False)
    assert len(fit.log_ratios) == 2560
    assert len(calls) == fit.n_evaluations + 2560
