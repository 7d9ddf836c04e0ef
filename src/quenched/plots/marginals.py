"""Marginal posteriors in natural units.

Up to a dozen numbers get a density each. Beyond, each array of the parameters gets one panel: a density for a single
number, intervals along the index for many.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from quenched.draws import Purpose, make, stream
from quenched.plots.canvas import GREY, INK, PLAIN, SMALL, new_figure
from quenched.plots.panels import draw_density, draw_intervals
from quenched.posterior import to_natural
from quenched.result import Fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_PANELS = 12
_COLUMNS = 4
_POINTS = 16_384  # a power of two, for Sobol points
_NUMBERS = 20_000_000  # in all: many parameters get fewer points each
_LARGEST_SOBOL = 1000  # coordinates


class _Panel(NamedTuple):
    title: str
    values: np.ndarray  # (n,) for a density, (n, numbers) for intervals


def plot_marginals(fit: Fit, figure: "Figure | SubFigure | None" = None) -> "Figure | SubFigure":
    """Draw the marginal posterior of every number, or of every array when there are many numbers.

    Parameters
    ----------
    fit
        What to show.
    figure
        Where to draw; None makes a figure.
    """
    panels = _panels(fit)
    shown = panels[:_PANELS]
    rows, columns = _grid(len(shown))
    figure = new_figure(*marginals_size(fit)) if figure is None else figure
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, panel in zip(grid, shown, strict=False):
        draw = draw_density if panel.values.ndim == 1 else draw_intervals
        draw(axes, panel.values)
        axes.set_title(panel.title, loc="left", fontsize=SMALL + 1, color=INK, **PLAIN)
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    note = "mean, 50 % interval (strong) and 95 % interval (faint)"
    left_out = len(panels) - len(shown)
    figure.supxlabel(f"{note}; {left_out} more arrays not shown" if left_out else note, fontsize=SMALL, color=GREY)
    return figure


def marginals_size(fit: Fit) -> tuple[float, float]:
    """Inches that the panels need."""
    sizes = _sizes(fit)
    one_each = sum(sizes) <= _PANELS
    rows, columns = _grid(min(_PANELS, sum(sizes) if one_each else sum(size > 0 for size in sizes)))
    return max(4.0 if one_each else 7.2, 2.3 * columns), 1.75 * rows + 0.4


def _grid(n: int) -> tuple[int, int]:
    """Rows and columns, the rows as equally filled as can be."""
    rows = -(-n // _COLUMNS)
    return rows, -(-n // rows)


def _sizes(fit: Fit) -> list[int]:
    """Numbers in each array, in natural units."""
    return [int(np.prod(leaf.shape)) for leaf in fit.space.leaves]


def _panels(fit: Fit) -> list[_Panel]:
    one_each = sum(_sizes(fit)) <= _PANELS
    panels = []
    for leaf, values in zip(fit.space.leaves, jax.tree.leaves(_spread(fit)), strict=True):
        size = values[0].size
        if one_each or size == 1:
            for name, index in leaf.entries(leaf.shape):
                panels.append(_Panel(name, values[(slice(None), *index)]))
        elif size:
            shape = " × ".join(map(str, leaf.shape))
            panels.append(_Panel(f"{leaf.name} ({shape})", values.reshape(len(values), -1)))
    return panels


def _spread(fit: Fit):
    """Points that follow the posterior, in natural units; evenly spread, so that curves are smooth."""
    dim = fit.posterior.dim
    kind = "sobol" if dim <= _LARGEST_SOBOL else "antithetic"
    n = _POINTS
    while n > 256 and n * dim > _NUMBERS:
        n //= 2
    return to_natural(fit.space, fit.posterior.transform(make(kind, n, dim, stream(0, Purpose.CURVES)).points))
