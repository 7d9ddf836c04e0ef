"""The bound, its gradients and the updates of the precisions, against the paper's formulas in NumPy.

`paper.py` holds them as the paper has them: a loop over the draws, the Jacobian of the model by hand, the
pseudo-inverse of L.
"""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paper_formulas as paper
import quenched as qd
import registry
from quenched.families import Full
from quenched.families.full import from_scale
from quenched.families.triangle import unpack
from quenched.objective import Coordinates, Objective, make_problem
from quenched.targets import Hyper
from quenched.transforms import describe_space

M, N, S = 3, 6, 8


def model(w, x):
    return w[0] * jax.numpy.sin(w[1] * x) + jax.numpy.tanh(w[2] * x)


def random_setting(seed):
    generator = np.random.default_rng(seed)
    x, y = generator.uniform(-2, 2, N), generator.standard_normal(N)
    L = np.tril(generator.standard_normal((M, M)))
    L[np.diag_indices(M)] = np.exp(0.5 * np.diag(L))
    alpha, beta = np.exp(generator.standard_normal(2))
    return generator.standard_normal(M), L, alpha, beta, x, y


def at(mu, L, alpha, beta, x, y, draws, *, profile=False):
    """Bound and gradient in (mean, log diagonal, lower triangle), straight from the objective."""
    space, _ = describe_space(np.zeros(M))
    problem = make_problem(qd.regression(model, x, y), space, None, None)
    member = from_scale(mu, L)
    flat = np.asarray(jax.flatten_util.ravel_pytree(jax.tree.map(np.asarray, member))[0])
    identity = jax.tree.map(np.zeros_like, member)
    hyper = Hyper(np.zeros(0), np.asarray(alpha), np.asarray(beta))
    slope, _ = Objective(problem, draws).slope(Coordinates(identity, np.zeros(0)), flat, hyper, profile=profile)
    return slope


@pytest.mark.parametrize("kind", sorted(registry.DRAWS))
@registry.law
@given(st.integers(0, 2**31))
def test_gradients_equal_the_two_equations(kind, seed):
    mu, L, alpha, beta, x, y = random_setting(seed)
    draws = registry.DRAWS[kind](S, M, seed)
    slope = at(mu, L, alpha, beta, x, y, draws)
    setting = paper.Setting(paper.wave, paper.wave_jacobian, x, y, draws.points)
    of_mu, of_L = paper.gradients(setting, mu, L, alpha, beta)
    of_mean, of_log_diagonal, of_lower = np.split(np.asarray(slope.gradient), [M, 2 * M])
    scale = max(1.0, np.abs(of_L).max())
    np.testing.assert_allclose(of_mean, of_mu, atol=1e-10 * scale)
    np.testing.assert_allclose(of_log_diagonal, np.diag(of_L) * np.diag(L), atol=1e-10 * scale)  # chain rule
    np.testing.assert_allclose(unpack(of_lower, M), np.tril(of_L, -1), atol=1e-10 * scale)
    np.testing.assert_allclose(slope.bound, paper.bound(setting, mu, L, alpha, beta), rtol=1e-10)


@registry.law
@given(st.integers(0, 2**31))
def test_precisions_equal_the_two_formulas(seed):
    mu, L, alpha, beta, x, y = random_setting(seed)
    draws = qd.iid(S, M, seed)
    slope = at(mu, L, alpha, beta, x, y, draws, profile=True)
    prior, noise = paper.updates(paper.Setting(paper.wave, paper.wave_jacobian, x, y, draws.points), mu, L)
    np.testing.assert_allclose(slope.hyper.prior_precision, prior, rtol=1e-12)
    np.testing.assert_allclose(slope.hyper.noise_precision, noise, rtol=1e-12)


@registry.law
@given(st.integers(0, 2**31))
def test_profiling_gives_the_bound_and_gradient_at_the_best_precisions(seed):
    """The envelope theorem: the gradient may be taken with the precisions held where they are best."""
    mu, L, alpha, beta, x, y = random_setting(seed)
    draws = qd.matched(S, M, seed)
    slope = at(mu, L, alpha, beta, x, y, draws, profile=True)
    best = float(slope.hyper.prior_precision), float(slope.hyper.noise_precision)
    setting = paper.Setting(paper.wave, paper.wave_jacobian, x, y, draws.points)
    np.testing.assert_allclose(slope.bound, paper.bound(setting, mu, L, *best), rtol=1e-10)
    for other in ((1.1, 1.0), (0.9, 1.0), (1.0, 1.1), (1.0, 0.9)):
        moved = best[0] * other[0], best[1] * other[1]
        assert paper.bound(setting, mu, L, *moved) < slope.bound
    of_mu, of_L = paper.gradients(setting, mu, L, *best)
    np.testing.assert_allclose(slope.gradient[:M], of_mu, atol=1e-9 * max(1.0, np.abs(of_L).max()))


