"""What the warped family promises: an invertible map, its density, entropy and moments, and exactness on Gaussians."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

import problems
import quenched as qd
import registry
from quenched.families import Full
from quenched.families.bends import n_bends, terms, unpack_bends
from quenched.families.stretch import quadrature, stretch, unstretch
from quenched.posterior import Posterior

dims = st.sampled_from([1, 4])
seeds = st.integers(0, 2**31)
either = pytest.mark.parametrize("bend", [True, False])


@registry.law
@given(st.floats(-3.0, 3.0))
def test_stretch_is_the_integral_of_its_slope(rate):
    points = np.linspace(-6.0, 6.0, 7)
    values, log_slopes = stretch(points, np.asarray(rate))
    slope = jax.vmap(jax.grad(lambda u: stretch(u, jnp.asarray(rate))[0]))(jnp.asarray(points))
    np.testing.assert_allclose(slope, np.exp(log_slopes), rtol=1e-9)
    assert (np.diff(values) > 0).all()
    nodes, weights = quadrature()
    np.testing.assert_allclose(stretch(nodes, np.asarray(rate))[0] @ weights, 0.0, atol=1e-9)
    np.testing.assert_allclose(unstretch(values, np.asarray(rate)), points, atol=1e-9)


def test_stretch_without_a_rate_is_the_identity():
    points = np.linspace(-6.0, 6.0, 7)
    np.testing.assert_allclose(stretch(points, np.zeros(()))[0], points, atol=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_a_coordinate_bends_with_those_before_it_alone(dim):
    bends = unpack_bends(jnp.ones(n_bends(dim)), dim)
    moved = jax.jacobian(lambda z: terms(z[None])[0] @ bends.T)(jnp.arange(1.0, dim + 1.0))
    np.testing.assert_array_equal(moved != 0, np.tril(np.ones((dim, dim), bool), -1))


@either
@registry.law
@given(dims, seeds)
def test_standardise_inverts_transform(bend, dim, seed):
    member = registry.random_member(qd.Warped(bend=bend), dim, seed)
    z = np.random.default_rng(seed).standard_normal((5, dim))
    np.testing.assert_allclose(member.standardise(member.transform(z)), z, atol=1e-8)
    np.testing.assert_allclose(member.standardise(member.transform(z)[0]), z[0], atol=1e-8)


@either
@registry.law
@given(dims, seeds)
def test_log_slope_is_the_determinant_of_the_jacobian(bend, dim, seed):
    member = registry.random_member(qd.Warped(bend=bend), dim, seed)
    z = np.random.default_rng(seed).standard_normal((5, dim))
    jacobians = jax.vmap(jax.jacobian(lambda row: member.transform(row[None])[0]))(jnp.asarray(z))
    np.testing.assert_allclose(member.log_slope(z), np.linalg.slogdet(jacobians)[1], atol=1e-9)


def test_density_integrates_to_one():
    member = registry.random_member(qd.Warped(), 1, 3, warp=0.3)
    grid = member.mean + np.sqrt(member.variance()) * np.linspace(-20.0, 20.0, 20_001)[:, None]
    total = integrate.trapezoid(np.exp(member.log_density(grid)), grid[:, 0])
    np.testing.assert_allclose(total, 1.0, atol=1e-6)


@either
@registry.law
@given(dims, seeds)
def test_entropy_and_moments_are_those_of_many_samples(bend, dim, seed):
    member = registry.random_member(qd.Warped(bend=bend), dim, seed)
    n = 40_000
    samples = Posterior(member).sample(n, seed)
    entropy = -np.asarray(member.log_density(samples))
    assert abs(entropy.mean() - member.entropy()) < 5.0 * entropy.std() / np.sqrt(n)
    away = np.asarray(member.gaussian.standardise(samples))  # in units in which every coordinate is of size one
    expected = np.linalg.solve(member.gaussian.scale, np.linalg.solve(member.gaussian.scale, member.covariance).T)
    products = away[:, :, None] * away[:, None, :]
    assert (np.abs(away.mean(axis=0)) < 5.0 * away.std(axis=0) / np.sqrt(n)).all()
    assert (np.abs(products.mean(axis=0) - expected) < 6.0 * products.std(axis=0) / np.sqrt(n)).all()
    np.testing.assert_allclose(member.scale @ member.scale.T, member.covariance, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(member.variance(), np.diag(member.covariance), rtol=1e-10)


@registry.law
@given(dims, seeds)
def test_without_a_warp_it_is_the_full_gaussian(dim, seed):
    plain, full = (registry.random_member(family, dim, seed, warp=0.0) for family in (qd.Warped(), Full()))
    points = np.random.default_rng(seed).standard_normal((5, dim))
    np.testing.assert_allclose(plain.transform(points), full.transform(points), atol=1e-12)
    np.testing.assert_allclose(plain.log_density(points), full.log_density(points), rtol=1e-9)
    np.testing.assert_allclose(plain.covariance, full.covariance, atol=1e-10)


@pytest.mark.parametrize("name", ["gaussian(3, 1000)"])
def test_gaussian_posteriors_are_found_exactly(name):
    """The terms of the warp are even, so that mirrored draws see no reason for them."""
    problem = problems.PROBLEMS[name]
    full, warped = problem.fit(family="full"), problem.fit(family="warped", draws=4 * problem.dim + 2)
    for leaf in jax.tree.leaves((warped.posterior.member.skew, warped.posterior.member.bends)):
        np.testing.assert_allclose(leaf, 0.0, atol=1e-7)
    np.testing.assert_allclose(warped.bound, full.bound, atol=1e-8)
    sds = np.sqrt(np.diag(full.covariance))
    np.testing.assert_allclose(warped.covariance / np.outer(sds, sds), full.covariance / np.outer(sds, sds), atol=1e-6)
    np.testing.assert_allclose((warped.posterior.mean - full.posterior.mean) / sds, 0.0, atol=1e-6)


def log_gamma(w, shape):
    """Logarithms of independent gamma variables: skewed to the left, evidence log Γ(shape) each."""
    return jnp.sum(shape * w - jnp.exp(w))


def banana(w):
    return -0.5 * w[0] ** 2 - 0.5 * (w[1] - w[0] ** 2) ** 2 / 0.25


def test_skewed_marginals():
    shape = np.array([0.8, 2.0])
    full, warped = (qd.fit(log_gamma, np.zeros(2), data=shape, family=f, progress=False) for f in ("full", "warped"))
    exact = np.array([stats.loggamma(a).std() for a in shape])
    errors = [np.max(np.abs(fit.sd / exact - 1.0)) for fit in (full, warped)]
    assert errors[1] < 0.5 * errors[0]
    evidence = np.sum(special.gammaln(shape))
    assert evidence - warped.check_bound < 0.25 * (evidence - full.check_bound)


def test_a_banana_is_bent_straight():
    """It lies in the family: the bound is the evidence, 2π · 0.5."""
    top = qd.Joint(gradient_tolerance=1e-4)
    warped = qd.fit(banana, np.zeros(2), family="warped", method=top, progress=False)
    evidence = np.log(2.0 * np.pi * 0.5)
    np.testing.assert_allclose(warped.bound, evidence, atol=5e-3)
    np.testing.assert_allclose(warped.covariance, [[1.0, 0.0], [0.0, 0.25 + 2.0]], atol=0.05)


def test_a_funnel_spreads_with_its_neck():
    neal = lambda w: -0.5 * w[0] ** 2 - 0.5 * w[1] ** 2 * jnp.exp(-w[0]) - 0.5 * w[0] - jnp.log(2.0 * jnp.pi)
    full, warped = (qd.fit(neal, np.zeros(2), family=f, progress=False) for f in ("full", "warped"))
    assert abs(warped.check_bound) < 0.25 * abs(full.check_bound)  # the evidence is one


def test_without_bends_there_are_none():
    warped = qd.fit(banana, np.zeros(2), family=qd.Warped(bend=False), progress=False)
    assert warped.posterior.member.bends.size == 0
    assert warped.bound < np.log(2.0 * np.pi * 0.5) - 0.1


def test_saved_and_resumed(tmp_path):
    fit = qd.fit(banana, np.zeros(2), family="warped", progress=False)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    points = fit.posterior.sample(5)
    np.testing.assert_array_equal(loaded.posterior.log_density(points), fit.posterior.log_density(points))
    again = qd.fit(banana, loaded, family="warped", progress=False)
    assert again.bound >= fit.bound - 1e-6
    assert again.bound <= fit.bound + 1e-3  # it polishes what was left level enough


def test_the_gaussian_comes_back_when_the_warp_follows_its_draws():
    """Too few draws for a funnel with many necks: on fresh draws the Gaussian is better, and is what is returned."""
    funnel = lambda w: -0.5 * w[0] ** 2 / 9.0 - 0.5 * jnp.sum(w[1:] ** 2) * jnp.exp(-w[0]) - 0.5 * 9 * w[0]
    fit = qd.fit(funnel, np.zeros(10), family="warped", draws=20, progress=False, throw=False)
    first, *_, last = fit.history
    assert last._replace(n_evaluations=first.n_evaluations) == first
    assert "this is the Gaussian" in fit.verdict


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"family": "warped", "draws": qd.iid(64, 2)}, "mirrored"),
        ({"family": qd.Warped(bend=True), "dim": 200}, r"bend=False"),
    ],
)
def test_misuse_is_named(options, words):
    dim = options.pop("dim", 2)
    with pytest.raises(ValueError, match=words):
        qd.fit(lambda w: -0.5 * w @ w, np.zeros(dim), progress=False, **options)


def test_a_bend_is_yes_or_no():
    with pytest.raises(ValueError, match="bend"):
        qd.Warped(bend="yes")  # pyright: ignore
