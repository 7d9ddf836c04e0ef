"""What every family of Gaussians promises, against SciPy and dense formulas that share no line with it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import problems
import quenched as qd
import registry
from quenched.families import positive_definite
from quenched.families.triangle import pack, packed_size, unpack
from quenched.posterior import Posterior

every_family = pytest.mark.parametrize("name", sorted(registry.FAMILIES))
dims = st.sampled_from([1, 2, 5])
seeds = st.integers(0, 2**31)


def some_member(name, dim, seed):
    return registry.random_member(registry.FAMILIES[name](dim), dim, seed)


def dense_kl(mean, covariance, prior_mean, prior_precision):
    """KL between two Gaussians from eigenvalues of the product, not from Cholesky factors."""
    product = prior_precision @ covariance
    away = mean - prior_mean
    log_ratio = np.sum(np.log(np.linalg.eigvals(product).real))
    return 0.5 * (np.trace(product) + away @ prior_precision @ away - len(mean) - log_ratio)


@every_family
@registry.law
@given(dims, seeds)
def test_transform_pushes_the_identity_to_the_covariance(name, dim, seed):
    """Matched draws have mean 0 and covariance I exactly, so their images have the member's, exactly."""
    member = some_member(name, dim, seed)
    images = np.asarray(member.transform(qd.matched(2 * dim + 2, dim, seed).points))
    np.testing.assert_allclose(images.mean(axis=0), member.mean, atol=1e-10)
    away = images - member.mean
    np.testing.assert_allclose(away.T @ away / len(away), member.covariance, atol=1e-10)
    np.testing.assert_allclose(member.variance(), np.diag(member.covariance), rtol=1e-10)
    np.testing.assert_allclose(member.scale @ member.scale.T, member.covariance, atol=1e-12)


@every_family
@registry.law
@given(dims, seeds)
def test_standardise_inverts_transform(name, dim, seed):
    member = some_member(name, dim, seed)
    z = np.random.default_rng(seed).standard_normal((5, dim))
    np.testing.assert_allclose(member.standardise(member.transform(z)), z, atol=1e-9)


@every_family
@registry.law
@given(dims, seeds)
def test_moving_by_a_member_is_composition(name, dim, seed):
    outer, inner = some_member(name, dim, seed), some_member(name, dim, seed + 1)
    z = np.random.default_rng(seed).standard_normal((5, dim))
    both = outer.moved(inner)
    assert jax.tree.structure(both) == jax.tree.structure(outer)
    np.testing.assert_allclose(both.transform(z), outer.transform(inner.transform(z)), atol=1e-10)


@every_family
@registry.law
@given(dims, seeds)
def test_shifted_moves_the_mean_alone(name, dim, seed):
    member, shift = some_member(name, dim, seed), np.random.default_rng(seed).standard_normal(dim)
    moved = member.shifted(shift)
    np.testing.assert_allclose(moved.mean, member.mean + shift, rtol=1e-12)
    np.testing.assert_array_equal(moved.covariance, member.covariance)


@every_family
@registry.law
@given(dims, seeds)
def test_density_and_entropy_agree_with_scipy(name, dim, seed):
    member = some_member(name, dim, seed)
    reference = stats.multivariate_normal(np.asarray(member.mean), np.asarray(member.covariance))
    points = 2.0 * np.random.default_rng(seed).standard_normal((7, dim))
    np.testing.assert_allclose(member.log_density(points), np.atleast_1d(reference.logpdf(points)), rtol=1e-8)
    np.testing.assert_allclose(member.entropy(), reference.entropy(), rtol=1e-10)
    np.testing.assert_allclose(member.log_determinant(), np.linalg.slogdet(member.scale)[1], atol=1e-10)


@every_family
@registry.law
@given(dims, seeds, st.floats(1e-3, 1e3))
def test_kl_to_an_isotropic_prior(name, dim, seed, precision):
    member = some_member(name, dim, seed)
    expected = dense_kl(np.asarray(member.mean), np.asarray(member.covariance), 0.0, precision * np.eye(dim))
    np.testing.assert_allclose(member.kl_to_isotropic(precision), expected, rtol=1e-9, atol=1e-9)


@every_family
@registry.law
@given(dims, seeds)
def test_kl_to_a_general_prior(name, dim, seed):
    member, prior = some_member(name, dim, seed), some_member("full", dim, seed + 1)
    precision = np.linalg.inv(np.asarray(prior.covariance))
    expected = dense_kl(np.asarray(member.mean), np.asarray(member.covariance), np.asarray(prior.mean), precision)
    np.testing.assert_allclose(member.kl_to_gaussian(prior.mean, precision), expected, rtol=1e-7, atol=1e-8)


@every_family
@registry.law
@given(dims, seeds)
def test_second_moment(name, dim, seed):
    member = some_member(name, dim, seed)
    expected = np.sum(np.asarray(member.mean) ** 2) + np.trace(member.covariance)
    np.testing.assert_allclose(member.second_moment(), expected, rtol=1e-10)


@every_family
def test_member_is_nearest_in_kl(name):
    """No small change of a member's numbers lowers KL(member ‖ the Gaussian it was made for)."""
    dim, generator = 5, np.random.default_rng(0)
    root = generator.standard_normal((dim, dim)) / np.sqrt(dim) + np.eye(dim)
    centre, precision = generator.standard_normal(dim), root @ root.T
    member = registry.FAMILIES[name](dim).member(centre, precision, (dim,))
    flat, unravel = jax.flatten_util.ravel_pytree(jax.tree.map(jnp.asarray, member))
    gradient = jax.grad(lambda vector: unravel(vector).kl_to_gaussian(centre, precision))(flat)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)


