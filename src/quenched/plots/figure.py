"""The figure of a fit: the monitor, and as much of the posterior as can be read.

Up to a dozen numbers: a density each, and the pair that correlates most. Some dozens: a forest plot and the correlations. More:
a band for each array, and the strongest correlations, or where the family has none the clearest numbers.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quenched.plots.canvas import new_figure, read_figure_path, write_figure
from quenched.plots.correlation import has_correlations, plot_correlation
from quenched.plots.forest import plot_forest
from quenched.plots.marginals import marginals_size, plot_marginals
from quenched.plots.monitor import monitor_height, plot_monitor
from quenched.plots.pair import plot_pair
from quenched.results import Fit, insist_fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST_WIDTH = 8.6
_FEW, _SOME = 12, 60  # numbers
_SQUARE = 3.2  # inches of what stands beside the monitor
_STRONGEST = 12  # coordinates or numbers whose names can be read there


def plot_fit(fit: Fit, path: str | Path | None = None) -> "Figure":
    """Draw the overview: the monitor and the posterior.

    Parameters
    ----------
    fit
        What to show.
    path
        File to write as well; its ending says the format (`.png`, `.svg`, `.pdf`).

    Examples
    --------
    >>> from quenched.plots import plot_fit
    >>> fit = qd.fit(lambda w: -0.5 * jnp.sum(w**2), np.zeros(3))
    >>> figure = plot_fit(fit)  # as fit.plot(); plot_fit(fit, "fit.png") writes it
    >>> len(figure.get_axes())  # the monitor, a pair, three marginals
    5
    """
    insist_fit(fit)
    path = read_figure_path(path)
    numbers = sum(int(np.prod(leaf.shape)) for leaf in fit.space.leaves)
    figure = _some(fit, numbers) if _FEW < numbers <= _SOME else _few_or_many(fit, few=numbers <= _FEW)
    write_figure(figure, path, dpi=160)
    return figure


def _few_or_many(fit: Fit, few: bool) -> "Figure":
    width, below_height = marginals_size(fit)
    pair = _strongest_pair(fit) if few else None
    beside = pair is not None or not few
    above_height = max(monitor_height(fit), _SQUARE if beside else 0.0)
    figure = new_figure(max(width, _LEAST_WIDTH), above_height + below_height)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[above_height, below_height]).ravel()
    if beside:
        left, right = above.subfigures(1, 2, width_ratios=[1.75 if few else 1.2, 1.0])
        plot_monitor(fit, left.subplots())
        if pair:
            plot_pair(fit, *pair, right.subplots())
        elif has_correlations(fit, _STRONGEST):
            plot_correlation(fit, right.subplots(), most=_STRONGEST)
        else:
            plot_forest(fit, right.subplots(), most=_STRONGEST)
    else:
        plot_monitor(fit, above.subplots())
    plot_marginals(fit, below)
    return figure


def _some(fit: Fit, numbers: int) -> "Figure":
    height = max(3.6, 0.19 * min(numbers, 40) + 0.9)
    figure = new_figure(10.5, monitor_height(fit) + height)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[monitor_height(fit), height]).ravel()
    plot_monitor(fit, above.subplots())
    if has_correlations(fit):
        left, right = below.subfigures(1, 2, width_ratios=[1.0, 1.15])
        plot_forest(fit, left.subplots())
        plot_correlation(fit, right.subplots())
    else:
        plot_forest(fit, below.subplots())
    return figure


def _strongest_pair(fit: Fit) -> tuple[str, str] | None:
    """The two coordinates that correlate most, if they have names of their own in natural units."""
    names, natural = fit.space.coordinate_names(), set(fit.space.names())
    if len(names) < 2 or fit.space.joint is not None or not set(names) <= natural:
        return None
    scale = np.sqrt(np.maximum(np.diag(fit.covariance), 1e-300))
    strength = np.triu(np.abs(fit.covariance / np.outer(scale, scale)), 1)
    i, j = np.unravel_index(int(np.argmax(strength)), strength.shape)
    return names[i], names[j]
