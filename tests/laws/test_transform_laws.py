"""What every transform promises: a bijection with the right volume element, and names people recognise."""

from collections import OrderedDict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quenched as qd
import registry
from fits import make_fit
from quenched.transforms import describe_space

every_transform = pytest.mark.parametrize("name", sorted(registry.TRANSFORMS))
seeds = st.integers(0, 2**31)


def real_point(transform, shape, seed, spread=1.5):
    return jnp.asarray(spread * np.random.default_rng(seed).standard_normal(transform.real_shape(shape)))


@every_transform
@registry.law
@given(seeds)
def test_round_trip(name, seed):
    transform, shape = registry.TRANSFORMS[name]
    point = real_point(transform, shape, seed)
    natural = transform.to_natural(point)
    assert natural.shape == shape
    np.testing.assert_allclose(transform.to_real(natural), point, rtol=1e-8, atol=1e-8)


@every_transform
@registry.law
@given(seeds)
def test_log_jacobian_is_the_volume_element(name, seed):
    """Against the determinant of the Jacobian by autodiff.

    A simplex is charted by all parts but the last, the factor of a correlation matrix by what is below its diagonal.
    """
    transform, shape = registry.TRANSFORMS[name]
    point = real_point(transform, shape, seed)

    def chart(flat):
        natural = transform.to_natural(flat.reshape(point.shape))
        free = jnp.tril_indices(shape[-1], -1) if transform.axes == 2 else (slice(point.shape[-1]),)
        return natural[(..., *free)].reshape(-1)

    jacobian = jax.jacfwd(chart)(point.reshape(-1))
    log_jacobian = transform.log_jacobian(point)
    assert log_jacobian.shape == ()
    np.testing.assert_allclose(log_jacobian, np.linalg.slogdet(jacobian)[1], rtol=1e-8, atol=1e-8)


@every_transform
@registry.law
@given(seeds, st.sampled_from([1.0, 20.0, 700.0]))
def test_natural_values_lie_in_the_support(name, seed, spread):
    """Even far out, where the exponential over- or underflows, nothing becomes NaN or leaves the closed support."""
    transform, shape = registry.TRANSFORMS[name]
    natural = np.asarray(transform.to_natural(real_point(transform, shape, seed, spread)))
    assert not np.isnan(natural).any()
    if name == "positive":
        assert (natural >= 0).all()
    if name == "interval":
        assert (natural >= -2.0).all()
        assert (natural <= 0.5).all()
    if name.startswith("above"):
        assert (natural >= np.asarray(transform.lower)).all()
    if name.startswith("below"):
        assert (natural <= np.asarray(transform.upper)).all()
    if name.startswith("correlation"):
        assert (np.triu(natural, 1) == 0).all()
        assert (np.diagonal(natural, axis1=-2, axis2=-1) >= 0).all()
        np.testing.assert_allclose((natural**2).sum(axis=-1), 1.0, rtol=1e-12)
    if name.startswith("ordered"):
        assert (natural[..., 1:] >= natural[..., :-1]).all()
    if name.startswith("simplex"):
        assert (natural >= 0).all()
        np.testing.assert_allclose(natural.sum(axis=-1), 1.0, rtol=1e-12)


@every_transform
@registry.law
@given(seeds)
def test_log_jacobian_is_finite_and_smooth_far_out(name, seed):
    transform, shape = registry.TRANSFORMS[name]
    value, gradient = jax.value_and_grad(transform.log_jacobian)(real_point(transform, shape, seed, 100.0))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@every_transform
@registry.law
@given(seeds)
def test_what_depends_on_no_other_number_increases_with_its_own(name, seed):
    """The promise of `axes`: quantiles rest on it."""
    transform, shape = registry.TRANSFORMS[name]
    point = real_point(transform, shape, seed).reshape(-1)
    size = transform.real_shape(shape)
    jacobian = jax.jacfwd(lambda flat: transform.to_natural(flat.reshape(size)).reshape(-1))(point)
    if transform.axes:
        assert jacobian.shape[0] != jacobian.shape[1] or np.count_nonzero(jacobian) > len(point)
    else:
        np.testing.assert_array_equal(jacobian, np.diag(np.diag(jacobian)))
        assert (np.diag(jacobian) > 0).all()


