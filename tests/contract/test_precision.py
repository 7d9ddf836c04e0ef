"""64 bits inside a fit and nowhere else; float32 data promoted; strict promotion of types."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd

NARROW = "gaussian(8, 1e+08)"


def test_the_log_density_sees_64_bits_whatever_it_is_given():
    seen = {}

    def log_density(w, data):
        seen.update(w=w.dtype, data=data["x"].dtype, count=data["count"].dtype, inside=jnp.zeros(1).dtype)
        return -0.5 * jnp.sum((w - data["x"]) ** 2) * data["count"]

    data = {"x": np.ones(2, np.float32), "count": np.asarray(3, np.int32)}
    with jax.enable_x64(False):
        fit = qd.fit(log_density, np.zeros(2, np.float32), data=data, draws=4, progress=False)
        assert jnp.zeros(1).dtype == jnp.float32
        assert fit.mean.dtype == np.float64
        np.testing.assert_allclose(fit.covariance, np.eye(2) / 3.0, atol=1e-12)
    assert seen["w"] == seen["data"] == seen["inside"] == jnp.float64
    assert jnp.issubdtype(seen["count"], jnp.integer)


def test_numpy_data_that_are_closed_over_keep_64_bits():
    """A difference that single precision cannot hold."""
    centre = np.array([1.0 + 1e-9])
    with jax.enable_x64(False):
        fit = qd.fit(lambda w: -0.5 * jnp.sum(((w - centre) / 1e-10) ** 2), np.ones(1), draws=2, progress=False)
    np.testing.assert_allclose(fit.mean - 1.0, 1e-9, rtol=1e-5)


def test_what_is_computed_from_a_fit_keeps_64_bits_outside_it():
    fit = problems.fitted(NARROW)
    with jax.enable_x64(False):
        assert fit.posterior.sample(3).dtype == np.float64
        assert fit.posterior.log_density(np.zeros(8)).dtype == np.float64
        covariance = fit.posterior.scale @ fit.posterior.scale.T
        np.testing.assert_allclose(covariance, fit.covariance, rtol=1e-10, atol=1e-20)
        mean = qd.fit(problems.gaussian_log_density, fit, data=problems.PROBLEMS[NARROW].data, progress=False).mean
    np.testing.assert_allclose(mean, fit.mean, atol=1e-7)


def test_files_keep_64_bits_outside_a_fit(tmp_path):
    fit = problems.fitted(NARROW)
    with jax.enable_x64(False):
        loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    np.testing.assert_array_equal(loaded.covariance, fit.covariance)
    assert loaded.covariance.dtype == np.float64


@pytest.mark.parametrize("family", ["full", "diagonal", qd.Blocks([2, 3])], ids=["full", "diagonal", "blocks"])
def test_strict_promotion_of_types_finds_no_fault(family):
    """The library mixes no types behind the user's back."""
    problem = problems.PROBLEMS["logistic(5)"]
    with jax.numpy_dtype_promotion("strict"):
        fit = problem.fit(family=family, draws=qd.matched(32, 5), seed=3)
    assert fit.converged


def test_strict_promotion_with_transforms_precisions_and_hyperparameters():
    with jax.numpy_dtype_promotion("strict"):
        parts = qd.fit(lambda p: jnp.sum(jnp.log(p)), np.full(3, 1 / 3), transforms=qd.simplex, draws=8, progress=False)
        assert parts.mean.sum() == pytest.approx(1.0)
        x = np.random.default_rng(0).standard_normal((20, 2))
        target = qd.regression(lambda w, x: x @ w, x, x[:, 0] + 0.1 * x[:, 1] ** 3)
        for method in (qd.Joint(), qd.Alternating(max_rounds=2)):
            qd.fit(target, np.zeros(2), method=method, draws=8, progress=False)
        log_density = lambda w, hyper: -0.5 * jnp.sum((w - hyper) ** 2) - 0.5 * hyper**2
        assert qd.fit(log_density, np.zeros(2), hyper=np.asarray(1.0), draws=8, progress=False).converged
        general = qd.with_gaussian_prior(lambda w: -jnp.sum(w**4), prior_mean=np.ones(2), prior_covariance=np.eye(2))
        assert qd.fit(general, np.zeros(2), draws=8, progress=False).converged
        host = qd.from_value_and_grad(lambda w: (-np.sum(w**4), -4.0 * w**3))
        assert qd.fit(host, np.ones(2), draws=8, progress=False).converged


