"""Ascents that follow their draws are broken off, and more draws are taken; others are left alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.fitting import patience

INPUTS = np.linspace(-2.0, 2.0, 40)
OUTPUTS = np.sin(2.0 * INPUTS) + 0.1 * np.cos(37.0 * INPUTS)
HIDDEN = 6
START = {
    "into": np.linspace(-1.5, 1.5, HIDDEN),
    "shift": np.cos(np.arange(HIDDEN)),
    "out": 0.3 * np.sin(np.arange(HIDDEN) + 1.0),
    "noise": 0.5,
}
TRANSFORMS = {"noise": qd.positive}
quiet = {"transforms": TRANSFORMS, "progress": False, "throw": False}


def network(p, y):
    """One hidden layer, whose posterior is bent in many directions."""
    fitted = jnp.tanh(2.0 * jnp.asarray(INPUTS)[:, None] * p["into"] + 2.0 * p["shift"]) @ p["out"]
    prior = -0.5 * sum(jnp.sum(p[name] ** 2) for name in START)
    return prior - 0.5 * jnp.sum(((y - fitted) / p["noise"]) ** 2) - len(y) * jnp.log(p["noise"])


@pytest.fixture(scope="module")
def fitted():
    return qd.fit(network, START, data=OUTPUTS, **quiet)


def test_an_ascent_that_follows_its_draws_is_broken_off_and_draws_grow(fitted):
    first, *_, last = fitted.history
    start = 1500  # the search for a mode, and the short fit
    assert first.n_evaluations < (patience.PATIENCE + 8) * first.n_draws + start
    assert first.bound - first.check_bound > 0.05 * fitted.posterior.dim
    assert fitted.converged
    assert last.check_bound > first.check_bound + 1.0


def test_the_full_family_is_no_worse_than_the_diagonal_one(fitted):
    diagonal = qd.fit(network, START, data=OUTPUTS, family="diagonal", **quiet)
    assert fitted.check_bound > diagonal.check_bound - 2.0 * np.hypot(fitted.check_error, diagonal.check_error)


def test_without_patience_its_evaluations_go_into_the_first_draws(fitted, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE", 10_000)
    polished = qd.fit(network, START, data=OUTPUTS, **quiet)
    assert polished.history[0].n_evaluations > 2 * fitted.history[0].n_evaluations
    assert polished.check_bound < fitted.check_bound


def test_a_fit_that_follows_its_draws_may_take_more_unless_told_otherwise(fitted):
    bounded = qd.fit(network, START, data=OUTPUTS, max_draws=256, **quiet)
    assert bounded.n_draws <= 256 < fitted.n_draws


def test_a_slow_ascent_with_which_other_draws_agree_goes_on(monkeypatch):
    """Broken off after a few turns by the clock of the test, none is lost: the same top is reached."""
    slope = np.exp(np.linspace(0.0, 3.0, 6))
    skewed = lambda w: jnp.sum(slope * w - jnp.exp(slope * w)) - 0.5 * jnp.sum(w) ** 2
    whole = qd.fit(skewed, np.zeros(6), progress=False)
    monkeypatch.setattr(patience, "PATIENCE", 4)
    halting = qd.fit(skewed, np.zeros(6), progress=False)
    assert halting.converged
    assert halting.n_draws == whole.n_draws
    assert halting.bound == pytest.approx(whole.bound, abs=2e-3)
    assert halting.n_evaluations < 1.5 * whole.n_evaluations


def test_in_lanes_it_is_as_alone():
    """Short of the top, which takes long: those that go on are told apart from those that do not."""
    others = OUTPUTS + np.random.default_rng(1).standard_normal((40, len(OUTPUTS))) * np.linspace(0.0, 1.0, 40)[:, None]
    few = {"max_draws": 152, "method": qd.Joint(max_evaluations=60), "check": 640} | quiet
    fits = qd.fit_many(network, START, others, **few)
    for place in (0, 39):
        alone = qd.fit(network, START, data=others[place], **few)
        assert fits.n_draws[place] == alone.n_draws
        assert fits.bound[place] == pytest.approx(alone.bound, abs=1e-3)
