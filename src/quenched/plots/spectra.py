"""Observed spectra beside predicted ones, with bands, a panel each."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quenched.plots.canvas import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PLAIN,
    SMALL,
    dress,
    new_figure,
    read_figure_path,
    write_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 4
_MOST = 24  # panels
_POINTS = 120  # of one spectrum; more would hide the bands
_LEAST_DECADES = 2.0


class Panel(NamedTuple):
    """One spectrum: observed points, and the prediction with its bands along a grid of frequencies.

    Examples
    --------
    >>> from quenched.plots import Panel
    >>> f = np.array([1.0, 10.0])
    >>> panel = Panel("a record", f, f, grid=f, median=f, lower=f / 2, upper=f * 2, model_lower=f, model_upper=f)
    >>> panel.title
    'a record'
    """

    title: str
    frequency: np.ndarray
    observed: np.ndarray
    grid: np.ndarray
    median: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    model_lower: np.ndarray
    model_upper: np.ndarray


def plot_spectra(panels: Sequence[Panel], unit: str = "cm/s", path: str | Path | None = None) -> "Figure":
    """Draw spectra on logarithmic axes.

    Parameters
    ----------
    panels
        What to show; at most 24 panels are drawn.
    unit
        Of the amplitudes.
    path
        File to write as well; its ending says the format.

    Examples
    --------
    >>> from quenched.plots import Panel, plot_spectra
    >>> f = np.geomspace(0.5, 20.0, 40)
    >>> level = np.exp(-f / 8.0)
    >>> panel = Panel("a record", f, level, f, level, level / 2, 2 * level, level / 1.2, 1.2 * level)
    >>> len(plot_spectra([panel]).get_axes())
    1
    """
    path, shown = read_figure_path(path), panels[:_MOST]
    columns = min(_COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    figure = new_figure(2.25 * columns + 0.6, 1.95 * rows + 0.7)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, panel in zip(grid, shown, strict=False):
        _draw(axes, panel)
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    _limits(grid[0], shown)
    figure.supylabel(f"Fourier amplitude ({unit})", fontsize=SMALL + 0.5, color=GREY)
    left_out = f"; {len(panels) - len(shown)} more not shown" if len(panels) > len(shown) else ""
    figure.supxlabel(f"frequency (Hz){left_out}", fontsize=SMALL + 0.5, color=GREY)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=columns if columns < 3 else 4,
        frameon=False,
        fontsize=SMALL,
        labelcolor=GREY,
    )
    write_figure(figure, path, dpi=110)
    return figure


def _draw(axes: "Axes", panel: Panel) -> None:
    dress(axes)
    axes.set_title(panel.title, loc="left", fontsize=SMALL - 0.5, color=INK, **PLAIN)
    axes.fill_between(panel.grid, panel.lower, panel.upper, color=BLUE, alpha=0.14, lw=0, label="band of observations")
    axes.fill_between(
        panel.grid, panel.model_lower, panel.model_upper, color=BLUE, alpha=0.45, lw=0, label="band of the model"
    )
    axes.plot(panel.grid, panel.median, color=BLUE, lw=1.2, label="median")
    thinned = np.argsort(panel.frequency)[:: max(1, len(panel.frequency) // _POINTS)]
    x, y = panel.frequency[thinned], panel.observed[thinned]
    axes.plot(x, y, ".", color=ORANGE, markersize=2.6, label="observed")
    axes.set_xscale("log")
    axes.set_yscale("log")


def _limits(axes: "Axes", panels: Sequence[Panel]) -> None:
    """All that was observed and predicted, but no tail so long that the spectra become flat."""
    high = 2.0 * max(max(panel.observed.max(), panel.upper.max()) for panel in panels)
    seen = min(panel.observed.min() for panel in panels)
    low = min(seen, max(min(panel.lower.min() for panel in panels), seen / 3.0)) / 1.5
    axes.set_ylim(min(low, high / 10**_LEAST_DECADES), high)
