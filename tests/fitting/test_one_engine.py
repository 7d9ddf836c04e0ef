"""One fit is a batch of one: what `fit` does, says and warns of, `fit_many` does too."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd
import registry
from quenched.fitting.lanes import Lanes
from several import assert_same, counts, several, skewed


def rough(w, data):
    """A banana whose ridge the data move: the warped family grows its draws on it."""
    return -0.5 * w[0] ** 2 - 0.5 * (w[1] - data * w[0] ** 2) ** 2 / 0.25


@pytest.mark.parametrize("family", ["full", "warped"])
def test_families_in_lanes_are_what_they_are_alone(family):
    data = np.array([0.5, 1.0])
    options = {"family": family, "max_draws": 512, "progress": False}
    fits = qd.fit_many(rough, np.zeros(2), data, **options)
    for index, fit in enumerate(fits):
        other = qd.fit(rough, np.zeros(2), data=data[index], **options)
        assert (fit.status, fit.n_draws) == (other.status, other.n_draws)
        assert_same(fit, other)


def test_other_methods_are_run_problem_by_problem():
    data, method = counts(2), qd.Alternating(max_rounds=3)
    fits = qd.fit_many(skewed, np.zeros(2), data, method=method, draws=16, progress=False)
    for index, fit in enumerate(fits):
        one = jax.tree.map(lambda leaf: leaf[index], data)  # noqa: B023
        assert_same(fit, qd.fit(skewed, np.zeros(2), data=one, method=method, draws=16, progress=False))


def told(call):
    """The warnings of a call, as texts, and its result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return [str(warning.message) for warning in caught], result


def test_the_warnings_of_many_are_those_of_one():
    """Draws that do not span the coordinates, with an exact prior."""
    target = qd.with_gaussian_prior(lambda w, y: -0.5 * jnp.sum((w - y) ** 2), prior_precision=1.0)
    data, draws = np.random.default_rng(0).standard_normal((3, 6)), qd.iid(4, 6)
    many, _ = told(lambda: qd.fit_many(target, np.zeros(6), data, draws=draws, progress=False))
    one, _ = told(lambda: qd.fit(target, np.zeros(6), data=data[0], draws=draws, progress=False))
    assert many == one
    assert "4 draws do not span the 6 coupled coordinates" in one[0]


def test_a_limit_on_memory_limits_the_growth_of_many_too():
    data = several("funnel", 2)
    options = {"tolerance": 1e-9, "check": 100, "max_draws": 1024, "memory": 100_000, "progress": False}
    problem = problems.PROBLEMS["funnel"]
    fits = qd.fit_many(problem.log_density, problem.start, data, **options)
    alone = problem.fit(data=jax.tree.map(lambda leaf: leaf[0], data), **options)
    assert fits.n_draws[0] == alone.n_draws < 1024


def test_what_a_problem_cost_before_it_was_tried_alone_is_counted():
    """A wrong gradient: lanes give up, then the host tries four starts."""

    @jax.custom_jvp
    def wrong(w):
        return -jnp.sum(w**4)

    wrong.defjvp(
        lambda primals, tangents: (wrong(*primals), jnp.sum(4.0 * primals[0] ** 3 * tangents[0]) + tangents[0].sum())
    )
    log_density = lambda w, data: wrong(w - data)
    data = np.zeros((2, 2))
    with pytest.warns(UserWarning, match="2 of 2 fits failed"):
        fits = qd.fit_many(log_density, np.ones(2), data, draws=8, check=2, progress=False)
    alone = qd.fit(log_density, np.ones(2), data=data[0], draws=8, check=2, throw=False, progress=False)
    assert fits[0].status == alone.status == "no_ascent"
    assert fits[0].bound == pytest.approx(alone.bound, abs=1e-6)
    assert fits.n_evaluations[0] > alone.n_evaluations


def test_an_interrupt_half_way_keeps_the_problems_that_have_ended(monkeypatch):
    """Ctrl-C while the draws of some grow: the others have converged, and say so."""
    climb, calls = Lanes.climb, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:  # the first growth
            raise KeyboardInterrupt
        return climb(*arguments)

    monkeypatch.setattr(Lanes, "climb", interrupted)
    data = np.array([0.0, 1.0, 0.0, 2.0])  # without a bend it is Gaussian, and the first draws suffice
    fits = qd.fit_many(rough, np.zeros(2), data, max_draws=256, tolerance=1e-6, progress=False)
    assert len(calls) == 2
    assert fits.status.tolist() == ["converged", "interrupted"] * 2
    assert len(set(fits.n_draws)) == 1
    assert np.isfinite(fits.bound).all()
    assert np.isfinite(fits.check_bound).all()


