"""`Alternating` is Algorithm 1 of the paper: round by round against a slow copy in NumPy, and at its fixed point."""

from itertools import islice

import jax.numpy as jnp
import numpy as np
import pytest

import paper_formulas as paper
import problems
import quenched as qd


def wave(w, x):
    return w[0] * jnp.sin(w[1] * x) + jnp.tanh(w[2] * x)


@pytest.fixture(scope="module")
def setting():
    generator = np.random.default_rng(3)
    x = generator.uniform(-2.0, 2.0, 12)
    y = paper.wave([1.0, 1.5, 0.5], x) + 0.1 * generator.standard_normal(12)
    return paper.Setting(paper.wave, paper.wave_jacobian, x, y, qd.iid(12, 3, seed=3).points)


def run(setting, **options):
    """Algorithm 1 as the library has it, on the same draws and from the same start."""
    return qd.fit(
        qd.regression(wave, setting.x, setting.y),
        np.array([0.5, 1.0, 0.2]),
        draws=qd.iid(12, 3, seed=3),
        method=qd.Alternating(**options),
        check=2,
        progress=False,
    )


@pytest.mark.parametrize("steps", [1, 3, 10])
def test_rounds_equal_a_slow_copy(setting, steps):
    """Bound after each of the first rounds, then mean, scale and precisions after the last."""
    n_rounds = 3
    fit = run(setting, steps=steps, max_rounds=n_rounds, tolerance=1e-12)
    expected = list(islice(paper.algorithm_one(setting, [0.5, 1.0, 0.2], n_steps=steps), n_rounds + 1))
    np.testing.assert_allclose(fit.history.bound, [entry[0] for entry in expected], rtol=1e-5)
    _, mu, L, alpha, beta = expected[-1]
    np.testing.assert_allclose(fit.mean, mu, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(fit.posterior.scale, L, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(fit.hyper["prior_precision"], alpha, rtol=1e-3)
    np.testing.assert_allclose(fit.hyper["noise_precision"], beta, rtol=1e-3)


def test_it_starts_as_the_paper_says(setting):
    """L = 0.1 I and both precisions 0.1: the first entry of the history is the bound there."""
    fit = run(setting, max_rounds=1)
    np.testing.assert_allclose(
        fit.history.bound[0], paper.bound(setting, np.array([0.5, 1.0, 0.2]), 0.1 * np.eye(3), 0.1, 0.1), rtol=1e-10
    )
    other = run(setting, max_rounds=1, initial_scale=0.3)
    np.testing.assert_allclose(
        other.history.bound[0], paper.bound(setting, np.array([0.5, 1.0, 0.2]), 0.3 * np.eye(3), 0.1, 0.1), rtol=1e-10
    )


def test_at_its_fixed_point_both_gradients_vanish_and_both_updates_hold(setting):
    fit = run(setting, tolerance=1e-12, max_rounds=400)
    assert fit.converged
    precisions = fit.hyper["prior_precision"], fit.hyper["noise_precision"]
    of_mu, of_L = paper.gradients(setting, fit.mean, fit.posterior.scale, *precisions)
    sds = np.sqrt(np.diag(fit.covariance))
    np.testing.assert_allclose(sds * of_mu, 0.0, atol=1e-3)
    np.testing.assert_allclose(sds[:, None] * np.tril(of_L), 0.0, atol=1e-3)
    np.testing.assert_allclose(precisions, paper.updates(setting, fit.mean, fit.posterior.scale), rtol=1e-6)
    np.testing.assert_allclose(fit.bound, paper.bound(setting, fit.mean, fit.posterior.scale, *precisions), rtol=1e-10)


def test_it_stops_when_a_round_gains_less_than_the_tolerance(setting):
    for tolerance in (1e-1, 1e-4):
        fit = run(setting, tolerance=tolerance)
        gains = np.diff(fit.history.bound)
        assert fit.converged
        assert (gains[:-1] >= tolerance).all()
        assert gains[-1] < tolerance


def test_it_says_when_the_rounds_run_out(setting):
    fit = run(setting, max_rounds=2, steps=1)
    assert fit.status == "max_evaluations"
    assert fit.n_rounds == 3  # the start and two rounds
    assert "raise the limit" in fit.verdict


def test_joint_reaches_at_least_as_high(setting):
    joint = qd.fit(
        qd.regression(wave, setting.x, setting.y),
        np.array([0.5, 1.0, 0.2]),
        draws=qd.iid(12, 3, seed=3),
        progress=False,
    )
    fit = run(setting, tolerance=1e-10, max_rounds=400)
    assert joint.bound >= fit.bound - 1e-5
    assert joint.n_objective_evaluations < 0.2 * fit.n_objective_evaluations


def test_alternating_may_start_where_joint_would():
    """`initial_scale=None`: then a logistic model needs few rounds."""
    problem = problems.PROBLEMS["logistic(2)"]
    near = problem.fit(draws=32, method=qd.Alternating(initial_scale=None), check=2)
    far = problem.fit(draws=32, method=qd.Alternating(), check=2)
    assert near.history.bound[0] > far.history.bound[0] + 0.5
    np.testing.assert_allclose(near.bound, far.bound, atol=1e-3)
