"""Where a fit begins: shrunk until finite, several places when asked, judged by the bound."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gamma

import problems
import quenched as qd


def test_several_starts_find_the_distinct_optima_and_keep_the_best():
    problem = problems.PROBLEMS["two_peaks"]
    alone = problem.fit()
    np.testing.assert_allclose(alone.mean, [-8.0, 0.0], atol=1e-4)  # the peak it stood closer to
    assert alone.optima == ()
    fit = problem.fit(starts=8)
    np.testing.assert_allclose(fit.mean, [8.0, 0.0], atol=1e-4)
    np.testing.assert_allclose(fit.bound, np.log(0.8), atol=1e-6)
    np.testing.assert_allclose([optimum.bound for optimum in fit.optima], np.log([0.8, 0.2]), atol=1e-6)
    np.testing.assert_allclose([optimum.mean for optimum in fit.optima], [[8.0, 0.0], [-8.0, 0.0]], atol=1e-4)
    assert sum(optimum.n_starts for optimum in fit.optima) == 8
    assert "2 distinct optima were found, with bounds -0.22, -1.61; this is the best" in fit.verdict


def test_one_optimum_is_told_once():
    top = qd.Joint(gradient_tolerance=1e-5)
    fit = problems.PROBLEMS["logistic(2)"].fit(starts=3, draws=32, method=top)
    assert len(fit.optima) == 1
    assert fit.optima[0].n_starts == 3
    assert "distinct optima" not in fit.verdict
    np.testing.assert_allclose(fit.bound, problems.PROBLEMS["logistic(2)"].fit(draws=32, method=top).bound, atol=1e-6)


def test_a_start_that_fails_does_not_spoil_the_others():
    """The given one must work; one of the others may fall outside the support."""

    def log_density(w):
        return 4.0 * jnp.log(w[0]) - w[0]  # NaN below zero

    fit = qd.fit(log_density, np.array([2.0]), starts=6, draws=2, seed=1, progress=False)
    assert np.isfinite(fit.bound)
    assert 1 <= sum(optimum.n_starts for optimum in fit.optima) < 6


def test_a_mode_at_infinity_is_not_followed():
    """Centred eight schools: the density grows without bound as tau falls to zero."""
    problem, fit = problems.PROBLEMS["eight_schools"], problems.fitted("eight_schools")
    assert fit.converged
    assert fit.mean["tau"] > 1.0
    assert fit.check_bound > problem.evidence - 2.0


def test_a_log_density_without_finite_hessian_at_the_start_is_fitted():
    """|w|^1.5 has a gradient at zero but no second derivative."""
    fit = qd.fit(lambda w: -jnp.sum(jnp.abs(w) ** 1.5), np.zeros(2), progress=False)
    assert fit.converged
    np.testing.assert_allclose(fit.mean, 0.0, atol=1e-3)
    evidence = 2.0 * np.log(2.0 * gamma(5 / 3))
    assert evidence - 0.1 < fit.check_bound <= evidence + 4.0 * fit.check_error


def test_the_scale_is_shrunk_until_every_draw_is_inside_the_support():
    """A support narrower than the first guess: NaN beyond 0.01 from the start."""

    def log_density(w):
        return jnp.sum(jnp.log(1.0 - (w / 0.01) ** 2))

    fit = qd.fit(log_density, np.zeros(2), draws=16, progress=False)
    assert fit.converged
    assert (fit.sd < 0.01).all()
    assert (fit.sd > 1e-4).all()


def test_alternating_shrinks_its_scale_too():
    log_density = lambda w: jnp.sum(jnp.log(1.0 - (w / 0.01) ** 2))
    fit = qd.fit(log_density, np.zeros(2), draws=16, method=qd.Alternating(max_rounds=3), progress=False)
    assert np.isfinite(fit.history.bound).all()
    assert (fit.sd < 0.01).all()


@pytest.mark.parametrize("distance", [1e2, 1e4])
def test_a_far_start_arrives(distance):
    problem = problems.PROBLEMS["logistic(5)"]
    fit = qd.fit(problem.log_density, np.full(5, distance), data=problem.data, progress=False)
    np.testing.assert_allclose(fit.bound, problems.fitted("logistic(5)").bound, atol=1e-4)
