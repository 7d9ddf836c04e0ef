"""Simulation-based calibration: a right model is called calibrated, and a wrong one is told what is wrong with it."""

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.calibration.ranks import departure, uniform_band
from quenched.calibration.verdict import RankFinding, in_words, judge_ranks

N_DATA = 4


def simulate(random):
    """A conjugate model: two unit-normal means, four observations of unit variance each."""
    centre = random.standard_normal(2)
    return {"centre": centre}, {"y": random.normal(centre, 1.0, (N_DATA, 2)), "wrong": np.array([1.0, 0.0])}


def log_density(parameters, data):
    """`wrong` holds what multiplies the precision of the posterior and what is added to its mean."""
    factor, shift = data["wrong"]
    centre = parameters["centre"] - shift
    prior = -0.5 * jnp.sum(centre**2)
    return factor * (prior - 0.5 * jnp.sum((data["y"] - centre) ** 2))


def calibrated(factor: float = 1.0, shift: float = 0.0, **options) -> qd.Calibration:
    def wrongly(random):
        parameters, data = simulate(random)
        return parameters, {**data, "wrong": np.array([factor, shift])}

    return qd.calibrate(wrongly, log_density, {"centre": np.zeros(2)}, n=200, progress=False, **options)


@pytest.fixture(scope="module")
def right():
    return calibrated()


def test_a_right_model_is_called_calibrated(right):
    assert right.calibrated
    assert right.names == ("centre[0]", "centre[1]")
    assert right.ranks.shape == (200, 2)
    assert right.ranks.min() >= 0
    assert right.ranks.max() <= right.n_samples
    assert "Calibrated: the ranks of all are uniform" in right.verdict
    for finding in right.findings:
        assert finding.width == pytest.approx(1.0, abs=0.2)
        assert finding.shift == pytest.approx(0.0, abs=0.25)


def test_half_the_variance_is_called_too_narrow():
    narrow = calibrated(factor=2.0)
    assert [finding.verdict for finding in narrow.findings] == ["too narrow"] * 2
    assert narrow.findings[0].width == pytest.approx(np.sqrt(0.5), abs=0.1)
    assert "its sd is about 0." in narrow.verdict


def test_twice_the_variance_is_called_too_wide():
    assert [finding.verdict for finding in calibrated(factor=0.5).findings] == ["too wide"] * 2


@pytest.mark.parametrize(("shift", "verdict"), [(0.4, "biased high"), (-0.4, "biased low")])
def test_a_shift_is_called_a_bias(shift, verdict):
    found = calibrated(shift=shift)
    assert [finding.verdict for finding in found.findings] == [verdict] * 2
    assert found.findings[0].shift == pytest.approx(shift * np.sqrt(N_DATA + 1), abs=0.3)
    assert "Not calibrated: " in found.verdict


def test_the_same_seed_gives_the_same_ranks(right):
    np.testing.assert_array_equal(calibrated().ranks, right.ranks)
    assert (calibrated(seed=1).ranks != right.ranks).any()


def test_failures_are_counted_and_left_out():
    def sometimes(random):
        parameters, data = simulate(random)
        if random.uniform() < 0.1:
            data["y"][0] = np.nan
        return parameters, data

    found = qd.calibrate(sometimes, log_density, {"centre": np.zeros(2)}, n=200, progress=False)
    assert found.n_failed > 5
    assert len(found.ranks) == 200 - found.n_failed
    assert f"{found.n_failed} fits failed and are left out" in found.verdict


def test_the_band_holds_uniform_ranks_as_often_as_it_says():
    random, band = np.random.default_rng(0), uniform_band(150, 99, 0.9)
    inside = [departure(random.integers(0, 100, 150), 99, band) <= 1.0 for _ in range(400)]
    assert 0.85 < np.mean(inside) < 0.95


def test_ranks_in_the_middle_mean_too_wide():
    random = np.random.default_rng(0)
    assert judge_ranks("a", random.binomial(99, 0.5, 300), 99, 0.95).verdict == "too wide"
    assert judge_ranks("a", random.integers(0, 100, 300), 99, 0.95).verdict == "calibrated"


@pytest.mark.parametrize(("departure", "size"), [(1.004, "0.4 %"), (1.3, "30 %"), (4.0, "300 %")])
def test_ranks_just_beyond_chance_are_not_said_to_be_as_far_as_chance_explains(departure, size):
    finding = RankFinding("a", "not calibrated", departure, 0.0, 1.0)
    assert in_words([finding], 200, 0).endswith(
        f"a is not calibrated ({size} farther from uniform than chance explains)."
    )


def test_the_figure_shows_every_number(right, tmp_path):
    pytest.importorskip("matplotlib")
    figure = right.plot(tmp_path / "ranks.png")
    assert (tmp_path / "ranks.png").exists()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert "centre[1]: calibrated" in titles
    assert "centre[0]" in str(right)
    assert [row["name"] for row in right.summary()] == ["centre[0]", "centre[1]"]


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (simulate, {"n": 5}, "n=5"),
        (simulate, {"coverage": 2.0}, "coverage=2.0: a probability"),
        (lambda random: 1.0, {}, r"simulate: it must return \(parameters, data\)"),
        (lambda random: (np.zeros(2), np.zeros(2)), {}, "simulate: its parameters have"),
        (
            lambda random: ({"centre": np.zeros(2)}, np.zeros(random.integers(1, 9))),
            {},
            "simulate: its data change shape",
        ),
    ],
)
def test_misuse_is_named(function, options, message):
    with pytest.raises(ValueError, match=message):
        qd.calibrate(function, log_density, {"centre": np.zeros(2)}, progress=False, **options)


def test_too_few_that_succeed_are_refused():
    def broken(random):
        parameters, data = simulate(random)
        return parameters, {**data, "y": np.full((N_DATA, 2), np.nan)}

    with pytest.raises(ValueError, match="simulate: 0 of 30 fits succeeded; at least 20 are needed"):
        qd.calibrate(broken, log_density, {"centre": np.zeros(2)}, n=30, progress=False)
