"""Every text of a figure is inside it, and none lies on another."""

from itertools import combinations

import matplotlib.text
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from fits import correlated, make_fit
from quenched.plots import (
    Panel,
    plot_corner,
    plot_correlation,
    plot_effects,
    plot_error_bars,
    plot_fit,
    plot_forest,
    plot_marginals,
    plot_monitor,
    plot_pair,
    plot_predictive,
    plot_spectra,
)

LONG = "coefficient_of_the_design_of_all_schools"
RANDOM = np.random.default_rng(4)


def flat(numbers):
    return make_fit({LONG: np.linspace(-2.0, 2.0, numbers - 1), "b": 1.0})


def panels(n):
    f = np.geomspace(0.5, 20.0, 30)
    level = np.exp(-f / 8.0)
    return [Panel(f"record {i}", f, level, f, level, level / 2, 2 * level, level / 1.2, 1.2 * level) for i in range(n)]


def effects(n):
    return {"mean": RANDOM.standard_normal(n), "sd": np.full(n, 0.3), "level": [f"{LONG} {i}" for i in range(n)]}


FIGURES = {
    **{f"overview, {n}, diagonal": lambda n=n: plot_fit(flat(n)) for n in (1, 2, 20, 2000)},
    **{f"overview, {n}, correlated": lambda n=n: plot_fit(correlated(n, LONG)) for n in (2, 20, 70)},
    **{f"correlations, {n}": lambda n=n: plot_correlation(correlated(n, LONG)) for n in (2, 20, 70)},
    **{f"no correlations, {n}": lambda n=n: plot_correlation(flat(n)) for n in (2, 20, 2000)},
    **{f"forest, {n}": lambda n=n: plot_forest(flat(n)) for n in (2, 20, 2000)},
    **{f"effects, {n}": lambda n=n: plot_effects(effects(n), title="1|school") for n in (2, 20, 2000)},
    **{f"spectra, {n}": lambda n=n: plot_spectra(panels(n)) for n in (1, 2, 3, 5)},
    **{f"corner, {n}": lambda n=n: plot_corner(flat(n)) for n in (1, 2, 6, 16)},
    **{
        f"marginals, {n}": lambda n=n: plot_marginals(flat(n), samples={LONG: np.zeros((9, n - 1)), "b": np.ones(9)})
        for n in (1, 2, 20, 2000)
    },
    "monitor": lambda: plot_monitor(flat(2)),
    "pair": lambda: plot_pair(flat(2), f"{LONG}[0]", "b"),
    "predictive": lambda: plot_predictive(RANDOM.standard_normal((50, 20)), np.arange(20.0), label=LONG),
    "error bars": lambda: plot_error_bars(RANDOM.standard_normal(20), np.ones(20), np.zeros(20)),
}


def texts(figure):
    """What is written, with where: titles, labels, legends, and the ticks that are in view."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    beyond = {text for axes in figure.get_axes() for axis in (axes.xaxis, axes.yaxis) for text in unseen(axes, axis)}
    written = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text().strip() and text.get_visible()]
    boxes = [(t.get_text(), t.get_window_extent(canvas.get_renderer())) for t in written if t not in beyond]
    return [(text, box) for text, box in boxes if box.width]


def unseen(axes, axis):
    """Labels of ticks out of view, which matplotlib keeps and does not draw; of axes that are off, all."""
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    for ticks in (axis.get_major_ticks(), axis.get_minor_ticks()):
        for tick in ticks:
            if not axes.axison or not low - room <= tick.get_loc() <= high + room:
                yield from (tick.label1, tick.label2)
    if not axes.axison:
        yield from (axis.label, axis.offsetText)


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_cut_or_lies_on_another(name):
    drawn = FIGURES[name]()
    figure = drawn.get_figure(root=True)
    width, height = figure.bbox.size
    said = texts(figure)
    cut = [text for text, box in said if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1]
    assert cut == []
    shrunk = [(text, box.padded(-min(1.5, box.width / 4, box.height / 4))) for text, box in said]
    assert [(a, b) for (a, one), (b, other) in combinations(shrunk, 2) if one.overlaps(other)] == []
