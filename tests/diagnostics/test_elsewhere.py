"""A posterior around one of two modes is not trusted, and one around the only mode is, however skewed."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import betaln
from jax.scipy.stats import norm

import quenched as qd
from quenched.trust import OTHER_MODE, Trust
from quenched.trust.elsewhere import elsewhere, rays


def two_modes(w, there):
    """Two standard normals, of which one is at zero; `there` has the place, the width and the weight of the other."""
    place, width, weight = there["place"], there["width"], there["weight"]
    one, other = jnp.sum(norm.logpdf(w)), jnp.sum(norm.logpdf(w, place, width))
    return jnp.logaddexp(jnp.log1p(-weight) + one, jnp.log(weight) + other)


def fit(place, width=1.0, weight=0.5, start=None):
    place = np.asarray(place, float)
    there = {"place": place, "width": np.asarray(width), "weight": np.asarray(weight)}
    start = np.zeros(len(place)) if start is None else np.asarray(start, float)
    return qd.fit(two_modes, start, data=there, progress=False)


@pytest.mark.parametrize("apart", [4.0, 5.0, 6.0, 8.0, 10.0])
@pytest.mark.parametrize("dim", [1, 3])
def test_a_fit_of_one_mode_is_not_trusted_and_one_of_both_is(dim, apart):
    one = fit([apart] + [0.0] * (dim - 1))
    mean, sd = 0.5 * apart, np.sqrt(1.0 + 0.25 * apart**2)
    right = abs(one.mean[0] - mean) < 0.1 * sd and abs(one.sd[0] / sd - 1.0) < 0.15
    assert right == (apart == 4.0)  # these are near enough for one Gaussian
    assert one.answer.trust is (Trust.BOTH if right else Trust.NEITHER)
    assert right or one.answer.rule == OTHER_MODE


@pytest.mark.parametrize("apart", [6.0, 8.0])
@pytest.mark.parametrize("dim", [3, 10, 30])
def test_a_mode_along_no_parameter_is_seen_by_the_ratios_on_its_side(dim, apart):
    assert fit(np.full(dim, apart / np.sqrt(dim))).answer.rule == OTHER_MODE


def test_a_mode_much_wider_is_seen_from_a_narrow_one():
    one = fit([7.0], width=0.3, start=[7.0])
    assert one.sd[0] < 0.4
    assert one.answer.rule == OTHER_MODE
    assert "sds below the mean of parameters" in one.verdict


def test_a_mode_that_holds_next_to_nothing_is_no_reason_to_doubt():
    assert fit([8.0, 0.0], weight=1e-4).answer.trust is Trust.BOTH
    assert fit([8.0, 0.0], weight=0.02).answer.rule == OTHER_MODE


def test_a_log_density_that_goes_on_rising_beyond_the_mean_is_skewed_and_has_one_mode():
    one = qd.fit(lambda w: jnp.sum(2.0 * w - jnp.exp(w)), np.zeros(3), progress=False)
    funnel = qd.fit(
        lambda w: norm.logpdf(w[0], 0, 3) + jnp.sum(norm.logpdf(w[1:], 0, jnp.exp(w[0] / 2))),
        np.zeros(6),
        progress=False,
    )
    for of_one_mode in (one, funnel):
        assert of_one_mode.further is not None
        assert not of_one_mode.further.elsewhere


def test_a_support_with_a_hole_has_two_modes_and_nan_is_none():
    hole = qd.fit(
        lambda w: jnp.where(
            jnp.abs(w[0] - 6.0) < 1.0, -jnp.inf, jnp.logaddexp(norm.logpdf(w[0]), norm.logpdf(w[0], 10.0))
        ),
        np.zeros(1),
        progress=False,
    )
    assert hole.answer.rule == OTHER_MODE
    nan = qd.fit(lambda w: jnp.where(w[0] > 7.0, jnp.nan, norm.logpdf(w[0])), np.zeros(1), progress=False)
    assert nan.answer.trust is Trust.BOTH


@pytest.mark.parametrize(("value", "is_one"), [(np.nan, False), (np.inf, False), (-np.inf, True)])
def test_what_is_no_number_is_no_valley(value, is_one):
    """On a plateau, where nothing falls."""
    one = qd.fit(lambda w: jnp.sum(norm.logpdf(w)), np.zeros(1), progress=False)
    points = rays(np.eye(1), one.check_draws, one.log_ratios, len(one.log_ratios))
    ratios = 0.5 * np.sum(points**2, axis=1)
    ratios[8] = value
    assert bool(elsewhere(one.space, one.posterior, points, ratios)) is is_one


def test_it_is_saved_with_the_fit_and_a_diagnosis_advises_on_it(tmp_path):
    one = fit([8.0, 0.0])
    assert qd.load(one.save(tmp_path / "fit.npz")).verdict == one.verdict
    told = one.diagnose().verdict
    assert told.startswith("Trust neither means nor sds: the log density falls by")
    assert "Fit it from there too" in told


def two_modes_on_the_host(point):
    """The first six standard deviations from the second; raises further out than both."""
    place = point[0]
    if abs(place) > 20.0:
        raise OverflowError("too far out")
    heights = -0.5 * np.array([place, place - 6.0]) ** 2
    shares = np.exp(heights - heights.max())
    return heights.max() + np.log(shares.sum()), np.array([-place + 6.0 * shares[1] / shares.sum()])


def test_a_function_on_the_host_is_looked_at_further_out_once_the_fit_has_taken_many_more_gradients():
    few, many = (
        qd.fit(qd.from_value_and_grad(two_modes_on_the_host), np.zeros(1), draws=draws, progress=False)
        for draws in (64, 2048)
    )
    assert "Further out than the check draws came" in few.verdict
    assert few.answer.trust is Trust.BOTH
    assert many.answer.rule == OTHER_MODE
    assert "Further out than the check draws came" not in many.verdict


def test_where_large_terms_cancel_there_is_no_mode():
    """At 1e21 gamma functions cancel until nothing of the data is left: that was a mode, 24 sds above the mean."""
    n, k = np.array([12.0, 10.0, 8.0, 14.0, 9.0, 11.0, 13.0, 7.0]), np.array([2.0, 4.0, 1.0, 3.0, 1.0, 5.0, 2.0, 2.0])

    def litters(p, data):
        n, k = data
        a, b = p["mean"] * p["size"], (1.0 - p["mean"]) * p["size"]
        return -1.5 * jnp.log1p(p["size"]) + jnp.sum(betaln(k + a, n - k + b) - betaln(a, b))

    transforms = {"mean": qd.interval(0, 1), "size": qd.positive}
    start = {"mean": 0.3, "size": 5.0}
    one = qd.fit(litters, start, data=(n, k), transforms=transforms, family="warped", progress=False)
    assert one.answer.rule == "means further out"  # the mean of such a size is infinite
    assert not one.further.elsewhere