def test_the_volume_of_all_correlation_matrices():
    """Of three rows it is pi² / 2: an LKJ density that is even over the matrices, written for the factor, adds up to it."""
    side = jnp.linspace(-9.0, 9.0, 61)
    points = jnp.stack(jnp.meshgrid(side, side, side), axis=-1).reshape(-1, 3)

    def density(point):
        factor = qd.correlation_cholesky.to_natural(point)
        return factor[1, 1] * jnp.exp(qd.correlation_cholesky.log_jacobian(point))

    total = jnp.sum(jax.vmap(density)(points)) * (side[1] - side[0]) ** 3
    np.testing.assert_allclose(total, np.pi**2 / 2, rtol=1e-6)


def test_no_correlation_is_zero_on_the_real_line():
    np.testing.assert_array_equal(qd.correlation_cholesky.to_real(jnp.eye(4)), 0.0)


def test_a_posterior_over_correlations():
    """Two columns of 60 pairs, correlated: the factor of their correlation is found, and the file keeps its kind."""
    generator = np.random.default_rng([7, 60])
    pairs = generator.standard_normal((60, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    scatter = np.corrcoef(pairs.T)

    def log_density(factor):
        inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(2), lower=True)
        return -0.5 * 60 * jnp.sum((inverse @ scatter) * inverse) - 60 * jnp.sum(jnp.log(jnp.diag(factor)))

    fit = qd.fit(log_density, np.eye(2), transforms=qd.correlation_cholesky, progress=False)
    assert fit.posterior.dim == 1
    assert abs(fit.mean[1, 0] - scatter[0, 1]) < 2 * fit.sd[1, 0]
    np.testing.assert_allclose(fit.mean[0], [1.0, 0.0])
    assert np.isfinite([list(row.values())[1:] for row in fit.summary()]).all()


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_the_centre_of_the_simplex_is_zero(parts):
    np.testing.assert_allclose(qd.simplex.to_natural(jnp.zeros(parts - 1)), 1 / parts, rtol=1e-14)


@registry.law
@given(seeds)
def test_space_is_the_sum_of_its_leaves(seed):
    """One vector on the real line stands for a whole pytree; its log-Jacobian adds up."""
    start = {name: None for name in registry.TRANSFORMS}
    transforms = {}
    for name, (transform, shape) in registry.TRANSFORMS.items():
        start[name] = np.asarray(transform.to_natural(real_point(transform, shape, seed)))
        transforms[name] = transform
    space, vector = describe_space(start, transforms)
    assert vector.shape == (space.dim,) == (sum(space.sizes),)
    natural = space.to_natural(jnp.asarray(vector))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10), natural, start)
    np.testing.assert_allclose(space.to_real(start), vector, rtol=1e-12)
    terms = [leaf.transform.log_jacobian(jnp.asarray(start_on_real_line(leaf, start))) for leaf in space.leaves]
    np.testing.assert_allclose(space.log_jacobian(jnp.asarray(vector)), sum(terms), rtol=1e-10)
    assert len(space.coordinate_names()) == space.dim


def start_on_real_line(leaf, start):
    return leaf.transform.to_real(jnp.asarray(start[leaf.name]))


def test_coordinates_have_names_people_recognise():
    start = {"tau": 1.0, "theta": np.ones(2), "inner": {"w": np.ones((2, 1))}, "list": [0.5, 0.5]}
    space, _ = describe_space(start, {"tau": qd.positive})
    assert space.coordinate_names() == [
        "inner.w[0,0]",
        "inner.w[1,0]",
        "list[0]",
        "list[1]",
        "tau",
        "theta[0]",
        "theta[1]",
    ]
    assert describe_space(np.ones(2))[0].coordinate_names() == ["parameters[0]", "parameters[1]"]


def test_one_transform_serves_all_leaves_and_a_missing_key_is_real():
    start = {"a": 1.0, "b": {"c": 2.0, "d": 3.0}}
    everywhere, _ = describe_space(start, qd.positive)
    assert [leaf.transform for leaf in everywhere.leaves] == [qd.positive] * 3
    partly, _ = describe_space(start, {"b": qd.positive})
    assert [leaf.transform for leaf in partly.leaves] == [qd.real, qd.positive, qd.positive]
    none, _ = describe_space(start, {"a": None})
    assert not none.constrained
    assert partly.constrained


