"""A dense Gaussian prior: its numbers against SciPy's, and one program for equal priors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import quenched as qd
import registry
from quenched.targets import Hyper
from tracing import Traces

HYPER = Hyper(np.zeros(0), np.ones(()), np.ones(()))


def some_prior(dim, seed):
    generator = np.random.default_rng([seed, dim])
    root = generator.standard_normal((dim, dim)) + dim * np.eye(dim)
    return generator.standard_normal(dim), root @ root.T


def form_of(dim, seed):
    mean, covariance = some_prior(dim, seed)
    return qd.with_gaussian_prior(np.sum, prior_mean=mean, prior_covariance=covariance).make_form(dim)


@registry.law
@given(st.integers(1, 8), st.integers(0, 2**31))
def test_the_log_prior_is_that_of_the_covariance(dim, seed):
    mean, covariance = some_prior(dim, seed)
    points = np.random.default_rng(seed).standard_normal((5, dim))
    expected = stats.multivariate_normal(mean, covariance).logpdf(points)
    np.testing.assert_allclose(form_of(dim, seed).log_prior(points, HYPER), expected, rtol=1e-10)
    centre, precision = form_of(dim, seed).prior(HYPER)
    np.testing.assert_array_equal(centre, mean)
    np.testing.assert_allclose(precision @ covariance, np.eye(dim), atol=1e-10)


@pytest.mark.parametrize("name", sorted(registry.FAMILIES))
@registry.law
@given(st.integers(1, 5), st.integers(0, 2**31))
def test_the_penalty_is_minus_the_divergence(name, dim, seed):
    """KL(q ‖ p) = E log q − E log p, with E log p of a Gaussian by its moments."""
    member = registry.random_member(registry.FAMILIES[name](dim), dim, seed)
    mean, covariance = some_prior(dim, seed)
    away = member.mean - mean
    spread = np.linalg.solve(covariance, member.covariance + np.outer(away, away))
    log_p = -0.5 * (np.trace(spread) + np.linalg.slogdet(2.0 * np.pi * covariance)[1])
    np.testing.assert_allclose(form_of(dim, seed).penalty(member, HYPER), member.entropy() + log_p, rtol=1e-9)


def test_equal_priors_share_programs_and_different_ones_do_not():
    traces = Traces()
    same, again, other = form_of(4, 0), form_of(4, 0), form_of(4, 1)
    assert same is not again

    def program(form, points):
        traces.logger.info("traced")
        return form.log_prior(points, HYPER)

    compiled = jax.jit(program, static_argnums=0)
    for form, n in ((same, 1), (again, 1), (other, 2), (same, 2)):
        compiled(form, jnp.ones((1, 4)))
        assert traces.n == n


def test_the_numbers_of_a_prior_are_read_once():
    """A form is hashed and compared at every call of a compiled program: the numbers may not be looked at again."""
    form, other = form_of(4, 0), form_of(4, 0)
    for one in (form, other):
        object.__setattr__(one.dense, "precision", None)
    assert hash(form) == hash(other)
    assert form == other


def test_a_target_keeps_the_prior_that_it_was_given():
    mean, covariance = np.ones(2), np.eye(2)
    target = qd.with_gaussian_prior(lambda w: -0.0 * jnp.sum(w), prior_mean=mean, prior_covariance=covariance)
    mean[:], covariance[:] = 7.0, 7.0
    form = target.make_form(2)
    assert target.make_form(2) is form
    np.testing.assert_array_equal(form.prior(HYPER)[0], [1.0, 1.0])
    np.testing.assert_array_equal(form.prior(HYPER)[1], np.eye(2))
    with pytest.raises(ValueError, match="read-only"):
        form.prior(HYPER)[1][0, 0] = 3.0
