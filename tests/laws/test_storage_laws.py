"""Save, then load: equal to the last bit, whatever was fitted, and readable without this library."""

import dataclasses
import json
import pickle
import tempfile
from collections import OrderedDict, namedtuple
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import problems
import quenched as qd
import registry
from quenched.families import member_kinds, read_member, write_member
from quenched.posterior import Posterior
from quenched.results import load, save
from quenched.transforms import describe_space, read_transform, transform_kinds, write_transform

every_family = pytest.mark.parametrize("family", sorted(registry.FAMILIES))
dims = st.sampled_from([1, 2, 5])
seeds = st.integers(0, 2**31)


def some_member(family, dim, seed):
    return registry.random_member(registry.FAMILIES[family](dim), dim, seed)


def assert_same_arrays(one, other):
    """Of two trees of one structure; the other is in NumPy."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert isinstance(b, np.ndarray)
        assert b.dtype == np.float64
        np.testing.assert_array_equal(a, b)


# Transforms.


@pytest.mark.parametrize("name", sorted(registry.TRANSFORMS))
def test_every_transform_can_be_kept(name):
    transform, _ = registry.TRANSFORMS[name]
    assert transform_kinds[type(transform).__name__] is type(transform)
    assert read_transform(json.loads(json.dumps(write_transform(transform)))) == transform


def test_a_transform_of_no_known_kind_is_refused():
    with pytest.raises(ValueError, match="'Sphere' is not a kind of transform; known are Real, Positive"):
        read_transform({"kind": "Sphere"})


# Members.


@every_family
@registry.law
@given(dims, seeds, st.sampled_from([(), (3,)]))
def test_write_then_read_is_equal(family, dim, seed, leading):
    """Also of a stack; the text is JSON, and nothing depends on the precision that JAX is set to."""
    member = jax.tree.map(
        lambda leaf: np.array(np.broadcast_to(leaf, (*leading, *leaf.shape))), some_member(family, dim, seed)
    )
    with jax.enable_x64(False):
        text, arrays = write_member(member)
        assert_same_arrays(member, read_member(json.loads(json.dumps(text)), arrays))


@every_family
@registry.law
@given(dims, seeds)
def test_arrays_that_are_not_those_of_the_text_are_named(family, dim, seed):
    text, arrays = write_member(some_member(family, dim, seed))
    with pytest.raises(ValueError, match="its array is missing"):
        read_member(text, arrays[:-1])
    with pytest.raises(ValueError, match=f"{text['kind']}: {len(arrays) + 1} arrays were given; it has {len(arrays)}"):
        read_member(text, [*arrays, np.zeros(1)])
    place = seed % len(arrays)
    wrong = [*arrays[:place], np.zeros((*arrays[place].shape, 2)), *arrays[place + 1 :]]
    with pytest.raises(ValueError, match=r"Gaussian\.\w+.* has shape \(.*2\); it should have \("):
        read_member(text, wrong)


def test_an_unknown_kind_is_named():
    text, arrays = write_member(some_member("full", 2, 0))
    with pytest.raises(
        ValueError, match=f"'StudentT' is not a known kind of member; known are {', '.join(member_kinds)}"
    ):
        read_member({**text, "kind": "StudentT"}, arrays)
    with pytest.raises(ValueError, match="FullGaussian has the fields mean, log_diagonal, lower, not mean"):
        read_member({**text, "fields": {"mean": text["fields"]["mean"]}}, arrays)


# Fits.


def assert_same(one, other):
    """Every field equal, to the last bit."""
    assert type(one.posterior.member) is type(other.posterior.member)
    for a, b in zip(jax.tree.leaves(one.posterior.member), jax.tree.leaves(other.posterior.member), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.covariance, other.covariance)
    jax.tree.map(np.testing.assert_array_equal, one.mean, other.mean)
    jax.tree.map(np.testing.assert_array_equal, one.sd, other.sd)
    jax.tree.map(np.testing.assert_array_equal, one.hyper, other.hyper)
    for name in ("bound", "check_bound", "check_error", "status", "message", "n_draws", "n_evaluations"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("n_objective_evaluations", "seconds", "settings", "verdict", "space", "n_rounds"):
        assert getattr(one, name) == getattr(other, name), name
    assert tuple(one.history) == tuple(other.history)
    assert len(one.optima) == len(other.optima)
    for a, b in zip(one.optima, other.optima, strict=True):
        assert (a.bound, a.n_starts) == (b.bound, b.n_starts)
        np.testing.assert_array_equal(a.mean, b.mean)
    assert str(one) == str(other)


@every_family
@registry.law
@given(dims, seeds)
def test_any_posterior_survives_a_file(family, dim, seed):
    """Bends and blocks included, whatever fit they came from."""
    space, _ = describe_space(np.zeros(dim))
    posterior = Posterior(some_member(family, dim, seed))
    fit = dataclasses.replace(problems.fitted("poisson"), posterior=posterior, space=space)
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(save(fit, Path(folder) / "fit.npz"))
    assert_same_arrays(fit.posterior.member, loaded.posterior.member)


@pytest.mark.parametrize(
    ("name", "family"), [*(("logistic(5)", family) for family in sorted(registry.FAMILIES)), ("constrained", "full")]
)
def test_save_then_load_is_equal(name, family, tmp_path):
    problem = problems.PROBLEMS[name]
    fit = problem.fit(family=registry.FAMILIES[family](problem.dim), draws=24)
    path = fit.save(tmp_path / "deep" / "fit.npz")
    assert_same(fit, qd.load(path))
    assert [entry.name for entry in path.parent.iterdir()] == ["fit.npz"]  # nothing temporary is left


def gammas(parameters, shape):
    return jnp.sum(shape * parameters["w"] - jnp.exp(parameters["w"])) - 0.5 * parameters["v"] ** 2


@every_family
def test_many_are_saved_and_loaded_equal(family, tmp_path):
    """As a whole, and each of them."""
    start, shapes = {"v": 0.0, "w": np.zeros(2)}, np.array([[1.0, 2.0], [3.0, 0.5], [2.0, 2.0]])
    fits = qd.fit_many(gammas, start, shapes, family=registry.FAMILIES[family](3), draws=16, progress=False)
    loaded = qd.load(fits.save(tmp_path / "fits.npz"))
    assert_same_arrays(fits.member, loaded.member)
    jax.tree.map(np.testing.assert_array_equal, (fits.mean, fits.sd), (loaded.mean, loaded.sd))
    jax.tree.map(np.testing.assert_array_equal, fits.table(), loaded.table())
    assert (fits.message, fits.settings, fits.verdict) == (loaded.message, loaded.settings, loaded.verdict)
    np.testing.assert_array_equal(fits.rounds, loaded.rounds)
    for one, other in zip(fits, loaded, strict=True):
        assert_same(one, other)


def test_of_many_what_was_seen_is_saved(tmp_path, monkeypatch):
    """To look at all would take as long as the fits: of those that nobody asked about, the check is what is known."""
    monkeypatch.setattr("quenched.results.fits._FEW", 0)
    start, shapes = {"v": 0.0, "w": np.zeros(2)}, np.array([[1.0, 2.0], [3.0, 0.5], [2.0, 2.0]])
    fits = qd.fit_many(gammas, start, shapes, draws=16, progress=False)
    verdict = fits[1].verdict
    for loaded in (qd.load(fits.save(tmp_path / "fits.npz")), pickle.loads(pickle.dumps(fits))):
        assert loaded[1].verdict == fits[1:][0].verdict == verdict
        assert loaded[1].further is not None
        assert loaded[0].further is None
        assert len(loaded[0].log_ratios) < len(loaded[1].log_ratios)
        assert qd.Fits.joined([loaded, loaded])[4].verdict == verdict


def test_hyperparameters_and_optima_survive_a_file(tmp_path):
    fit = problems.PROBLEMS["two_peaks"].fit(starts=6, seed=0)
    assert len(fit.optima) == 2
    assert_same(fit, qd.load(fit.save(tmp_path / "a.npz")))
    features = np.random.default_rng(0).standard_normal((20, 2))
    line = qd.regression(lambda w, x: x @ w["w"], features, features[:, 0] + 0.1 * features[:, 1] ** 2)
    learned = qd.fit(line, {"w": np.zeros(2)}, progress=False)
    loaded = qd.load(learned.save(tmp_path / "b.npz"))
    assert loaded.hyper == learned.hyper
    assert set(loaded.hyper) == {"prior_precision", "noise_precision"}


@pytest.mark.parametrize("container", ["named tuple", "ordered dict", "nested"])
def test_files_keep_the_order_of_containers_that_json_does_not_know(container, tmp_path):
    """JAX sorts the keys of a dict but not the fields of a named tuple: `slope` must not become `intercept`."""
    pair = namedtuple("pair", ["slope", "intercept"])
    read, start = {
        "named tuple": (lambda p: (p.slope, p.intercept), pair(0.0, 0.0)),
        "ordered dict": (lambda p: (p["slope"], p["intercept"]), OrderedDict(slope=0.0, intercept=0.0)),
        "nested": (lambda p: (p["b"][0].slope, p["b"][0].intercept), {"b": [pair(0.0, 0.0)], "a": (0.0, None)}),
    }[container]

    def log_density(parameters):
        slope, intercept = read(parameters)
        rest = sum(leaf**2 for leaf in jax.tree.leaves(parameters))
        return -0.5 * ((slope - 5.0) ** 2 + (intercept + 7.0) ** 2 / 4.0) - 1e-9 * rest

    fit = qd.fit(log_density, start, progress=False)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    assert [row["name"] for row in loaded.summary()] == [row["name"] for row in fit.summary()]
    means = [float(leaf) for leaf in jax.tree.leaves(loaded.mean)]
    assert means == [float(leaf) for leaf in jax.tree.leaves(fit.mean)]
    flat = {
        jax.tree_util.keystr(path, simple=True): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(loaded.mean)
    }
    (slope,) = [value for name, value in flat.items() if name.endswith("slope")]
    np.testing.assert_allclose(slope, 5.0, atol=1e-5)


def test_a_saved_fit_is_readable_without_this_library(tmp_path):
    path = problems.fitted("poisson").save(tmp_path / "fit.npz")
    with np.load(path, allow_pickle=False) as archive:
        text = json.loads(str(archive["fit.json"]))
        np.testing.assert_array_equal(archive["posterior.0"], problems.fitted("poisson").posterior.mean)
    assert text["numbers"]["bound"] == problems.fitted("poisson").bound
    assert text["settings"]["seed"] == 0