# A key with a dot, beside a nested one of the same dotted name.
DOTTED = {"a": {"b": 2.0, "c": 3.0}, "a.b": 4.0}


@pytest.mark.parametrize(
    ("transforms", "constrained"),
    [
        ({"a": {"b": qd.positive}}, ["a.b"]),
        ({"a.b": qd.positive}, ["'a.b'"]),
        ({"a": qd.positive}, ["a.b", "a.c"]),
        ({"a": qd.positive, "a.b": None}, ["a.b", "a.c"]),
        (qd.positive, ["a.b", "a.c", "'a.b'"]),
    ],
)
def test_a_transform_belongs_to_a_place_and_not_to_a_dotted_name(transforms, constrained):
    space, _ = describe_space(DOTTED, transforms)
    assert space.coordinate_names() == ["a.b", "a.c", "'a.b'"]
    assert [leaf.name for leaf in space.leaves if leaf.transform == qd.positive] == constrained


def test_names_that_begin_alike_are_not_taken_for_nested_ones():
    space, _ = describe_space({"a": 1.0, "a.b": 2.0, "ab": 3.0}, {"a": qd.positive})
    assert [leaf.name for leaf in space.leaves if leaf.transform == qd.positive] == ["a"]
    assert space.coordinate_names() == ["a", "a.b", "ab"]  # nothing to be told apart, so nothing is quoted


class Pair(NamedTuple):
    mu: float
    tau: float


def test_transforms_by_name_serve_a_start_of_another_kind():
    space, _ = describe_space({"pair": Pair(1.0, 2.0), "list": [3.0, 4.0]}, {"pair": {"tau": qd.positive}})
    assert [leaf.name for leaf in space.leaves if leaf.transform == qd.positive] == ["pair.tau"]
    space, _ = describe_space([3.0, 4.0], (None, qd.positive))
    assert [leaf.transform for leaf in space.leaves] == [qd.real, qd.positive]


LISTS = [
    ({"cuts": [-2.0, -1, 1.0, np.float64(2)]}, {"cuts": qd.ordered}, {"cuts": (4,)}),
    ({"cuts": [-2.0, 1.0]}, None, {"cuts": (2,)}),
    ([[1, 2, 3], [4, 5, 6]], None, {"parameters": (2, 3)}),
    ([[1.0], [2.0, 3.0]], None, {"0": (1,), "1": (2,)}),
    ({"a": [{"b": 1.0}, 2.0]}, None, {"a.0.b": (), "a.1": ()}),
    ([np.zeros(2), np.ones(2)], None, {"0": (2,), "1": (2,)}),
    ({"a": [jnp.zeros(()), 1.0]}, None, {"a.0": (), "a.1": ()}),
    ({"a": [jnp.zeros(()), 1.0]}, {"a": qd.ordered}, {"a": (2,)}),
    ([3.0, 4.0], [None, qd.positive], {"0": (), "1": ()}),
    ((3.0, 4), None, {"0": (), "1": ()}),
]


@pytest.mark.parametrize(("start", "transforms", "shapes"), LISTS)
def test_a_list_of_plain_numbers_is_an_array(start, transforms, shapes):
    """But neither a tuple, nor a list of arrays, nor one whose numbers have their own transforms."""
    space, vector = describe_space(start, transforms)
    assert {leaf.name: leaf.shape for leaf in space.leaves} == shapes
    assert vector.dtype == np.float64


KEYS = st.sampled_from(["a", "b", "a.b", "'a'", "'a.b'", '"a"', "a[0]", "b[1]", "a.b[0]"])
TREES = st.recursive(
    st.sampled_from([1.0, np.ones(2)]), lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=4), max_leaves=8
)


@settings(registry.law, max_examples=200)
@given(TREES)
def test_no_two_parameters_have_the_same_name(start):
    space, _ = describe_space(start)
    names = space.coordinate_names()
    assert len(set(names)) == len(names) == space.dim