@pytest.mark.parametrize("family", sorted(registry.FAMILIES))
def test_whitened_coordinates_obey_the_chain_rule(family):
    """The gradient in the coordinates of any reference is the finite difference of the bound there."""
    _mu, _, alpha, beta, x, y = random_setting(3)
    space, _ = describe_space(np.zeros(M))
    problem = make_problem(qd.regression(model, x, y), space, None, None)
    objective = Objective(problem, qd.matched(S, M, 1))
    hyper = Hyper(np.zeros(0), np.asarray(alpha), np.asarray(beta))
    member = registry.random_member(registry.FAMILIES[family](M), M, 2)
    for factor in (None, np.tril(np.ones((M, M)))):
        coordinates = Coordinates(member, np.zeros(0), factor)
        point = 0.1 * np.random.default_rng(0).standard_normal(coordinates.size)
        gradient = np.asarray(objective.slope(coordinates, point, hyper, profile=False)[0].gradient)
        for index in range(coordinates.size):
            step = np.zeros(coordinates.size)
            step[index] = 1e-6
            up, down = (
                float(objective.slope(coordinates, point + sign * step, hyper, profile=False)[0].bound)
                for sign in (1.0, -1.0)
            )
            np.testing.assert_allclose(gradient[index], (up - down) / 2e-6, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("family", sorted(registry.FAMILIES))
def test_a_factor_of_the_mean_moves_the_mean_alone(family):
    """Structured families whiten the mean by a dense factor of the target's covariance, not by their own scale."""
    member = registry.random_member(registry.FAMILIES[family](M), M, 2)
    factor = np.array([[2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [-1.0, 0.5, 1.0]])
    coordinates = Coordinates(member, np.zeros(0), factor)
    flat, unravel = jax.flatten_util.ravel_pytree(jax.tree.map(np.zeros_like, member))
    shift = np.array([1.0, -2.0, 3.0])
    vector = np.asarray(jax.flatten_util.ravel_pytree(unravel(flat).shifted(shift))[0])
    moved, _ = coordinates.read(vector)
    np.testing.assert_allclose(moved.mean, member.mean + factor @ shift, rtol=1e-12)
    np.testing.assert_allclose(moved.covariance, member.covariance, rtol=1e-12)


def test_chunks_add_up_to_the_whole():
    """One program for all draws, or many chunks of which the last is filled up: the same bound and gradient."""
    mu, _L, alpha, beta, x, y = random_setting(5)
    space, _ = describe_space(np.zeros(M))
    target = qd.regression(model, x, y)
    draws = qd.matched(S, M, 1)
    hyper = Hyper(np.zeros(0), np.asarray(alpha), np.asarray(beta))
    coordinates = Coordinates(Full().isotropic(mu, np.full(M, 0.3), (M,)), np.zeros(0))
    found = []
    for most in (S, 4, 3, 1):
        objective = Objective(make_problem(target, space, None, None), draws)
        objective.executor.chunk = most
        found.append(objective.slope(coordinates, np.zeros(coordinates.size), hyper, profile=True)[0])
        assert objective.n_evaluations == S
    for other in found[1:]:
        np.testing.assert_allclose(other.bound, found[0].bound, rtol=1e-12)
        np.testing.assert_allclose(other.gradient, found[0].gradient, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(other.hyper.noise_precision, found[0].hyper.noise_precision, rtol=1e-12)


def test_the_penalty_of_a_general_prior_is_its_exact_kl():
    """Against the mean of log prior - log q over very many draws."""
    generator = np.random.default_rng(0)
    root = generator.standard_normal((M, M))
    mean, covariance = generator.standard_normal(M), root @ root.T + np.eye(M)
    flat = qd.with_gaussian_prior(lambda w: 0.0 * w[0], prior_mean=mean, prior_covariance=covariance)
    fit = qd.fit(flat, np.zeros(M), progress=False)
    # With a likelihood of 1 the posterior is the prior and the evidence is 1.
    np.testing.assert_allclose(fit.bound, 0.0, atol=1e-8)
    np.testing.assert_allclose(fit.check_bound, 0.0, atol=1e-6)
    np.testing.assert_allclose(fit.mean, mean, atol=1e-5)
    np.testing.assert_allclose(fit.covariance, covariance, atol=1e-4)
