"""Many fits at once: each is what `fit` would have found alone, and no failure spoils another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd
from quenched.fitting.run import FEW
from registry import halves
from several import SAME, assert_same, counts, several, skewed
from tracing import Traces

SCHOOLS = problems.PROBLEMS["eight_schools"]


def alone(name: str, data, index: int, **options) -> qd.Fit:
    return problems.PROBLEMS[name].fit(data=jax.tree.map(lambda leaf: leaf[index], data), throw=False, **options)


def together(name: str, data, **options) -> qd.Fits:
    problem = problems.PROBLEMS[name]
    settings = {"transforms": problem.transforms, "progress": False, **options}
    return qd.fit_many(problem.log_density, problem.start, data, **settings)


@pytest.mark.parametrize("name", ["funnel", "constrained", "eight_schools"])
def test_each_is_what_fit_finds_alone(name):
    """Also for those that need a short fit first (eight schools) and those whose draws grow (funnel)."""
    data = several(name, 3)
    fits = together(name, data)
    assert len(fits) == 3
    for index, fit in enumerate(fits):
        assert_same(fit, alone(name, data, index))


@pytest.mark.parametrize("family", ["diagonal", halves(5)], ids=["diagonal", "blocks"])
def test_families_that_leave_out_correlations(family):
    data = several("logistic(5)", 3)
    fits = together("logistic(5)", data, family=family)
    for index, fit in enumerate(fits):
        assert_same(fit, alone("logistic(5)", data, index, family=family))


def test_fixed_draws_and_a_fixed_number_of_check_draws():
    data = several("poisson", 3)
    options = {"draws": qd.iid(50, 2), "check": 70, "seed": 3}
    for index, fit in enumerate(together("poisson", data, **options)):
        assert fit.n_draws == 50
        assert_same(fit, alone("poisson", data, index, **options))


def with_location(w, data, hyper):
    return -0.5 * jnp.sum((w - hyper["centre"]) ** 2) + jnp.sum(data * w - jnp.exp(w)) - 0.5 * hyper["centre"] ** 2


def test_hyperparameters_are_learned_for_each():
    data = np.random.default_rng(0).poisson(3.0, (4, 3)).astype(float)
    options = {"hyper": {"centre": 0.0}, "progress": False}
    fits = qd.fit_many(with_location, np.zeros(3), data, **options)
    assert fits.hyper["centre"].shape == (4,)
    for index, fit in enumerate(fits):
        other = qd.fit(with_location, np.zeros(3), data=data[index], **options)
        assert fit.hyper["centre"] == pytest.approx(other.hyper["centre"], abs=1e-5)
        assert fit.bound == pytest.approx(other.bound, abs=SAME)


def test_few_problems_are_fitted_one_by_one_and_are_the_same(monkeypatch):
    lanes = qd.fit_many(skewed, np.zeros(2), counts(3), progress=False)
    monkeypatch.setattr("quenched.fitting.run.FEW", FEW)
    monkeypatch.setattr("quenched.fitting.lanes.drive", None)  # which lanes would call
    few = qd.fit_many(skewed, np.zeros(2), counts(3), progress=False)
    for one, other in zip(few, lanes, strict=True):
        assert_same(one, other)
    with pytest.raises(TypeError, match="not callable"):
        qd.fit_many(skewed, np.zeros(2), counts(FEW), progress=False)


def test_problems_whose_gradients_are_work_are_fitted_one_by_one(monkeypatch):
    monkeypatch.setattr("quenched.fitting.run.HEAVY", 0)
    monkeypatch.setattr("quenched.fitting.lanes.drive", None)
    assert qd.fit_many(skewed, np.zeros(2), counts(3), progress=False)[0].converged


@pytest.mark.parametrize("size", [2, 12])
def test_problems_whose_work_is_lapack_are_fitted_one_by_one(size, monkeypatch):
    monkeypatch.setattr("quenched.fitting.lanes.drive", None)

    def log_density(w, y):
        covariance = jnp.eye(size) * jnp.exp(w[0]) + 1.0
        return -0.5 * y @ jnp.linalg.solve(covariance, y) - 0.5 * jnp.linalg.slogdet(covariance)[1] - 0.5 * w @ w

    fit_all = lambda: qd.fit_many(log_density, np.zeros(1), np.ones((3, size)), progress=False)
    if size == 12:
        assert fit_all()[0].converged
    else:
        with pytest.raises(TypeError, match="not callable"):
            fit_all()


def line(w, x):
    return w[0] + w[1] * x


def test_regressions_learn_the_precisions_of_each():
    generator = np.random.default_rng(1)
    x = np.tile(np.linspace(0.0, 1.0, 15), (3, 1))
    y = 1.0 + x + np.array([[0.1], [0.3], [1.0]]) * generator.standard_normal((3, 15))
    fits = qd.fit_many(qd.regression(line, x[0], y[0]), np.zeros(2), (x, y), progress=False)
    for index, fit in enumerate(fits):
        other = qd.fit(qd.regression(line, x[index], y[index]), np.zeros(2), progress=False)
        assert_same(fit, other)
        for name in ("prior_precision", "noise_precision"):
            assert fit.hyper[name] == pytest.approx(other.hyper[name], rel=1e-5)
    assert np.all(np.diff(fits.hyper["noise_precision"]) < 0)


def test_a_problem_may_have_its_own_start():
    """Two peaks: each start climbs the one it is next to."""
    data = {"centre": np.tile(np.array([8.0, 0.0]), (2, 1))}
    starts = np.array([[-9.0, 0.1], [9.0, 0.1]])
    fits = qd.fit_many(problems.two_peaks, starts, data, own_starts=True, progress=False)
    for index, fit in enumerate(fits):
        assert_same(
            fit, qd.fit(problems.two_peaks, starts[index], data={"centre": data["centre"][index]}, progress=False)
        )


# More problems than lanes, and problems that fail.


@pytest.fixture(scope="module")
def crowd():
    """300 problems, of which four are spoilt in three ways."""
    data = counts(300)
    data["y"][7, 3] = np.nan
    data["x"][[100, 299]] = np.inf
    data["y"][250] = np.inf
    with pytest.warns(UserWarning, match="4 of 300 fits failed; the first is problem 7: data: y has 1 NaN") as caught:
        fits = qd.fit_many(skewed, np.zeros(2), data, progress=False)
    assert len(caught) == 1
    return data, fits


def test_bad_data_spoil_no_other_fit(crowd):
    data, fits = crowd
    bad = [7, 100, 250, 299]
    np.testing.assert_array_equal(np.flatnonzero(fits.failed), bad)
    np.testing.assert_array_equal(np.flatnonzero(~fits.converged), bad)
    for index in (0, 6, 8, 99, 128, 251, 298):
        one = jax.tree.map(lambda leaf: leaf[index], data)  # noqa: B023
        assert_same(fits[index], qd.fit(skewed, np.zeros(2), data=one, progress=False))


def test_a_failure_says_what_fit_says(crowd):
    data, fits = crowd
    assert fits[7].status is qd.Status.NOT_FINITE
    assert "first at index (3,)" in fits[7].message
    alone = qd.fit(skewed, np.zeros(2), data=jax.tree.map(lambda leaf: leaf[100], data), throw=False, progress=False)
    assert fits[100].message == alone.message
    assert "296 of 300 fits converged" in fits.verdict
    assert "4 not_finite (problem 7, 100, 250, 299)" in fits.verdict


def test_throwing_gives_all_the_others_too():
    data = counts(3)
    data["y"][1] = np.nan
    with pytest.raises(qd.FitError, match="1 of 3 fits failed; the first is problem 1") as raised:
        qd.fit_many(skewed, np.zeros(2), data, throw=True, progress=False)
    assert raised.value.fit.status is qd.Status.NOT_FINITE
    assert list(raised.value.fits.converged) == [True, False, True]


def test_when_all_are_bad_nothing_is_computed():
    data = counts(3)
    data["y"][:] = np.nan
    with pytest.warns(UserWarning, match="3 of 3 fits failed"):
        fits = qd.fit_many(skewed, np.zeros(2), data, progress=False)
    assert fits.failed.all()
    assert fits.n_evaluations.sum() == 0


def test_time_that_is_up_is_a_status_of_its_own():
    fits = qd.fit_many(skewed, np.zeros(2), counts(3), max_seconds=1e-9, progress=False)
    assert set(fits.status) == {qd.Status.MAX_SECONDS}
    assert not fits.failed.any()
    assert "max_seconds" in fits[0].message


def test_growth_ends_at_max_draws():
    data = several("funnel", 3)
    fits = together("funnel", data, max_draws=128, tolerance=1e-6)
    assert set(fits.n_draws) == {128}
    assert fits.converged.all()
    assert not fits.draws_suffice.any()


def test_little_memory_changes_nothing(crowd):
    data, fits = crowd
    some = jax.tree.map(lambda leaf: leaf[:3], data)
    narrow = qd.fit_many(skewed, np.zeros(2), some, memory=50_000, progress=False)
    np.testing.assert_allclose(narrow.bound, fits.bound[:3], atol=1e-10)


def test_functions_on_the_host_are_fitted_one_by_one():
    def function(w, data):
        return -0.5 * float(np.sum((w - data) ** 2)), data - w

    fits = qd.fit_many(
        qd.from_value_and_grad(function), np.zeros(2), np.array([[1.0, 2.0], [3.0, 4.0]]), progress=False
    )
    np.testing.assert_allclose(fits.mean, [[1.0, 2.0], [3.0, 4.0]], atol=1e-6)


# The result.


def test_the_result_is_a_sequence_of_fits(crowd):
    _, fits = crowd
    assert isinstance(fits[0], qd.Fit)
    assert fits[-1].message == fits[299].message
    some = fits[fits.converged]
    assert isinstance(some, qd.Fits)
    assert len(some) == 296
    assert some.converged.all()
    np.testing.assert_array_equal(fits[5:9].bound, fits.bound[5:9])
    assert fits[[9, 5]][1].bound == fits[5].bound
    assert [fit.bound for fit in fits[:3]] == list(fits.bound[:3])
    with pytest.raises(IndexError, match="index 300: there are 300 fits"):
        fits[300]
    np.testing.assert_array_equal(fits.status == "converged", fits.converged)


def test_moments_are_those_of_the_single_fits():
    fits = together("constrained", several("constrained", 3))
    for name in ("rate", "share", "parts", "knots"):
        for index, fit in enumerate(fits):
            np.testing.assert_allclose(fits.mean[name][index], fit.mean[name], rtol=1e-10)
            np.testing.assert_allclose(fits.sd[name][index], fit.sd[name], rtol=1e-10)
    np.testing.assert_allclose(fits.covariance[1], fits[1].covariance, rtol=1e-12)


def test_the_table_has_one_row_per_problem():
    fits = together("eight_schools", several("eight_schools", 3))
    table = fits.table()
    assert {"status", "bound", "gap", "mu.mean", "tau.sd", "theta[7].mean"} <= set(table)
    assert {len(column) for column in table.values()} == {3}
    assert table["theta[7].mean"][1] == fits[1].mean["theta"][7]
    assert "3 of 3 fits converged" in str(fits)


@pytest.mark.parametrize("family", ["diagonal", halves(5)], ids=["diagonal", "blocks"])
def test_saved_and_loaded_they_are_the_same(tmp_path, family):
    data = several("logistic(5)", 3)
    data["labels"][1] = np.nan
    with pytest.warns(UserWarning, match="1 of 3"):
        fits = together("logistic(5)", data, family=family)
    loaded = qd.load(fits.save(tmp_path / "fits.npz"))
    assert isinstance(loaded, qd.Fits)
    for name in ("bound", "check_bound", "status", "rounds", "n_draws"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(fits, name))
    assert loaded.message == fits.message
    assert loaded.settings == fits.settings
    assert_same(loaded[2], fits[2])
    assert str(loaded) == str(fits)


# Misuse, and what is compiled.


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((), "data: there are none"),
        ({"x": np.zeros((2, 3)), "y": np.zeros((3, 3))}, "data: x has 2 problems along its first axis, y has 3"),
        ({"x": np.zeros((2, 3)), "y": np.asarray(1.0)}, "data: y is a single number"),
        (np.zeros((0, 3)), "no problems at all"),
        (np.array([["a"], ["b"]]), "data: data has dtype"),
    ],
)
def test_data_that_cannot_be_problems_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        qd.fit_many(lambda w, data: -jnp.sum(w**2), np.zeros(2), data, progress=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "joint"}, "method='joint' is not a method"),
        ({"own_starts": True}, "start: with own_starts=True each of the 3 problems needs its own"),
        ({"tolerence": 1.0}, "tolerence: fit_many has no such option; did you mean tolerance?"),
        ({"draws": 2}, "draws=2: matched draws come in pairs"),
        ({"check": 1}, "check=1"),
    ],
)
def test_misuse_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        qd.fit_many(skewed, np.zeros(2), counts(3), progress=False, **options)


def test_one_trace_serves_all_problems_and_the_next_call():
    traces = Traces()
    note = traces.logger

    def model(w, data):
        note.info("traced")
        return skewed(w, data)

    first = qd.fit_many(model, np.zeros(2), counts(5), progress=False)
    assert traces.n == 1
    second = qd.fit_many(model, np.zeros(2), jax.tree.map(lambda leaf: leaf[::-1], counts(5)), progress=False)
    assert traces.n == 1
    np.testing.assert_allclose(second.bound, first.bound[::-1], atol=1e-9)


def test_one_of_many_is_diagnosed_as_if_it_were_alone():
    data, top = several("poisson", 3), qd.Joint(gradient_tolerance=1e-7)
    chosen = together("poisson", data, method=top)[[2, 0]]
    other = alone("poisson", data, 2, method=top).diagnose(progress=False)
    diagnosis = chosen[0].diagnose(progress=False)
    assert diagnosis.optimisation_error < 1e-8
    assert diagnosis.khat == pytest.approx(other.khat, abs=1e-6)
    np.testing.assert_allclose(diagnosis.mean_error, other.mean_error, rtol=1e-4)


def test_problems_that_are_taken_in_parts_are_what_they_are_together():
    """A hundred thousand bytes hold a few of them at a time."""
    data = counts(300)
    whole, parts = (qd.fit_many(skewed, np.zeros(2), data, memory=memory, progress=False) for memory in (None, 100_000))
    for one, other in zip(whole[:40:13], parts[:40:13], strict=True):
        assert_same(one, other)
    np.testing.assert_allclose(parts.bound, whole.bound, atol=SAME)
