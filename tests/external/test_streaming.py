"""Fresh draws and minibatches: the frozen answer, by fewer passes over the data."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hostile_densities
import quenched as qd
from hostile_densities import complaint
from quenched.execute import Expired
from quenched.fitting.streaming import Source

pytest.importorskip("optax")

RANDOM = np.random.default_rng([16, 6])
N, DIM = 40_000, 6
DESIGN = RANDOM.standard_normal((N, DIM)) * np.geomspace(0.3, 3.0, DIM)
LABELS = np.where(RANDOM.random(N) < 1.0 / (1.0 + np.exp(-DESIGN @ np.linspace(-0.5, 0.5, DIM))), 1.0, -1.0)
START = {"w": np.zeros(DIM)}


def target():
    return qd.sum_of(
        qd.each(lambda seen, y: jax.nn.log_sigmoid(y * seen["w"]), LABELS, sees={"w": qd.dot(DESIGN)}),
        qd.each(lambda seen: -0.5 * jnp.sum(seen["w"] ** 2), sees={"w": qd.whole}),
    )


def apart(one, other):
    return np.max(np.abs(one.posterior.mean - other.posterior.mean) / np.sqrt(other.posterior.variance()))


@pytest.fixture(scope="module")
def frozen():
    return qd.fit(target(), START, progress=False)


def test_minibatches_and_a_polish_find_the_frozen_answer(frozen):
    fit = qd.fit(target(), START, method=qd.Streaming(), progress=False)
    assert fit.converged
    assert fit.settings["method"] == "Streaming"
    assert apart(fit, frozen) < 0.02
    assert fit.bound == pytest.approx(frozen.bound, abs=0.01)
    steps, passes = re.search(r"Streamed in (\d+) steps, ([\d.]+) passes over the data", fit.message).groups()
    assert int(steps) >= 32
    assert float(passes) < 0.1 * int(steps)
    again = qd.fit(target(), START, method=qd.Streaming(), progress=False)
    np.testing.assert_array_equal(again.posterior.mean, fit.posterior.mean)  # fresh is not random


def test_without_a_polish_the_stop_rule_keeps_its_word(frozen):
    fit = qd.fit(target(), START, method=qd.Streaming(polish=False), progress=False)
    assert fit.converged
    assert frozen.bound - fit.bound < fit.settings["tolerance"]


def test_the_stop_rule_says_how_much_is_left(frozen):
    """By the divergence from the frozen answer; over problems and seeds `benchmarks/stop_rule.py` shows more."""
    said, left = [], []
    for seed in range(3):
        options = {"family": "full", "draws": 64, "check": 64, "tolerance": 2.0, "seed": seed}
        fit = qd.fit(target(), START, method=qd.Streaming(polish=False), progress=False, **options)
        said.append(float(re.search(r"left about ([\d.e-]+) nats", fit.message).group(1)))
        away = np.linalg.solve(np.linalg.cholesky(frozen.covariance), fit.posterior.mean - frozen.posterior.mean)
        ratio = np.linalg.solve(frozen.covariance, fit.covariance)
        left.append(0.5 * (away @ away + np.trace(ratio) - DIM - np.linalg.slogdet(ratio)[1]))
    assert max(left) < 2.0
    assert 0.1 < np.mean(np.array(left) / said) < 2.0


def test_fresh_draws_alone_fit_any_log_density():
    log_density = lambda w: -0.5 * jnp.sum((w - 1.0) ** 2) - 0.05 * jnp.sum(w**4)
    fit, frozen = (
        qd.fit(log_density, np.zeros(3), method=method, progress=False) for method in (qd.Streaming(), qd.Joint())
    )
    assert apart(fit, frozen) < 0.02


@pytest.mark.parametrize("wrong", [{"optimiser": "sdg"}, {"rows": 0}, {"draws": 2.5}])
def test_misuse_is_told(wrong):
    with pytest.raises(ValueError, match=f"Streaming.{next(iter(wrong))}="):
        qd.Streaming(**wrong)


def test_rows_stay_in_their_file(tmp_path):
    np.save(tmp_path / "design.npy", DESIGN.astype(np.float32))
    design = np.load(tmp_path / "design.npy", mmap_mode="r")
    mapped = qd.sum_of(
        qd.each(lambda seen, y: jax.nn.log_sigmoid(y * seen["w"]), LABELS, sees={"w": qd.dot(design)}),
        qd.each(lambda seen: -0.5 * jnp.sum(seen["w"] ** 2), sees={"w": qd.whole}),
    )
    fit = qd.fit(mapped, START, method=qd.Streaming(), draws=16, check=32, progress=False)
    own = qd.fit(target(), START, family="full", draws=16, check=32, progress=False)
    assert fit.settings["rows"] == "in blocks"
    np.testing.assert_array_less(np.abs(fit.mean["w"] - own.mean["w"]) / own.sd["w"], 0.05)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of arithmetic with such numbers
@pytest.mark.parametrize("name", ["linear", "step", "support ends", "upside down"])
def test_a_stream_that_leads_nowhere_says_why(name):
    """By a frozen ascent from the start, as any other fit would."""
    assert complaint(name, hostile_densities.fit(name, method=qd.Streaming())) == ""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["upside down", "linear", "flat on one side", "box", "infinite in a region"])
def test_without_a_polish_the_cause_is_named_too(name):
    assert complaint(name, hostile_densities.fit(name, method=qd.Streaming(polish=False, max_steps=320))) == ""


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Expired])
def test_a_stream_that_is_stopped_keeps_its_last_window(stop, monkeypatch):
    """Also in the middle of a window, and where a frozen ascent on the way would keep it to itself."""
    fresh, steps = Source.fresh, []

    def stopping(self):
        steps.append(0)
        if len(steps) == 40:
            raise stop
        return fresh(self)

    monkeypatch.setattr(Source, "fresh", stopping)
    away = lambda w: -jnp.sum(jnp.cosh(w - 3.0))
    method = qd.Streaming(polish=False, draws=2, max_steps=96, optimiser="adam")
    fit = qd.fit(away, np.zeros(2), method=method, tolerance=1e-6, progress=False)  # one window is not enough for that
    assert len(steps) == 40
    assert fit.status == ("interrupted" if stop is KeyboardInterrupt else "max_seconds")
    assert fit.n_rounds == 1
    assert np.all(np.abs(fit.mean - 3.0) < 1.0)


def test_a_stream_whose_time_is_up_does_not_go_on_to_the_end_of_a_window(monkeypatch):
    fresh, steps = Source.fresh, []
    monkeypatch.setattr(Source, "fresh", lambda self: steps.append(0) or fresh(self))
    fit = qd.fit(target(), START, method=qd.Streaming(), max_seconds=1e-9, progress=False)
    assert len(steps) == 1
    assert fit.status == "max_seconds"
    assert np.isfinite(fit.bound)


def test_a_stream_that_led_nowhere_does_not_leave_a_few_directions_unfound():
    """No curvature at the start, and none of the correlations either: no gradient turns directions that stretch nothing."""
    precision = np.linalg.inv(np.diag(np.linspace(1.0, 2.0, DIM)) + 3.0)
    root = np.linalg.cholesky(precision).T
    quartic = lambda w: -jnp.sum((root @ w) ** 4)
    full = qd.fit(quartic, np.zeros(DIM), progress=False)
    fit = qd.fit(quartic, np.zeros(DIM), family=qd.LowRank(3), method=qd.Streaming(), progress=False)
    assert "led nowhere" in fit.message
    np.testing.assert_allclose(
        fit.posterior.variance(), full.posterior.variance(), rtol=0.3
    )  # half of it, on the saddle
    assert fit.check_bound > full.check_bound - 0.1
