"""Simulators without gradient: the posterior of the same function with it, by differences or by linearisation."""

import numpy as np
import pytest

import quenched as qd
import simulators
from quenched.fitting import linearised


def apart(one, other):
    """Largest differences of means and of sds, in sds."""
    sd = np.sqrt(other.posterior.variance())
    means = np.abs(one.posterior.mean - other.posterior.mean) / sd
    return means.max(), np.abs(np.sqrt(one.posterior.variance()) / sd - 1.0).max()


def test_the_posterior_is_that_of_the_function_with_its_gradient():
    start = np.zeros(4)
    with_gradient = qd.fit(qd.from_value_and_grad(simulators.logistic), start, progress=False)
    calls = []
    fit = qd.fit(qd.from_value(lambda w: calls.append(0) or simulators.logistic_value(w)), start, progress=False)
    assert max(apart(fit, with_gradient)) < 1e-3
    assert fit.bound == pytest.approx(with_gradient.bound, abs=1e-6)
    assert fit.settings["calls"] == len(calls)
    assert fit.settings["method"] == "Joint"


def test_linearisation_takes_fewer_calls_where_it_is_taken(monkeypatch):
    target, start = qd.from_value(simulators.nearly_quadratic), np.zeros(12)
    chosen = qd.fit(target, start, progress=False)
    monkeypatch.setattr(linearised, "_pays", lambda *measured: False)
    by_differences = qd.fit(target, start, progress=False)
    assert chosen.converged
    assert chosen.settings["calls"] < 0.8 * by_differences.settings["calls"]
    assert max(apart(chosen, by_differences)) < 0.03


def test_other_families_are_fitted_by_differences():
    options = {"family": "diagonal", "progress": False}
    fit = qd.fit(qd.from_value(simulators.logistic_value), np.zeros(4), **options)
    same = qd.fit(qd.from_value_and_grad(simulators.logistic), np.zeros(4), **options)
    assert max(apart(fit, same)) < 1e-2


def test_transforms_and_their_jacobians_are_taken_into_account():
    log_density = lambda p: 3.0 * np.log(p["rate"]) - 2.0 * p["rate"]
    fit = qd.fit(qd.from_value(log_density), {"rate": 1.0}, transforms=qd.positive, progress=False)
    assert fit.mean["rate"] == pytest.approx(2.0, rel=0.03)  # Gamma(4, 2)
    assert fit.evidence == pytest.approx(np.log(6.0 / 16.0), abs=0.01)


@pytest.mark.parametrize("answer", [(1.0, np.zeros(2)), np.zeros(2), "one"])
def test_what_is_not_a_number_is_refused(answer):
    with pytest.raises(ValueError, match=r"fun returned .* must return one number"):
        qd.fit(qd.from_value(lambda w: answer), np.zeros(2), progress=False)
