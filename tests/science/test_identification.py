"""Words for what data do not tell: said when true, and only then."""

import numpy as np
import pytest
from scipy import stats

import quenched as qd
from quenched.science import GroundMotion, identify, identify_fit
from science.test_ground_motion import simulate

QUANTILES = (np.arange(4000) + 0.5) / 4000


@pytest.mark.parametrize(
    ("density", "identified", "pressed"),
    [
        (stats.uniform(), False, ""),
        (stats.beta(1.1, 1.1), False, ""),
        (stats.beta(20, 20), True, ""),
        (stats.beta(2, 60), True, ""),  # near the bound, but away from it
        (stats.expon(scale=0.02), True, "lower"),
        (stats.halfnorm(scale=0.1), True, "lower"),
        (stats.expon(scale=1e-6), True, "lower"),
        (stats.beta(30, 1), True, "upper"),
    ],
)
def test_judgements_of_known_densities(density, identified, pressed):
    verdict = identify(5.0 + 3.0 * density.ppf(QUANTILES), 5.0, 8.0)
    assert (verdict.identified, verdict.pressed) == (identified, pressed)
    assert bool(verdict.words) == (not identified or bool(pressed))


def test_a_parameter_that_the_density_ignores_is_not_identified():
    def log_density(p):
        return -0.5 * ((p["seen"] - 0.4) / 0.02) ** 2 - 0.5 * p["free"] ** 2 - 50.0 * p["small"]

    start = {"seen": 0.5, "unseen": 0.3, "small": 0.5, "free": 0.0}
    transforms = {name: qd.interval(0.0, 1.0) for name in ("seen", "unseen", "small")}
    words = identify_fit(qd.fit(log_density, start, transforms=transforms, progress=False))
    assert set(words) == {"seen", "unseen", "small"}
    assert words["seen"].words == ""
    assert "not identified" in words["unseen"].words
    assert words["small"].pressed == "lower"


def test_low_frequencies_do_not_identify_kappa0():
    model = GroundMotion().fit(simulate(top=0.3, noise=1.0), progress=False)
    remarks = {row["name"]: row["remark"] for row in model.summary() if not row["event"]}
    assert "not identified" in remarks["kappa0"]
    assert remarks["noise"] == ""
    assert "not identified" in str(model)


def test_attenuation_below_its_range_is_pressed_against_the_bound():
    model = GroundMotion().fit(simulate(kappa0=0.0), progress=False)
    (row,) = [row for row in model.summary() if row["name"] == "kappa0"]
    assert row["pressed"] == "lower"
    assert row["remark"] == "pressed against its lower bound 0.001"
