"""Plots that show a posterior or its predictions: what is drawn is what the numbers say."""

import dataclasses

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import quenched as qd
from fits import SD, make_fit
from quenched.plots import (
    plot_correlation,
    plot_effects,
    plot_error_bars,
    plot_forest,
    plot_marginals,
    plot_pair,
    plot_predictive,
)

TWO = {"a": 1.0, "b": np.zeros(2)}


def labels(axes):
    return [tick.get_text() for tick in axes.get_yticklabels()]


def test_a_pair_has_ellipses_of_the_right_size_and_weighted_samples():
    axes = plot_pair(make_fit(TWO), "a", "b[1]")
    wide, narrow, dots = axes.get_lines()
    radius = lambda line: np.hypot(line.get_xdata() - 1.0, line.get_ydata()) / SD
    np.testing.assert_allclose(radius(wide), np.sqrt(-2 * np.log(0.05)), rtol=1e-6)
    np.testing.assert_allclose(radius(narrow), np.sqrt(-2 * np.log(0.5)), rtol=1e-6)
    assert len(dots.get_xdata()) == 200  # all that were weighed
    np.testing.assert_allclose(np.std(dots.get_xdata()), SD, rtol=0.2)


def test_no_more_dots_than_the_weights_are_worth():
    uneven = np.where(np.arange(200) < 10, 5.0, -5.0)
    axes = plot_pair(dataclasses.replace(make_fit(TWO), log_ratios=uneven), "a", "b[1]")
    assert len(axes.get_lines()[-1].get_xdata()) <= 12


def test_a_transform_carries_the_ellipse_along():
    axes = plot_pair(make_fit({"a": 1.0, "tau": 2.0}, transforms={"tau": qd.positive}), "a", "tau")
    heights = np.log(axes.get_lines()[0].get_ydata() / 2.0) / SD
    np.testing.assert_allclose(
        [heights.min(), heights.max()], np.sqrt(-2 * np.log(0.05)) * np.array([-1, 1]), rtol=1e-3
    )


def test_a_pair_of_an_ordered_array_has_contours_instead():
    fit = make_fit({"cuts": np.array([0.0, 1.0, 2.0])}, transforms={"cuts": qd.ordered})
    axes = plot_pair(fit, "cuts[1]", "cuts[2]")
    assert len(axes.get_lines()) == 1  # the dots alone


def test_the_outline_of_positive_samples_stays_positive():
    fit = make_fit({"tau": 1.0}, transforms={"tau": qd.positive})
    (axes,) = plot_marginals(fit, samples=fit.sample(2000)).get_axes()
    assert axes.get_lines()[-1].get_xdata().min() > 0


def test_correlations_show_the_strongest_of_many():
    fit = make_fit({"a": 0.0, "w": np.zeros(59)})
    axes = plot_correlation(fit, most=7)
    drawn = np.ma.filled(axes.images[0].get_array(), np.nan)
    assert drawn.shape == (7, 7)
    assert np.isnan(np.diag(drawn)).all()
    np.testing.assert_allclose(drawn[~np.eye(7, dtype=bool)], 0.0, atol=1e-12)
    assert "7 of 60" in axes.get_title(loc="left")


def test_a_forest_has_the_clearest_of_many_and_takes_axes():
    given = Figure().subplots()
    fit = make_fit({"w": np.array([0.0, 3.0, -4.0, 0.1]), "b": 2.0})
    axes = plot_forest(fit, given, most=3)
    assert axes is given
    assert labels(axes) == ["b", "w[1]", "w[2]"]
    wide = next(c for c in axes.collections if isinstance(c, LineCollection))
    np.testing.assert_allclose([np.ptp(s[:, 0]) for s in wide.get_segments()], 2 * 1.96 * SD, rtol=0.02)
    assert labels(plot_forest(fit, names=["b", "w[3]"])) == ["b", "w[3]"]
    with pytest.raises(ValueError, match="no parameter is called 'c'"):
        plot_forest(fit, names=["c"])


def test_effects_are_put_in_order():
    table = {"mean": [0.5, -1.0, 2.0], "sd": [0.1, 0.2, 0.3], "level": ["x", "y", "z"]}
    axes = plot_effects(table, title="1|g")
    assert labels(axes) == ["y", "x", "z"]
    band = plot_effects(table, most=2)
    np.testing.assert_allclose(band.get_lines()[0].get_ydata(), [-1.0, 0.5, 2.0])
    assert {text.get_text() for text in band.texts} == {"y", "z"}


def test_marginals_are_compared_with_samples():
    fit = make_fit({"a": 1.0})
    shifted = {"a": fit.sample(4000)["a"] + 1.0, "another": np.zeros(4000)}
    axes = next(axes for axes in plot_marginals(fit, samples=shifted).get_axes() if axes.axison)
    own, _, theirs = axes.get_lines()
    peak = lambda line: line.get_xdata()[np.argmax(line.get_ydata())]
    assert peak(theirs) - peak(own) == pytest.approx(1.0, abs=0.15)
    assert np.trapezoid(*theirs.get_data()[::-1]) == pytest.approx(np.trapezoid(*own.get_data()[::-1]), rel=0.05)
    with pytest.raises(ValueError, match="samples"):
        plot_marginals(fit, samples={"a": np.zeros((10, 2))})


def test_predictions_mark_what_is_outside():
    predicted = np.linspace(-1, 1, 401)[:, None] + np.array([0.0, 10.0, 20.0])
    axes = plot_predictive(predicted, [0.0, 12.0, np.nan], x=[3.0, 1.0, 2.0])
    marked = {line.get_label(): (line.get_xdata().tolist(), line.get_ydata().tolist()) for line in axes.get_lines()}
    assert marked["outside the band (1 of 2)"] == ([1.0], [12.0])
    assert 3.0 in marked["observed"][0]
    veil = axes.get_legend().get_frame()  # words on bands and lines can be read
    assert veil.get_visible()
    assert 0.5 < veil.get_alpha() < 1.0
    with pytest.raises(ValueError, match="observed has shape"):
        plot_predictive(predicted, [0.0])


def test_error_bars_that_are_too_short_are_below_the_diagonal():
    right = np.random.default_rng(3).standard_normal(2000)
    inside = lambda factor: plot_error_bars(right, np.full(2000, factor), np.zeros(2000)).get_lines()[1]
    true, short = inside(1.0), inside(0.5)
    np.testing.assert_allclose(true.get_ydata(), true.get_xdata(), atol=0.04)
    assert np.interp(0.6826, short.get_xdata(), short.get_ydata()) == pytest.approx(0.383, abs=0.04)
    with pytest.raises(ValueError, match="not positive"):
        plot_error_bars([1.0], [0.0], [1.0])
