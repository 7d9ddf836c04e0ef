"""Gaussian targets are found exactly with the fewest draws there can be, however large and badly conditioned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd
import registry

DIMS = [1, 2, 7, 40, 200]
CONDITIONS = [1.0, 1e8]


def relative(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("dim", DIMS)
def test_mean_covariance_and_bound_are_exact(dim, condition):
    problem = problems.gaussian(dim, condition)
    fit = problem.fit(draws=2 * dim)
    assert fit.converged
    assert fit.n_draws == 2 * dim
    assert relative(fit.mean, problem.mean) < 1e-6
    assert relative(fit.covariance, problem.covariance) < 1e-6
    np.testing.assert_allclose(fit.bound, problem.evidence, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(fit.check_bound, problem.evidence, rtol=1e-6, atol=1e-6)
    # In the narrow directions too, which the norms above do not see.
    factor = problem.data["factor"]
    np.testing.assert_allclose(factor @ fit.covariance @ factor.T, np.eye(dim), atol=1e-5)
    np.testing.assert_allclose(factor @ (fit.mean - problem.mean), 0.0, atol=1e-5)


@pytest.mark.parametrize("minimiser", sorted(registry.MINIMISERS))
def test_the_ascent_itself_arrives_from_far_away(minimiser):
    """The start by Newton steps solves a Gaussian alone; from a wrong posterior the minimiser must do it."""
    problem = problems.gaussian(7, 1e2)
    elsewhere = problems.gaussian(7, 1e2, seed=9).fit(draws=14)
    fit = qd.fit(
        problem.log_density,
        elsewhere,
        data=problem.data,
        draws=14,
        method=qd.Joint(minimiser=registry.MINIMISERS[minimiser](), gradient_tolerance=1e-7),
        progress=False,
    )
    assert fit.converged
    assert fit.n_objective_evaluations > 3
    assert relative(fit.mean, problem.mean) < 1e-6
    assert relative(fit.covariance, problem.covariance) < 1e-6
    np.testing.assert_allclose(fit.bound, problem.evidence, atol=1e-6)


def test_standard_deviations_from_1e_minus_4_to_1e5_need_no_help():
    problem = problems.PROBLEMS["scale_mix"]
    fit = problem.fit(draws=2 * problem.dim)
    sds = np.sqrt(np.diag(problem.covariance))
    np.testing.assert_allclose((fit.mean - problem.mean) / sds, 0.0, atol=1e-6)
    np.testing.assert_allclose(fit.covariance / np.outer(sds, sds), problem.covariance / np.outer(sds, sds), atol=1e-6)
    np.testing.assert_allclose(fit.bound, problem.evidence, atol=1e-6)


def test_mixed_scales_that_are_not_gaussian_need_no_help_either():
    """A product of scaled logistic densities, standard deviations from 1e-4 to 1e5: all look alike in their units."""
    scales = np.geomspace(1e-4, 1e5, 6)

    def log_density(w, data):
        z = w / data
        return (-z - 2.0 * jax.nn.softplus(-z) - jnp.log(data)).sum()

    fit = qd.fit(log_density, np.zeros(6), data=scales, family="diagonal", progress=False)
    assert fit.converged
    np.testing.assert_allclose(fit.sd / scales, np.mean(fit.sd / scales), rtol=0.05)
    assert fit.check_bound <= 4.0 * fit.check_error
    assert fit.check_bound > -0.3


def test_the_diagonal_family_finds_the_conditional_deviations():
    """The best diagonal Gaussian in KL(q ‖ p) keeps the mean and has variances 1 / diag(precision)."""
    problem = problems.gaussian(7, 1e2)
    fit = problem.fit(family="diagonal", draws=14)
    precision = problem.data["factor"].T @ problem.data["factor"]
    np.testing.assert_allclose(fit.mean, problem.mean, atol=1e-5)
    np.testing.assert_allclose(fit.sd, np.diag(precision) ** -0.5, rtol=1e-5)


def test_blocks_find_the_conditional_covariance_of_each_block():
    problem = problems.gaussian(7, 1e2)
    fit = problem.fit(family=qd.Blocks([3, 4]), draws=14)
    precision = problem.data["factor"].T @ problem.data["factor"]
    expected = np.zeros((7, 7))
    expected[:3, :3], expected[3:, 3:] = np.linalg.inv(precision[:3, :3]), np.linalg.inv(precision[3:, 3:])
    np.testing.assert_allclose(fit.covariance, expected, atol=1e-5)
    np.testing.assert_allclose(fit.mean, problem.mean, atol=1e-5)


@pytest.mark.parametrize("form", ["isotropic", "general"])
def test_the_exact_kl_form_gives_the_same_answer_as_the_entropy_form(form):
    """A Gaussian prior as part of the log density, or apart from it with its exact KL."""
    problem, generator = problems.gaussian(4, 10.0), np.random.default_rng(0)
    root = generator.standard_normal((4, 4))
    mean, covariance = {
        "isotropic": (np.zeros(4), np.eye(4) / 2.5),
        "general": (generator.standard_normal(4), root @ root.T + np.eye(4)),
    }[form]
    prior = {"prior_precision": 2.5} if form == "isotropic" else {"prior_mean": mean, "prior_covariance": covariance}
    options = {"data": problem.data, "draws": 8, "progress": False}
    apart = qd.fit(qd.with_gaussian_prior(problems.gaussian_log_density, **prior), np.zeros(4), **options)
    precision = problem.data["factor"].T @ problem.data["factor"] + np.linalg.inv(covariance)
    np.testing.assert_allclose(apart.covariance, np.linalg.inv(precision), atol=1e-6)
    # log evidence = log N(m | prior mean, C + prior covariance) + the target's own constants.
    total, away = problem.covariance + covariance, problem.mean - mean
    evidence = problem.evidence - 0.5 * away @ np.linalg.solve(total, away)
    evidence += -0.5 * np.linalg.slogdet(2.0 * np.pi * total)[1]
    np.testing.assert_allclose(apart.bound, evidence, atol=1e-6)
    np.testing.assert_allclose(apart.check_bound, evidence, atol=1e-5)
