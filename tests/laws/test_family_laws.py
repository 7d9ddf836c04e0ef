"""What every family promises, against SciPy and dense formulas that share no line with it."""

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
from quenched.families import (
    Full,
    FullGaussian,
    NestedGaussian,
    Role,
    cholesky_or_nan,
    factor_of_inverse,
    member_kinds,
    positive_definite,
    roles,
)
from quenched.families.triangle import pack, packed_size, solve_lower, unpack
from quenched.frozen import Tree
from quenched.posterior import Posterior

every_family = pytest.mark.parametrize("name", sorted(registry.FAMILIES))
every_gaussian = pytest.mark.parametrize(
    "name", [name for name in sorted(registry.FAMILIES) if registry.FAMILIES[name](1).affine]
)
dims = st.sampled_from([1, 2, 5])
seeds = st.integers(0, 2**31)


def some_member(name, dim, seed):
    return registry.random_member(registry.FAMILIES[name](dim), dim, seed)


def test_every_kind_of_member_is_under_the_laws():
    assert {type(some_member(name, 2, 0)) for name in registry.FAMILIES} == {
        kind
        for kind in member_kinds.values()
        if not kind.on_host and kind is not NestedGaussian  # those have laws of their own
    }


def dense_kl(member, prior_mean, prior_precision):
    """KL to a Gaussian from eigenvalues of the product, not from Cholesky factors.

    That of the Gaussian with the same moments, which is nearer by all that its entropy is larger.
    """
    mean, covariance = np.asarray(member.mean), np.asarray(member.covariance)
    product = prior_precision @ covariance
    away = mean - prior_mean
    log_ratio = np.sum(np.log(np.linalg.eigvals(product).real))
    of_moments = 0.5 * (np.trace(product) + away @ prior_precision @ away - len(mean) - log_ratio)
    return of_moments + stats.multivariate_normal(mean, covariance).entropy() - member.entropy()


@every_gaussian
@registry.law
@given(dims, seeds)
def test_transform_pushes_the_identity_to_the_covariance(name, dim, seed):
    """Matched draws have mean 0 and covariance I exactly, so their images have the member's, exactly."""
    member = some_member(name, dim, seed)
    images = np.asarray(member.transform(qd.matched(2 * dim + 2, dim, seed).points))
    np.testing.assert_allclose(images.mean(axis=0), member.mean, atol=1e-10)
    away = images - member.mean
    np.testing.assert_allclose(away.T @ away / len(away), member.covariance, atol=1e-10)


@every_family
@registry.law
@given(dims, seeds)
def test_variance_and_scale_are_those_of_the_covariance(name, dim, seed):
    member = some_member(name, dim, seed)
    np.testing.assert_allclose(member.variance(), np.diag(member.covariance), rtol=1e-10)
    np.testing.assert_allclose(member.scale @ member.scale.T, member.covariance, atol=1e-10)


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
def test_zero_stands_for_the_identity_map(name, dim, seed):
    """By which whitened coordinates begin: moving by it changes nothing, and it can be moved anywhere."""
    member = some_member(name, dim, seed)
    identity = jax.tree.map(np.zeros_like, member)
    z = np.random.default_rng(seed).standard_normal((5, dim))
    np.testing.assert_allclose(identity.transform(z), z, atol=1e-12)
    np.testing.assert_allclose(member.moved(identity).transform(z), member.transform(z), atol=1e-10)
    np.testing.assert_allclose(identity.moved(member).transform(z), member.transform(z), atol=1e-10)


@pytest.mark.parametrize("name", ["blocks", "diagonal", "full"])  # two maps of low rank make one of twice the rank
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


@jax.jit
def jacobians(member, draws):
    return jax.vmap(jax.jacobian(lambda z: member.transform(z[None])[0]))(draws)


@every_family
@registry.law
@given(dims, seeds)
def test_density_is_that_of_the_transformed_draws(name, dim, seed):
    """Of the standard normal, over the determinant of the Jacobian; its log has the mean that the entropy needs."""
    member, draws = some_member(name, dim, seed), qd.matched(2 * dim + 2, dim, seed).points
    slopes = np.linalg.slogdet(jacobians(member, draws))[1]
    np.testing.assert_allclose(member.log_slope(draws), slopes, atol=1e-9)
    expected = stats.norm.logpdf(draws).sum(axis=1) - slopes
    np.testing.assert_allclose(member.log_density(member.transform(draws)), expected, atol=1e-7)
    np.testing.assert_allclose(slopes.mean(), member.log_determinant(), atol=1e-9)
    np.testing.assert_allclose(member.entropy(), dim * stats.norm.entropy() + slopes.mean(), atol=1e-9)