def test_parameters_of_the_same_dotted_name_are_all_kept(tmp_path):
    """In samples for ArviZ, in the summary, and in a file."""
    fit = make_fit(DOTTED, transforms={"a.b": qd.positive})
    assert {row["name"]: row["mean"] for row in fit.summary()}.keys() == {"a.b", "a.c", "'a.b'"}
    posterior = fit.to_arviz(n=5).posterior
    assert set(posterior.data_vars) == {"a.b", "a.c", "'a.b'"}
    np.testing.assert_array_equal(posterior["'a.b'"].values[0], fit.sample(5)["a.b"])
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    assert loaded.space == fit.space
    assert jax.tree.structure(loaded.mean) == jax.tree.structure(fit.mean)
    nested = make_fit(Pair({"b": 1.0}, 2.0), transforms={"tau": qd.positive})
    assert len(jax.tree.leaves(qd.load(nested.save(tmp_path / "nested.npz")).mean)) == 2


def test_containers_unknown_to_json_keep_all_their_leaves(tmp_path):
    start = OrderedDict([("a", {"b": 1.0}), ("a.b", 2.0)])
    loaded = qd.load(make_fit(start).save(tmp_path / "fit.npz"))
    assert sorted(float(leaf) for leaf in jax.tree.leaves(loaded.mean)) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("transform", "value", "needs"),
    [
        (qd.positive, 0.0, "greater than 0"),
        (qd.positive, [1.0, -1.0], "greater than 0"),
        (qd.interval(0, 1), 1.0, r"between 0.0 and 1.0"),
        (qd.interval(0, 1), 1.5, r"between 0.0 and 1.0"),
        (qd.ordered, [1.0, 1.0], "increasing along the last axis"),
        (qd.above(2.0), 2.0, "above 2.0"),
        (qd.above([0.0, 2.0]), [1.0, 1.0], r"above \[0. 2.\]"),
        (qd.below(-1.0), 0.0, "below -1.0"),
        (qd.simplex, [0.5, 0.6], "summing to 1"),
        (qd.correlation_cholesky, [[1.0, 0.5], [0.5, 1.0]], "lower triangular"),
        (qd.correlation_cholesky, [[1.0, 0.0], [0.8, -0.6]], "positive diagonal"),
        (qd.correlation_cholesky, [[2.0, 0.0], [0.8, 0.6]], "rows of length 1"),
        (qd.simplex, [1.5, -0.5], "positive and summing to 1"),
    ],
)
def test_a_start_outside_the_support_is_named(transform, value, needs):
    with pytest.raises(ValueError, match=rf"(?s)start: rate = .*outside its support.*{needs}"):
        describe_space({"rate": np.asarray(value), "other": 0.5}, {"rate": transform})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: qd.interval(1.0, 1.0), r"interval\(1.0, 1.0\).*lower below the upper"),
        (lambda: qd.interval(0.0, np.inf), r"interval\(lower=0.0, upper=inf\): both ends must be finite"),
        (lambda: qd.interval(np.nan, 1.0), "both ends must be finite"),
        (lambda: describe_space({"a": 1.0}, {"a": qd.ordered}), "transforms: a: ordered applies to arrays"),
        (
            lambda: describe_space({"a": np.ones(1)}, {"a": qd.simplex}),
            "transforms: a: simplex needs at least two parts",
        ),
        (lambda: describe_space({"a": np.ones(2)}, qd.correlation_cholesky), "a: correlation_cholesky needs a square"),
        (lambda: describe_space({"a": np.ones((1, 1))}, qd.correlation_cholesky), "at least two rows"),
        (
            lambda: describe_space({"a": np.ones(3)}, qd.above([0, 0])),
            r"a: above: its bounds have shape \(2,\).*\(3,\)",
        ),
        (lambda: describe_space({"a": 1.0}, qd.below([2, 2])), r"a: below: its bounds have shape \(2,\).*\(\)"),
        (lambda: qd.above(np.inf), r"above\(inf\): the bound must be a finite number"),
        (lambda: qd.below("0"), r"below\('0'\): the bound must be a finite number"),
        (lambda: qd.below([0.0, True, 1j]), "the bound must be a finite number, or an array"),
        (lambda: describe_space({"a": 1.0}, {"b": qd.positive}), r"no parameter is called 'b'; start has \['a'\]"),
        (
            lambda: describe_space({"a": {"b": 1.0}}, {"a.b": qd.positive}),
            r"no parameter is called \"'a.b'\"; start has \['a.b'\]",
        ),
        (lambda: describe_space({"a": 1.0}, {"a": "positive"}), "'positive' is not a transform; use positive, above"),
    ],
)
def test_misuse_of_transforms_is_explained(make, message):
    with pytest.raises(ValueError, match=message):
        make()
