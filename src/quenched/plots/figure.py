"""The figure of a fit: the monitor above, the marginal posteriors below."""

from pathlib import Path
from typing import TYPE_CHECKING

from quenched.plots.canvas import new_figure, read_figure_path, write_figure
from quenched.plots.marginals import marginals_size, plot_marginals
from quenched.plots.monitor import monitor_height, plot_monitor
from quenched.result import Fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST_WIDTH = 7.2


def plot_fit(fit: Fit, path: str | Path | None = None) -> "Figure":
    """Draw the monitor and the marginal posteriors.

    Parameters
    ----------
    fit
        What to show.
    path
        File to write as well; its ending says the format (`.png`, `.svg`, `.pdf`).
    """
    path = read_figure_path(path)
    width, below_height = marginals_size(fit)
    above_height = monitor_height(fit)
    figure = new_figure(max(width, _LEAST_WIDTH), above_height + below_height)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[above_height, below_height]).ravel()
    plot_monitor(fit, above.subplots())
    plot_marginals(fit, below)
    write_figure(figure, path, dpi=160)
    return figure