@every_gaussian
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
    expected = dense_kl(member, 0.0, precision * np.eye(dim))
    np.testing.assert_allclose(member.kl_to_isotropic(precision), expected, rtol=1e-9, atol=1e-9)


@every_family
@registry.law
@given(dims, seeds)
def test_kl_to_a_general_prior(name, dim, seed):
    member, prior = some_member(name, dim, seed), some_member("full", dim, seed + 1)
    precision = np.linalg.inv(np.asarray(prior.covariance))
    expected = dense_kl(member, np.asarray(prior.mean), precision)
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


# What families say of themselves.


@every_family
@registry.law
@given(dims, seeds)
def test_every_number_has_a_role(name, dim, seed):
    """The location moves the mean alone; without correlations and shapes an uncorrelated member stays so."""
    family = registry.FAMILIES[name](dim)
    member, generator = some_member(name, dim, seed), np.random.default_rng(seed)
    role, vector = roles(member), 0.3 * generator.standard_normal(registry.numbers(member).size)
    assert role.shape == jax.flatten_util.ravel_pytree(member)[0].shape
    assert np.count_nonzero(role == Role.LOCATION) == np.count_nonzero(role == Role.SPREAD) == dim
    move = lambda start, kept: start.moved(registry.with_numbers(member, np.where(kept, vector, 0.0)))
    moved = move(member, role == Role.LOCATION)
    np.testing.assert_array_equal(moved.covariance, member.covariance)
    assert np.linalg.norm(moved.mean - member.mean) > 1e-3
    np.testing.assert_array_equal(move(member, role != Role.LOCATION).mean, member.mean)
    plain = family.isotropic(np.zeros(dim), np.ones(dim), (dim,))
    sds = np.exp(vector[role == Role.SPREAD])
    covariance = np.asarray(move(plain, (role == Role.LOCATION) | (role == Role.SPREAD)).covariance)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-12)
    np.testing.assert_allclose(np.sort(np.diag(covariance)), np.sort(sds**2), rtol=1e-9)


@every_family
@registry.law
@given(dims, seeds)
def test_a_member_without_shape_is_affine(name, dim, seed):
    family, member = registry.FAMILIES[name](dim), some_member(name, dim, seed)
    assert family.affine == member.affine == (not (roles(member) == Role.SHAPE).any())
    assert family.base.affine
    plain = registry.random_member(family, dim, seed, warp=0.0)
    z = np.random.default_rng(seed).standard_normal((5, dim))
    np.testing.assert_allclose(plain.transform(z), plain.mean + z @ np.asarray(plain.scale).T, atol=1e-10)
    straight = np.allclose(member.transform(z), member.mean + z @ np.asarray(member.scale).T, atol=1e-3)
    assert straight == member.affine


@every_family
@registry.law
@given(dims, seeds)
def test_correlations_are_kept_within_groups_alone(name, dim, seed):
    family, member = registry.FAMILIES[name](dim), some_member(name, dim, seed)
    together = np.zeros((dim, dim), bool)
    for group in member.groups or (range(dim),):
        together[np.ix_(group, group)] = True
    np.testing.assert_array_equal(np.abs(member.covariance) > 1e-12, together)
    kept, promised = member.groups, family.groups((dim,))
    assert (kept is None) == (promised is None)
    assert kept is None or set(kept) == set(promised)
    assert family.coupled_coordinates((dim,)) == together.sum(axis=0).max()


def test_an_array_without_a_role_is_named():
    class Nameless(Tree):
        gaussian: FullGaussian
        heaviness: np.ndarray

    with pytest.raises(TypeError, match=r"Nameless.heaviness declares no role"):
        roles(Nameless(Full().isotropic(np.zeros(2), np.ones(2), (2,)), np.zeros(1)))


# Matrices, and stacks of them.


@registry.law
@given(st.sampled_from([1, 2, 3, 4, 7]), seeds, st.sampled_from([(), (3,), (2, 3), (0,)]))
def test_triangles_pack_and_unpack(dim, seed, leading):
    matrix = np.random.default_rng(seed).standard_normal((*leading, dim, dim))
    for kind in (np.asarray, jnp.asarray):
        vector = pack(kind(matrix))
        assert vector.shape == (*leading, packed_size(dim))
        assert isinstance(vector, np.ndarray) == (kind is np.asarray)
        np.testing.assert_array_equal(unpack(vector, dim), np.tril(matrix, -1))