FITTED = {
    "fit": lambda log_density: qd.fit(log_density, 0.0, progress=False).mean,
    "fit_many": lambda log_density: qd.fit_many(
        lambda w, shift: log_density(w - shift), 0.0, np.zeros(2), progress=False
    ).mean[1],
    "laplace": lambda log_density: qd.baselines.laplace(log_density, 0.0, progress=False).mean,
}


@pytest.mark.parametrize("called", FITTED)
def test_a_density_is_compiled_in_both_precisions(called):
    """JAX 0.10 remembers the arrays that a program closes over in the precision of the first one."""
    data = np.array([1.0, 2.0, 6.0 + 2.0**-40])
    log_density = lambda w: jnp.sum(-0.5 * (data - w) ** 2)
    with jax.enable_x64(False):
        before = jax.jit(log_density)
        assert before(0.0) == -20.5
        assert FITTED[called](log_density) == pytest.approx(data.mean(), abs=1e-9)
        after = jax.jit(lambda w: log_density(w))(0.0)
        assert (after.dtype, after) == (np.float32, -20.5)
        assert before(0.0) == -20.5
        assert jax.grad(log_density)(0.0) == 9.0


def test_an_array_has_the_precision_that_holds_wherever_it_is_used_first():
    """What is computed from the array alone would be in 32 bits unseen: nothing there is mixed with 64."""
    data = np.array([1.0 / 3.0, 2.0 / 3.0])
    log_density = lambda w: -0.5 * (w - jnp.dot(data, data)) ** 2
    with jax.enable_x64(False):
        jax.jit(log_density)(0.0)
        assert qd.fit(log_density, 0.0, progress=False).mean == pytest.approx(5.0 / 9.0, abs=1e-14)


# What NumPy says of floating-point errors.

RESTLESS = {
    "skewed": lambda w: jnp.sum(w - jnp.exp(w)),
    "narrow": lambda w: -0.5e12 * jnp.sum(w**2),
    "bent": lambda w: -0.5 * w[0] ** 2 - 2.0 * (w[1] - w[0] ** 2) ** 2,
    "flat": lambda w: 0.0 * w[0],
    "cut off": lambda w: jnp.sum(jnp.where(w > -0.1, -w, -jnp.inf)),
}


@pytest.fixture(params=["NumPy raises", "warnings are errors"])
def strict(request):
    with warnings.catch_warnings(), np.errstate(all="raise" if request.param == "NumPy raises" else "warn"):
        if request.param == "warnings are errors":
            warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.mark.parametrize("name", RESTLESS)
@pytest.mark.parametrize("family", ["full", "warped"])
def test_no_fit_is_lost_to_what_numpy_says_of_overflows(name, family, strict):
    before = np.geterr()
    fit = qd.fit(RESTLESS[name], np.zeros(2), family=family, max_draws=64, throw=False, progress=False)
    assert str(fit)
    fit.of(lambda w: jnp.exp(w[0]))
    if fit.converged:
        assert str(fit.diagnose())
    assert np.geterr() == before


def test_a_function_on_the_host_has_numpy_as_its_owner_has_it():
    seen = []

    def function(w):
        seen.append(np.geterr())
        return -0.5 * float(w @ w), -w

    with np.errstate(divide="raise", over="ignore"):
        mine = np.geterr()
        qd.fit(qd.from_value_and_grad(function), np.zeros(2), progress=False)
    assert all(each == mine for each in seen)


def test_a_traced_function_has_numpy_as_its_owner_has_it():
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        qd.fit(lambda w: -0.5 * jnp.sum(w**2) + np.ones(1)[0] / np.zeros(1)[0], np.zeros(2), progress=False)
