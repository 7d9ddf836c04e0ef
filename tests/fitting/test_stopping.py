"""Fits that do not end well, or not by themselves: the partial result is never lost."""

import time

import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd

TOP = qd.Joint(gradient_tolerance=1e-5)


def quartic(w):
    return -float(np.sum(w**4) + 0.1 * np.sum(w**2)), -4.0 * w**3 - 0.2 * w


def counting(limit, error=KeyboardInterrupt):
    """A host function that raises `error` at one call, and then goes on as if nothing had happened."""
    calls = []

    def function(w):
        calls.append(w)
        if len(calls) == limit:
            raise error
        return quartic(w)

    return qd.from_value_and_grad(function), calls


def complete_calls(**options):
    """Calls of a fit that nothing disturbs; the last two are those of the check, and eight before of other draws."""
    target, calls = counting(10**9)
    qd.fit(target, np.ones(2), draws=8, check=2, progress=False, **options)
    return len(calls)


def test_an_interrupt_keeps_what_was_reached():
    """In the middle of the ascent: the best point so far, not the start."""
    target, _calls = counting(complete_calls() - 2 - 8 - 4)  # before the check and the look at other draws
    fit = qd.fit(target, np.ones(2), draws=8, check=2, progress=False)
    whole = qd.fit(qd.from_value_and_grad(quartic), np.ones(2), draws=8, check=2, method=TOP, progress=False)
    assert fit.status == "interrupted"
    assert not fit.converged
    assert "Interrupted; what was reached is kept. Resume with start=fit." in fit.verdict
    assert fit.n_objective_evaluations > 1
    assert np.isfinite(fit.check_bound)
    assert whole.bound - 0.05 < fit.bound < whole.bound
    resumed = qd.fit(qd.from_value_and_grad(quartic), fit, draws=8, check=2, progress=False)
    np.testing.assert_allclose(resumed.bound, whole.bound, atol=1e-8)


