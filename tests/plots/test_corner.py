"""Corner plots of any fit, and of columns of samples."""

import numpy as np
import pytest

import quenched as qd
from quenched.plots import plot_corner


def test_a_fit_has_a_panel_for_each_pair(tmp_path):
    def log_density(p):
        return -0.5 * (p["a"] - 1.0) ** 2 - 0.5 * (p["b"] ** 2).sum()

    fit = qd.fit(log_density, {"a": 1.0, "b": np.ones(2)}, progress=False)
    figure = plot_corner(fit, tmp_path / "corner.png", truths={"a": 1.0})
    shown = [axes for axes in figure.axes if axes.axison]
    assert len(shown) == 6
    assert {axes.get_xlabel() for axes in shown} == {"", "a", "b[0]", "b[1]"}
    assert (tmp_path / "corner.png").stat().st_size > 5000


def test_a_correlated_pair_is_seen():
    x = np.random.default_rng(0).standard_normal(2000)
    figure = plot_corner({"x": x, "y": 3.0 * x + 0.1})
    assert sum(axes.axison for axes in figure.axes) == 3


def test_misuse_is_named():
    with pytest.raises(ValueError, match="17 columns"):
        plot_corner({str(i): np.zeros(5) for i in range(17)})
    with pytest.raises(ValueError, match="same length"):
        plot_corner({"a": np.zeros(5), "b": np.zeros(6)})
    with pytest.raises(ValueError, match=r"names='alpha': the samples have none of that name; did you mean 'alpha_1'"):
        plot_corner({"alpha_1": np.zeros(5)}, names=["alpha"])


def test_labels_of_two_lines_stay_two_and_long_ones_lose_their_middle():
    random = np.random.default_rng(0)
    names = ("stress\nfirst", "a_name_that_would_run_into_its_neighbour[12]")
    figure = plot_corner({name: random.standard_normal(200) for name in names})
    labels = {axes.get_xlabel() for axes in figure.get_axes()} - {""}
    assert labels == {"stress\nfirst", "a_name_that_would_r…bour[12]"}