def test_an_interrupt_of_problems_on_the_host_keeps_those_before():
    def function(w, data):
        if data[0] == 3.0:
            raise KeyboardInterrupt
        return -0.5 * float(np.sum((w - data) ** 2)), data - w

    data = np.array([[1.0], [2.0], [3.0], [4.0]])
    fits = qd.fit_many(qd.from_value_and_grad(function), np.zeros(1), data, draws=4, progress=False)
    assert [str(status) for status in fits.status] == ["converged", "converged", "interrupted", "interrupted"]
    np.testing.assert_allclose(fits.mean[:2], data[:2], atol=1e-6)


# What a fit has reached carries its own draws.


def heavy(w, data):
    return -2.0 * jnp.sum(jnp.log1p((data @ w) ** 2 / 3.0))


MIXING = np.eye(4) + 0.5 * np.random.default_rng(0).standard_normal((4, 4))


@pytest.mark.parametrize("name", registry.FAMILIES)
def test_a_fit_that_has_grown_is_saved_attached_and_diagnosed(name, tmp_path):
    family = registry.FAMILIES[name](4)
    options = {"data": MIXING, "tolerance": 1e-4, "max_draws": 512 if name == "warped" else 128, "check": 200}
    fit = qd.fit(heavy, np.zeros(4), family=family, progress=False, **options)
    assert fit.n_rounds > 1
    attached = qd.load(fit.save(tmp_path / "fit.npz")).attach(heavy, data=MIXING)
    assert attached.origin.draws.n == fit.n_draws == attached.n_draws
    ours, theirs = (one.diagnose(samples=100, replicates=2, progress=False) for one in (fit, attached))
    assert theirs.optimisation_error == pytest.approx(ours.optimisation_error, abs=1e-9)
    assert theirs.khat == pytest.approx(ours.khat, abs=1e-9)


def test_a_warped_fit_that_falls_back_after_growth_stands_on_the_draws_of_its_gaussian(tmp_path, monkeypatch):
    """The Gaussian's bound is that of the first draws, and so are its draws, in a file too."""
    monkeypatch.setattr("quenched.families.Warped.first_draws", lambda self, sizes: 10)  # too few: a warp follows them
    problem = problems.PROBLEMS["logistic(5)"]
    fit = problem.fit(family="warped", max_draws=20, tolerance=1e-4, check=400)
    assert "this is the Gaussian" in fit.verdict
    assert max(fit.history.n_draws) > fit.n_draws == 10
    last = fit.history[-1]
    assert (last.n_draws, last.bound, last.check_bound) == (fit.n_draws, fit.bound, fit.check_bound)
    attached = qd.load(fit.save(tmp_path / "fit.npz")).attach(problem.log_density, data=problem.data)
    assert attached.origin.draws.n == 10
    assert attached.diagnose(samples=100, replicates=2, progress=False).n_evaluations > 0


def test_when_other_starts_lose_the_check_is_that_of_the_first():
    """The check bound belongs to the posterior that is returned."""

    def function(w):  # its gradient is right where it is tried before the fit, beside the start, and wrong elsewhere
        near = np.max(np.abs(w - 1.0)) < 0.05
        return -float(np.sum(w**4)), -4.0 * w**3 if near else 4.0 * w**3 + 1.0

    wrong = qd.from_value_and_grad(function)
    fit = qd.fit(wrong, np.ones(2), draws=8, check=400, throw=False, progress=False)
    assert fit.status == "no_ascent"
    fresh = qd.assess(wrong, fit, np.ones(2), draws=8, check=400, progress=False)
    assert fit.bound == pytest.approx(fresh.bound, abs=1e-9)
    assert fit.check_bound == pytest.approx(fresh.check_bound, abs=1e-9)


# Posteriors that are given.


def test_a_given_posterior_is_judged():
    problem = problems.gaussian(3, 1e3)
    options = {"data": problem.data, "progress": False}
    fit = qd.assess(problem.log_density, (problem.mean, problem.covariance), problem.start, **options)
    assert fit.status == "given"
    assert not fit.converged
    assert fit.bound == pytest.approx(problem.evidence, abs=1e-8)
    assert fit.check_bound == pytest.approx(problem.evidence, abs=1e-8)
    wide = qd.assess(problem.log_density, (problem.mean, 4.0 * problem.covariance), problem.start, **options)
    assert problem.evidence - wide.bound == pytest.approx(0.5 * 3 * (4.0 - 1.0 - np.log(4.0)), abs=1e-8)
    assert qd.fit(problem.log_density, wide, **options).bound == pytest.approx(problem.evidence, abs=1e-6)