def test_an_interrupt_of_alternating_keeps_the_last_round():
    method = qd.Alternating(steps=3, tolerance=1e-12)
    target, _ = counting(complete_calls(method=method) // 2)
    fit = qd.fit(target, np.ones(2), draws=8, check=2, method=method, progress=False)
    assert fit.status == "interrupted"
    assert fit.n_rounds > 2
    assert fit.bound == max(fit.history.bound)


def test_an_interrupt_before_anything_was_reached_is_passed_on():
    target, _ = counting(2)
    with pytest.raises(KeyboardInterrupt):
        qd.fit(target, np.ones(2), draws=8, progress=False)


def test_an_error_of_the_users_function_is_passed_on_as_it_is():
    target, _ = counting(20, ZeroDivisionError("mine"))
    with pytest.raises(ZeroDivisionError, match="mine"):
        qd.fit(target, np.ones(2), draws=8, progress=False)


def test_time_that_runs_out_ends_a_fit():
    """At the next evaluation of the bound, with what was reached."""

    def slow(w):
        time.sleep(0.002)
        return quartic(w)

    fit = qd.fit(qd.from_value_and_grad(slow), np.ones(2), draws=8, check=2, max_seconds=1e-9, progress=False)
    assert fit.status == "max_seconds"
    assert fit.n_objective_evaluations <= 1
    assert "max_seconds" in fit.verdict
    assert np.isfinite(fit.bound)
    assert fit.seconds > 0
    rest = qd.fit(qd.from_value_and_grad(quartic), fit, draws=8, check=2, progress=False)
    assert rest.converged


def test_time_ends_alternating_too():
    options = {"draws": 8, "check": 2, "max_seconds": 1e-9, "progress": False}
    fit = qd.fit(qd.from_value_and_grad(quartic), np.ones(2), method=qd.Alternating(), **options)
    assert fit.status == "max_seconds"


def test_evaluations_that_run_out_end_a_fit():
    fit = problems.PROBLEMS["logistic(5)"].fit(draws=16, method=qd.Joint(max_evaluations=2))
    assert fit.status == "max_evaluations"
    assert fit.n_objective_evaluations == 2
    assert "raise the limit" in fit.verdict


def test_a_wrong_gradient_is_no_ascent():
    """Raised with the partial result, or returned when asked."""

    def function(w):  # right beside the start, where it is tried before the fit
        value, gradient = quartic(w)
        return value, gradient if np.max(np.abs(w - 1.0)) < 0.05 else -gradient + 1.0

    wrong = qd.from_value_and_grad(function)
    with pytest.raises(qd.FitError, match=r"no step raises the bound.*gradient right") as caught:
        qd.fit(wrong, np.ones(2), draws=8, progress=False)
    assert isinstance(caught.value.fit, qd.Fit)
    assert caught.value.fit.status == "no_ascent"
    fit = qd.fit(wrong, np.ones(2), draws=8, throw=False, progress=False)
    assert fit.status == "no_ascent"
    assert np.isfinite(fit.bound)
    np.testing.assert_array_equal(fit.mean, caught.value.fit.mean)


def test_a_start_that_is_not_finite_is_returned_when_asked():
    log_density = lambda p: jnp.log(p["rate"]) - p["rate"] - 0.5 * p["w"] ** 2
    start = {"rate": -1.0, "w": 0.0}
    fit = qd.fit(log_density, start, throw=False, progress=False)
    assert fit.status == "not_finite"
    assert "rate = -1" in fit.verdict
    assert fit.bound == -np.inf
    assert fit.n_rounds == 0
    assert fit.mean == start
    assert "not_finite" in str(fit)
    with pytest.raises(qd.FitError, match="rate = -1") as caught:
        qd.fit(log_density, start, progress=False)
    assert caught.value.fit.status is qd.Status.NOT_FINITE


def test_a_posterior_that_reaches_beyond_the_support_is_told():
    """The draws were kept inside; fresh ones are not."""
    log_density = lambda w: jnp.sum(2.0 * jnp.log(w) - w)  # NaN below zero
    fit = qd.fit(log_density, np.ones(2), draws=16, check=500, progress=False)
    assert not np.isfinite(fit.check_bound)
    assert "On fresh draws the log density is not finite" in fit.verdict
    assert "Give the parameter a transform" in fit.verdict
    inside = qd.fit(log_density, np.ones(2), draws=16, check=500, transforms=qd.positive, progress=False)
    assert np.isfinite(inside.check_bound)


def test_a_checkpoint_holds_the_result_after_each_round(tmp_path, monkeypatch):
    path = tmp_path / "run" / "checkpoint.npz"
    seen = []
    save = qd.fitting.rounds.save

    def noted(fit, where):
        seen.append(fit.n_draws)
        return save(fit, where)

    monkeypatch.setattr(qd.fitting.rounds, "save", noted)
    fit = problems.PROBLEMS["funnel"].fit(tolerance=1e-3, check=4000, max_draws=128, checkpoint=path)
    assert seen == [64, 128]
    loaded = qd.load(path)
    assert (loaded.bound, loaded.n_draws, loaded.n_rounds) == (fit.bound, 128, 2)
    assert qd.fit(problems.funnel, loaded, data=problems.PROBLEMS["funnel"].data, draws=128, progress=False).converged


def test_every_status_says_what_to_do():
    for status in qd.Status:
        assert status.message.endswith(".")
    assert qd.Status("converged") is qd.Status.CONVERGED


def test_a_log_density_of_single_precision_converges():
    """Its gradient cannot be made smaller than rounding allows, and the fit knows."""

    def single(w, data):
        scores = (data["features"] @ w).astype(jnp.float32)
        terms = data["labels"].astype(jnp.float32) * scores - jnp.logaddexp(jnp.float32(0.0), scores)
        return jnp.sum(terms) - 0.5 * jnp.sum(w.astype(jnp.float32) ** 2)

    problem = problems.PROBLEMS["logistic(5)"]
    fit = qd.fit(single, problem.start, data=problem.data, progress=False)
    assert fit.converged
    double = problems.fitted("logistic(5)")
    polished, rough = (
        qd.fit(density, problem.start, data=problem.data, method=TOP, progress=False)
        for density in (problem.log_density, single)
    )
    assert rough.converged
    assert rough.n_objective_evaluations < polished.n_objective_evaluations  # it does not fight the rounding
    sds = np.sqrt(np.diag(double.covariance))
    assert np.max(np.abs(fit.mean - double.mean) / sds) < 0.02
    np.testing.assert_allclose(fit.bound, double.bound + 0.5 * 5 * np.log(2.0 * np.pi), atol=1e-2)


@pytest.mark.parametrize(
    ("log_density", "who"),
    [
        (lambda p: -0.5 * p["a"] ** 2 + 0.0 * p["b"], "along b:"),  # flat
        (lambda p: -0.5 * (p["a"] + p["b"]) ** 2, "along (a, b|b, a):"),  # only their sum is known
        (lambda p: p["a"] - 0.5 * p["b"] ** 2, "along a:"),  # rises for ever
    ],
)
def test_an_improper_posterior_is_named(log_density, who):
    with pytest.raises(qd.FitError, match=f"run away {who} the log density does not fall off.*proper prior"):
        qd.fit(log_density, {"a": 0.0, "b": 0.0}, progress=False)
