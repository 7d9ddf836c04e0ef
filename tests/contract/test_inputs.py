"""Numbers, lists and tables as people write them: taken for what they mean, or refused by name."""

from collections import OrderedDict
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.numbers import read_arrays, read_data

pandas = pytest.importorskip("pandas")


def fit(log_density, start, **options):
    return qd.fit(log_density, start, progress=False, **options)


def normal(p):
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(p))


def regression_of(p, data):
    return -0.5 * jnp.sum((data["y"] - p["slope"] * data["x"]) ** 2) - 0.5 * p["slope"] ** 2


TABLE = pandas.DataFrame({"y": [1.0, 2.0, 4.0], "x": [1, 2, 3], "treated": [True, False, True]}, index=[9, 8, 7])
SLOPE = (1.0 + 4.0 + 12.0) / (1.0 + 4.0 + 9.0 + 1.0)


# Numbers and lists.


def test_whole_numbers_are_numbers():
    found = fit(normal, {"mu": 2, "v": np.arange(2)})
    assert found.mean["mu"] == pytest.approx(0.0, abs=1e-6)
    assert found.mean["v"].dtype == np.float64


def test_a_list_is_an_array_in_start_data_and_hyper():
    def log_density(p, data, hyper):
        assert p["cuts"].shape == data.shape == (3,)
        assert hyper["h"].shape == (2,)
        return -0.5 * jnp.sum((p["cuts"] - data) ** 2) - jnp.sum(hyper["h"] ** 2)

    found = fit(
        log_density, {"cuts": [1.0, 2, 3.0]}, data=[1, 2.0, 4.0], hyper={"h": [1, 2]}, transforms={"cuts": qd.ordered}
    )
    assert found.mean["cuts"].shape == (3,)
    np.testing.assert_allclose(found.hyper["h"], 0.0, atol=1e-2)


@pytest.mark.parametrize("data", [(1, 2, 3), (1.0, 2.0, 3.0), [(1, 2), (3, 4), (5, 6)], (1,)])
def test_a_tuple_of_numbers_is_an_array_of_data(data):
    found = fit(lambda w, data: -0.5 * jnp.sum((data - w) ** 2), 0.0, data=data)
    assert found.mean == pytest.approx(np.mean(data))


class Counts(NamedTuple):
    """What means something of its own."""

    successes: int
    trials: int


@pytest.mark.parametrize(
    "data", [(3, 2.5), (np.ones(2), 1.0), Counts(1, 2), ((1, 2), (3, 4)), (), [(1, 2), (3,)], (True, 1)]
)
def test_other_tuples_stay_what_they_are(data):
    read = read_data("data", data)
    assert type(read) is type(data)
    assert jax.tree.structure(read) == jax.tree.structure(data)


def test_a_mask_that_masks_nothing_changes_nothing():
    log_density = lambda w, data, hyper: -0.5 * jnp.sum((w - data) ** 2) - 0.5 * jnp.sum((hyper - 1.0) ** 2)
    values = np.array([1.0, 2.0])
    options = {"data": np.ma.array(values), "hyper": np.ma.array(values)}
    np.testing.assert_allclose(fit(log_density, np.ma.array(values), **options).mean, values, rtol=1e-6)


def test_starts_of_many_may_be_lists():
    fits = qd.fit_many(
        lambda w, y: -0.5 * (w - y) ** 2, [0.0, 1.0, 2], data=[3, 4, 5.0], own_starts=True, progress=False
    )
    np.testing.assert_allclose(fits.mean, [3.0, 4.0, 5.0], rtol=1e-6)


def test_what_is_no_list_of_numbers_is_left_alone():
    given = {"pair": (1, 2.0), "arrays": [np.ones(2), np.ones(3)], "text": ["a"], "none": None, "empty": []}
    read = read_arrays("data", given)
    assert jax.tree.structure(read) == jax.tree.structure(given)
    assert all(a is b for a, b in zip(jax.tree.leaves(read), jax.tree.leaves(given), strict=True))


# Tables.


def test_a_table_is_a_mapping_of_its_columns():
    seen = {}

    def log_density(p, data):
        seen.update(order=list(data), treated=data["treated"].dtype, x=data["x"].dtype)
        return regression_of(p, data)

    found = fit(log_density, {"slope": 0}, data=TABLE)
    assert seen["order"] == ["y", "x", "treated"]
    assert jnp.issubdtype(seen["treated"], jnp.floating)
    assert jnp.issubdtype(seen["x"], jnp.integer)  # it may be an index
    assert found.mean["slope"] == pytest.approx(SLOPE, rel=1e-5)