@pytest.mark.parametrize("name", registry.FAMILIES)
def test_assessing_a_fit_gives_its_bounds(name):
    problem = problems.PROBLEMS["logistic(2)"]
    fit = problem.fit(family=registry.FAMILIES[name](2), draws=64, check=300)
    again = qd.assess(problem.log_density, fit, problem.start, data=problem.data, draws=64, check=300, progress=False)
    assert again.bound == pytest.approx(fit.bound, abs=1e-10)
    assert again.check_bound == pytest.approx(fit.check_bound, abs=1e-10)


@pytest.mark.parametrize(
    ("posterior", "words"),
    [
        ((np.zeros(2), np.eye(3)), r"the mean has shape \(2,\) and the covariance \(3, 3\)"),
        ((np.zeros(2), -np.eye(2)), "not symmetric and positive definite"),
        ((np.zeros(2), np.array([[1.0, 0.5], [0.0, 1.0]])), "not symmetric and positive definite"),
        (3.0, "give \\(mean, covariance\\)"),
    ],
)
def test_what_is_no_posterior_is_refused(posterior, words):
    with pytest.raises(ValueError, match=f"posterior.*{words}"):
        qd.assess(lambda w: -0.5 * w @ w, posterior, np.zeros(2), progress=False)


# Models.


def test_a_model_needs_nothing_else():
    model = qd.Model(problems.constrained, **_of("constrained"))
    fit = qd.fit(model, progress=False)
    assert fit.bound == problems.fitted("constrained").bound
    assert qd.laplace(model, progress=False).settings["method"] == "Laplace"
    other = qd.fit(model, data={"weights": np.array([9.0, 1.0, 5.0])}, progress=False)
    assert other.bound != fit.bound


def _of(name):
    problem = problems.PROBLEMS[name]
    return {"start": problem.start, "transforms": problem.transforms, "data": problem.data}


def test_a_log_density_without_a_start_is_refused():
    with pytest.raises(ValueError, match="start: is missing"):
        qd.fit(lambda w: -0.5 * w @ w)


def test_other_transforms_than_those_of_the_earlier_fit_are_taken():
    """They were ignored: the posterior stayed in the old space."""
    log_density = lambda p: 4.0 * jnp.log(p["w"]) - 2.0 * p["w"]
    first = qd.fit(log_density, {"w": 1.0}, transforms={"w": qd.positive}, progress=False)
    narrow = qd.fit(log_density, first, transforms={"w": qd.interval(0.0, 4.0)}, progress=False)
    assert narrow.space.leaves[0].transform == qd.interval(0.0, 4.0)
    assert narrow.sample(200)["w"].max() <= 4.0
    same = qd.fit(log_density, first, transforms={"w": qd.positive}, progress=False)
    assert same.bound > first.bound  # it goes on from there


# Densities without a posterior.

IMPROPER = {
    "flat": lambda w: 0.0 * jnp.sum(w),
    "flat in one": lambda w: -0.5 * w[0] ** 2 + 0.0 * w[1],
    "rising": lambda w: w[0] - 0.5 * w[1] ** 2,
    "sum alone": lambda w: -0.5 * (w[0] + w[1]) ** 2,
    "one side": lambda w: -jnp.exp(w[0]) - 0.5 * w[1] ** 2,
}


WAYS = {
    "full": {},
    "diagonal": {"family": "diagonal"},
    "warped": {"family": "warped"},
    "alternating": {"method": qd.Alternating(max_rounds=60)},
}
# Without correlations the sum holds each of two parameters: the diagonal family has a best member there.
NO_POSTERIOR = [(name, way) for name in IMPROPER for way in WAYS if (name, way) != ("sum alone", "diagonal")]


@pytest.mark.parametrize(("name", "way"), NO_POSTERIOR)
def test_what_has_no_posterior_never_converges(name, way):
    fit = qd.fit(IMPROPER[name], np.zeros(2), throw=False, progress=False, max_draws=64, **WAYS[way])
    assert not fit.converged


@pytest.mark.parametrize("options", [{"steps": 0}, {"initial_scale": 0.0}, {"tolerance": -1.0}, {"max_rounds": 0}])
def test_a_method_that_cannot_move_is_refused(options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=rf"Alternating\({name}={value}\): a positive number"):
        qd.Alternating(**options)