@pytest.mark.parametrize("transposed", [False, True])
def test_a_triangle_is_solved_where_a_pivot_underflows_although_the_diagonal_does_not(transposed):
    lower = np.array([[1e-200, 0.0], [1.0, 1e-200]])
    right = np.array([1.0, 0.0]) if transposed else np.array([0.0, 1.0])
    np.testing.assert_array_equal(solve_lower(lower, 1e-200 * right, transposed=transposed), right)


def some_precisions(leading, dim, seed):
    """A stack of precisions, of which some are not positive definite, and which."""
    generator = np.random.default_rng(seed)
    roots = generator.standard_normal((*leading, dim, dim))
    precisions = roots @ roots.swapaxes(-1, -2) + 0.1 * np.eye(dim)
    uphill = generator.random(leading) < 0.3
    precisions[uphill] -= 2.0 * np.trace(precisions[uphill], axis1=-2, axis2=-1)[..., None, None] * np.eye(dim)
    return precisions, uphill


@registry.law
@given(dims, seeds, st.sampled_from([(), (6,), (2, 3), (0,)]))
def test_cholesky_marks_what_has_no_factor(dim, seed, leading):
    precisions, uphill = some_precisions(leading, dim, seed)
    factors = cholesky_or_nan(precisions)
    np.testing.assert_array_equal(~np.isfinite(factors).all(axis=(-2, -1)), uphill)
    products = factors @ factors.swapaxes(-1, -2)
    np.testing.assert_allclose(products[~uphill], precisions[~uphill], rtol=1e-9, atol=1e-12)
    traced = np.asarray(cholesky_or_nan(jnp.asarray(precisions)))
    np.testing.assert_array_equal(~np.isfinite(traced).all(axis=(-2, -1)), uphill)
    np.testing.assert_allclose(factors[~uphill], traced[~uphill], rtol=1e-9, atol=1e-12)


@registry.law
@given(dims, seeds, st.sampled_from([(), (6,), (2, 3)]))
def test_the_factor_is_of_the_inverse(dim, seed, leading):
    precisions, uphill = some_precisions(leading, dim, seed)
    factors = factor_of_inverse(precisions)
    assert isinstance(factors, np.ndarray)
    np.testing.assert_array_equal(factors, np.tril(factors))
    assert (np.diagonal(factors, axis1=-2, axis2=-1) > 0).all()
    whole = precisions @ factors @ factors.swapaxes(-1, -2)
    np.testing.assert_allclose(whole[~uphill], np.broadcast_to(np.eye(dim), whole.shape)[~uphill], atol=1e-7)


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


@every_family
@registry.law
@given(dims, seeds, st.sampled_from([(3,), (2, 3), (0,)]))
def test_a_stack_of_members_is_that_of_each(name, dim, seed, leading):
    """Also where a precision is not positive definite, and where only the means differ; in NumPy, to be written into."""
    family, generator = registry.FAMILIES[name](dim), np.random.default_rng(seed)
    precisions, _ = some_precisions(leading, dim, seed)
    means, sds = generator.standard_normal((*leading, dim)), np.exp(generator.standard_normal((*leading, dim)))
    alike, same = np.eye(dim) + 0.5, np.full(dim, 0.3)
    made = {
        "member": (family.member(means, precisions, (dim,)), lambda i: family.member(means[i], precisions[i], (dim,))),
        "alike": (family.member(means, alike, (dim,)), lambda i: family.member(means[i], alike, (dim,))),
        "isotropic": (family.isotropic(means, sds, (dim,)), lambda i: family.isotropic(means[i], sds[i], (dim,))),
        "same": (family.isotropic(means, same, (dim,)), lambda i: family.isotropic(means[i], same, (dim,))),
    }
    for many, one in made.values():
        np.testing.assert_array_equal(many.mean, means)
        for leaf in jax.tree.leaves(many):
            assert isinstance(leaf, np.ndarray)
            assert leaf.flags.writeable
            assert leaf.shape[: len(leading)] == leading
            assert not np.shares_memory(leaf, means)
        for place in np.ndindex(leading):
            for leaf, other in zip(jax.tree.leaves(many), jax.tree.leaves(one(place)), strict=True):
                np.testing.assert_allclose(leaf[place], other, rtol=1e-7, atol=1e-9)