def test_tables_and_columns_inside_other_data():
    given = {"table": TABLE, "column": TABLE["x"], "number": 3.0}
    read = read_arrays("data", given)
    assert isinstance(read["table"], OrderedDict)
    np.testing.assert_array_equal(read["table"]["treated"], [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(read["column"], [1, 2, 3])
    assert type(read["column"]) is np.ndarray
    found = fit(lambda p, data: regression_of(p, data["table"]), {"slope": 0.0}, data=given)
    assert found.mean["slope"] == pytest.approx(SLOPE, rel=1e-5)


def test_columns_of_pandas_own_numbers():
    table = pandas.DataFrame(
        {
            "whole": pandas.array([1, 2, 3], dtype="Int64"),
            "real": pandas.array([1.5, None, 3.0], dtype="Float64"),
            "flag": pandas.array([True, False, None], dtype="boolean"),
        }
    )
    read = read_arrays("data", table)
    assert read["whole"].dtype == np.int64
    np.testing.assert_array_equal(read["real"], [1.5, np.nan, 3.0])
    np.testing.assert_array_equal(read["flag"], [1.0, 0.0, np.nan])


def test_many_problems_from_one_table():
    fits = qd.fit_many(lambda w, data: -0.5 * (w - data["y"]) ** 2 - 0.5 * w**2 * data["x"], 0.0, TABLE, progress=False)
    np.testing.assert_allclose(fits.mean, TABLE["y"] / (1.0 + TABLE["x"]), rtol=1e-6)


def test_a_regression_on_a_table():
    target = qd.regression(
        lambda p, X: p["slope"] * X["x"], TABLE[["x"]], TABLE["y"], prior_precision=1.0, noise_precision=1.0
    )
    assert fit(target, {"slope": 0.0}).mean["slope"] == pytest.approx(SLOPE, rel=1e-5)


def test_a_loaded_fit_is_given_its_table_back(tmp_path):
    found = fit(regression_of, {"slope": 0.0}, data=TABLE)
    loaded = qd.load(found.save(tmp_path / "fit.npz"))
    assert loaded.attach(regression_of, TABLE).origin is not None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (TABLE.assign(school=["a", "b", "a"]), r"data: column school has dtype (str|object).*encode it.*cat.codes"),
        (TABLE.assign(school=pandas.Categorical([3, 4, 3])), "data: column school has dtype category"),
        ({"all": TABLE.assign(when=pandas.to_datetime("2026-01-01"))}, "data: column all.when has dtype datetime64"),
        ({"when": pandas.Series(["a"])}, "data: when has dtype (str|object)"),
        (TABLE.assign(y=[1.0, np.nan, np.nan]), r"data: y has 2 NaN, the first at index \(1,\)"),
        (TABLE.assign(x=pandas.array([1, None, 3], dtype="Int64")), "data: x has 1 NaN"),
        (pandas.concat([TABLE, TABLE], axis=1), "data: two columns are called treated; rename one"),
    ],
)
def test_columns_that_are_no_numbers_are_named(data, message):
    with pytest.raises(ValueError, match=message):
        fit(regression_of, {"slope": 0.0}, data=data)


def test_keys_that_are_numbers_of_numpy_are_those_of_python():
    """JAX compares trees that it has seen, and a number of NumPy's with a tuple is an array."""
    density = lambda p: -sum(jnp.sum(jnp.cosh(leaf)) for leaf in jax.tree.leaves(p))
    options = {"draws": 8, "check": 64, "progress": False}
    assert qd.fit(density, {("a", 1): np.zeros(2)}, **options).mean[("a", 1)].shape == (2,)
    fit = qd.fit(density, {np.int64(3): np.zeros(2)}, **options)
    assert fit.mean[np.int64(3)].shape == fit.mean[3].shape == (2,)
    assert [type(key) for key in fit.mean] == [int]


# What is refused before anything is computed.


def test_what_holds_itself_never_reaches_jax():
    """Which would take all of the stack that Python has, and not give it back."""
    itself = {"a": 1.0, "b": 2.0}
    itself["c"] = itself
    deep = 1.0
    for _ in range(5000):
        deep = [deep]
    for tree in (itself, deep):
        with pytest.raises(ValueError, match="start: holds itself, or is too deep"):
            fit(normal, tree)

    def further(n):
        return n and further(n - 1)

    assert further(500) == 0


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"dims": ["k"]}, r"dims=\['k'\]: give a mapping"),
        ({"dims": {"v": "k"}}, "dims: 'v' has 'k'; give a tuple of names"),
        ({"dims": {"v": (3,)}}, r"dims: 'v' has \(3,\)"),
        ({"coords": "k"}, "coords='k': give a mapping"),
        ({"coords": {"k": "ab"}}, "coords: 'k' has 'ab'; give as many labels"),
        ({"coords": {"k": 3}}, "coords: 'k' has 3"),
    ],
)
def test_names_of_axes_are_read_with_the_model(axes, message):
    with pytest.raises(ValueError, match=message):
        qd.Model(normal, {"v": np.zeros(2)}, **axes)