@every_family
@registry.law
@given(dims, seeds)
def test_isotropic_member_has_the_standard_deviations_it_was_given(name, dim, seed):
    generator = np.random.default_rng(seed)
    mean, sds = generator.standard_normal(dim), np.exp(generator.standard_normal(dim))
    member = registry.FAMILIES[name](dim).isotropic(mean, sds, (dim,))
    np.testing.assert_allclose(member.mean, mean)
    np.testing.assert_allclose(member.covariance, np.diag(sds**2), atol=1e-14)


@every_family
@registry.law
@given(dims, seeds)
def test_samples_come_from_the_member(name, dim, seed):
    member = some_member(name, dim, seed)
    samples = Posterior(member).sample(4000, seed)
    np.testing.assert_array_equal(samples, Posterior(member).sample(4000, seed))
    away = np.asarray(member.standardise(samples))
    assert np.max(np.abs(away.mean(axis=0))) < 0.08
    np.testing.assert_allclose(away.T @ away / 4000, np.eye(dim), atol=0.13)


@registry.law
@given(st.sampled_from([1, 2, 3, 4, 7]), seeds)
def test_triangles_pack_and_unpack(dim, seed):
    matrix = np.random.default_rng(seed).standard_normal((dim, dim))
    vector = pack(jnp.asarray(matrix))
    assert vector.shape == (packed_size(dim),)
    np.testing.assert_array_equal(unpack(vector, dim), np.tril(matrix, -1))


@registry.law
@given(dims, seeds)
def test_families_nest(dim, seed):
    """A diagonal member is a member of blocks and of full too, and then the bound of any target is the same."""
    generator = np.random.default_rng(seed)
    mean, sds = generator.standard_normal(dim), np.exp(generator.standard_normal(dim))
    target = problems.gaussian(dim, 10.0, seed=3)
    z = qd.matched(2 * dim + 4, dim, seed).points
    bounds = []
    ends = [lambda dim: qd.Blocks([1] * dim), lambda dim: qd.Blocks([dim])]  # as diagonal, and as full
    for make in (*registry.FAMILIES.values(), *ends):
        member = make(dim).isotropic(mean, sds, (dim,))
        points = np.asarray(member.transform(z))
        bounds.append(np.mean([problems.gaussian_log_density(w, target.data) for w in points]) + member.entropy())
    np.testing.assert_allclose(bounds, bounds[0], rtol=1e-12)


@pytest.mark.parametrize("name", ["gaussian(3, 1000)", "logistic(5)"])
def test_larger_families_reach_higher_bounds(name):
    problem = problems.PROBLEMS[name]
    draws = qd.matched(64, problem.dim)
    bounds = [
        problem.fit(family=family, draws=draws).bound for family in ("diagonal", registry.halves(problem.dim), "full")
    ]
    assert bounds[0] < bounds[1] - 1e-4
    assert bounds[1] < bounds[2] - 1e-4


def test_blocks_follow_the_leaves_of_the_parameters():
    """One block per leaf by default: correlations inside a leaf are kept, those between leaves are not."""

    def log_density(parameters):
        a, b = parameters["a"], parameters["b"]
        return -0.5 * (a[0] ** 2 + (a[1] - 0.9 * a[0]) ** 2 + (b - 0.9 * a[0]) ** 2)

    fit = qd.fit(log_density, {"a": np.zeros(2), "b": np.asarray(0.0)}, family=qd.Blocks(), progress=False)
    covariance = fit.covariance
    assert covariance[0, 1] > 0.3
    np.testing.assert_array_equal(covariance[:2, 2], 0.0)


@pytest.mark.parametrize(
    ("precision", "scale"),
    [
        (np.diag([4.0, -9.0]), [0.5, 1 / 3]),  # uphill: its size is used
        (np.diag([4.0, 0.0]), [0.5, None]),  # flat: something finite
        (np.zeros((2, 2)), [None, None]),
        (np.diag([1e8, 1e-10]), [1e-4, 1e5]),
    ],
)
@pytest.mark.parametrize("name", ["full", "diagonal", "blocks"])
def test_any_hessian_gives_a_member(name, precision, scale):
    member = registry.FAMILIES[name](2).member(np.zeros(2), precision, (2,))
    sds = np.sqrt(np.diag(member.covariance))
    assert np.isfinite(sds).all()
    assert (sds > 0).all()
    for found, expected in zip(sds, scale, strict=True):
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@registry.law
@given(st.integers(1, 6), seeds, st.lists(st.floats(-4, 4), min_size=6, max_size=6))
def test_positive_definite_does_not_depend_on_units(dim, seed, exponents):
    root = np.random.default_rng(seed).standard_normal((dim, dim)) + 2.0 * np.eye(dim)
    units = 10.0 ** np.array(exponents[:dim])
    plain, scaled = (root @ root.T, units[:, None] * (root @ root.T) * units)
    np.testing.assert_allclose(positive_definite(scaled)[0], positive_definite(plain)[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", registry.FAMILIES)
def test_many_members_are_those_of_each(name):
    """Also where a precision is not positive definite."""
    family, generator = registry.FAMILIES[name](4), np.random.default_rng(0)
    roots = generator.standard_normal((3, 4, 4))
    precisions = roots @ roots.swapaxes(1, 2) + 0.1 * np.eye(4)
    precisions[1] -= 5.0 * np.eye(4)
    means = generator.standard_normal((3, 4))
    many = family.members(means, precisions, (4,))
    for index in range(3):
        one = family.member(means[index], precisions[index], (4,))
        for leaf, other in zip(jax.tree.leaves(many), jax.tree.leaves(one), strict=True):
            np.testing.assert_allclose(leaf[index], other, rtol=1e-9, atol=1e-12)
