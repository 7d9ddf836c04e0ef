"""What the figures of a fit show."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection

import quenched as qd
from fits import SD, THREE_ROUNDS, correlated, make_fit
from quenched.plots import plot_fit, plot_marginals, plot_monitor
from quenched.results import Round

SCHOOLS = {"mu": 4.0, "tau": 3.0, "eta": np.zeros(8)}
MANY = {"w": np.zeros((20, 5)), "b": np.linspace(-1, 1, 30), "s": np.array([0.2, 0.3, 0.5]), "tau": 1.0}


def visible(figure):
    return [axes for axes in figure.get_axes() if axes.axison]


def titles(figure):
    return [axes.get_title(loc="left") for axes in visible(figure)]


def texts(figure):
    import matplotlib.text

    return " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


def test_every_number_of_a_small_problem_has_a_panel():
    figure = plot_marginals(make_fit(SCHOOLS, transforms={"tau": qd.positive}))
    assert titles(figure) == [*(f"eta[{i}]" for i in range(8)), "mu", "tau"]


def test_titles_that_would_run_into_each_other_lose_their_middle():
    figure = plot_marginals(make_fit({"effects_of_all_the_schools_of_the_district": np.zeros(2), "b": 1.0}))
    assert titles(figure) == ["b", "effects_of_all_…trict[0]", "effects_of_all_…trict[1]"]


def test_a_single_number_has_one_panel():
    assert titles(plot_marginals(make_fit(2.0))) == ["parameters"]


def test_arrays_share_a_panel_when_there_are_many_numbers():
    figure = plot_marginals(make_fit(MANY, transforms={"s": qd.simplex, "tau": qd.positive}))
    assert titles(figure) == ["b (30)", "s (3)", "tau", "w (20 × 5)"]


def test_panels_that_are_left_out_are_counted():
    figure = plot_marginals(make_fit({f"leaf{i:02}": np.zeros(2) for i in range(15)}))
    assert len(visible(figure)) == 12
    assert "3 more arrays not shown" in texts(figure)


def test_the_density_of_a_positive_number_stays_positive_and_marks_the_mean():
    (axes,) = visible(plot_marginals(make_fit(3.0, transforms=qd.positive)))
    curve, mean = axes.get_lines()
    assert curve.get_xdata().min() > 0
    np.testing.assert_allclose(mean.get_xdata()[0], 3.0 * np.exp(SD**2 / 2), rtol=1e-3)
    mode = curve.get_xdata()[np.argmax(curve.get_ydata())]
    np.testing.assert_allclose(mode, 3.0 * np.exp(-(SD**2)), rtol=0.05)


def test_intervals_hold_50_and_95_per_cent():
    (axes,) = visible(plot_marginals(make_fit(np.linspace(-3, 3, 20))))
    wide, narrow = (c for c in axes.collections if isinstance(c, LineCollection))
    half_width = lambda lines: np.array([np.ptp(segment[:, 1]) / 2 for segment in lines.get_segments()])
    np.testing.assert_allclose(half_width(wide), 1.96 * SD, rtol=0.02)
    np.testing.assert_allclose(half_width(narrow), 0.6745 * SD, rtol=0.02)
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata(), np.linspace(-3, 3, 20), atol=1e-3)


def test_a_long_array_becomes_a_band():
    (axes,) = visible(plot_marginals(make_fit(np.zeros(500))))
    assert not any(isinstance(c, LineCollection) for c in axes.collections)
    assert len(axes.collections) == 2


def test_the_monitor_shows_both_bounds_and_two_standard_errors():
    axes = plot_monitor(make_fit(SCHOOLS, rounds=THREE_ROUNDS))
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    np.testing.assert_array_equal(lines["bound"], [-30.0, -31.0, -31.5])
    np.testing.assert_array_equal(lines["check bound ± 2 standard errors"], [-33.0, -32.0, -31.6])
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose([band.min(), band.max()], [-33.6, -31.4])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1\n64 draws", "2\n128 draws", "3\n256 draws"]


def test_one_round_is_shown_against_the_tolerance():
    axes = plot_monitor(make_fit(SCHOOLS))
    points = sorted(round(float(line.get_xdata()[0]), 9) for line in axes.get_lines())
    assert points == [-32.19, -32.15, -32.11, -32.1]  # check bound between its two error bars, and the bound
    (shade,) = axes.patches
    np.testing.assert_allclose(shade.get_extents().transformed(axes.transData.inverted()).intervalx, [-32.2, -32.1])
    assert "tolerance of 0.1" in axes.get_xlabel()


def test_rounds_without_a_finite_bound_are_left_out():
    rounds = (Round(64, -np.inf, -5.0, 1.0, 0), *THREE_ROUNDS, Round(512, -31.0, np.nan, np.nan, 0))
    axes = plot_monitor(make_fit(SCHOOLS, rounds=rounds))
    assert all(len(line.get_xdata()) == 3 for line in axes.get_lines())


def test_a_fit_without_rounds_says_so():
    assert "no round was finished" in texts(plot_fit(make_fit(SCHOOLS, rounds=())))


def test_the_end_of_many_rounds_fills_the_frame():
    bounds = np.concatenate([[-1e6, -1e5], np.linspace(-20, -10, 60)])
    rounds = [Round(64 if i < 30 else 128, b, b - 1, 0.1, i) for i, b in enumerate(bounds)]
    axes = plot_monitor(make_fit(SCHOOLS, rounds=rounds))
    assert axes.get_ylim()[0] > -30
    assert "128 draws" in texts(axes)


@pytest.mark.parametrize("rounds", [(), THREE_ROUNDS])
def test_plot_writes_a_file(tmp_path, rounds):
    path = tmp_path / "new" / "fit.png"
    figure = make_fit(SCHOOLS, rounds=rounds).plot(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(visible(figure)) == 12  # the monitor, the strongest pair, and ten numbers


def test_settings_of_matplotlib_are_left_alone():
    before = dict(matplotlib.rcParams)
    plot_fit(make_fit(MANY, transforms={"s": qd.simplex}))
    assert dict(matplotlib.rcParams) == before


def test_no_window_system_is_loaded():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from fits import make_fit;"
        "assert 'matplotlib' not in sys.modules; make_fit(1.0).plot(); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(__file__).rsplit("/", 2)[0]], check=True)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "quenched\[plots\]"'):
        make_fit(1.0).plot()


def test_many_numbers_in_no_order_are_sorted_and_a_time_series_is_not():
    means = np.sin(np.linspace(0, 6, 100))
    (series,) = visible(plot_marginals(make_fit(means)))
    (mixed,) = visible(plot_marginals(make_fit(np.random.default_rng(1).permutation(means))))
    assert series.get_xlabel() == "index"
    assert mixed.get_xlabel() != "index"
    assert (np.diff(mixed.get_lines()[0].get_ydata()) >= 0).all()


@pytest.mark.parametrize(("numbers", "panels"), [(2, 4), (20, 2), (2000, 4)])
def test_the_overview_of_a_family_without_correlations_shows_none(numbers, panels):
    assert len(visible(plot_fit(make_fit({"a": 0.0, "w": np.zeros(numbers - 1)})))) == panels


@pytest.mark.parametrize(("numbers", "panels"), [(2, 4), (20, 4), (70, 5)])  # with the bar of the colours
def test_the_overview_shows_correlations_where_there_are_some(numbers, panels):
    assert len(visible(plot_fit(correlated(numbers)))) == panels


@pytest.mark.parametrize(("numbers", "panels"), [(20, 2), (70, 4)])
def test_the_overview_shows_no_correlations_that_are_grey_all_over(numbers, panels):
    assert len(visible(plot_fit(correlated(numbers, between=0.05)))) == panels


def test_leaping_means_of_thousands_do_not_hide_their_band():
    leaping = lambda n: np.sin(np.arange(n) / 50.0) + 0.3 * np.random.default_rng(1).standard_normal(n)
    widths = [
        visible(plot_marginals(make_fit({"effect": leaping(n), "b": 1.0})))[1].get_lines()[0].get_linewidth()
        for n in (200, 2000)
    ]
    assert widths[1] < 0.5 * widths[0]
