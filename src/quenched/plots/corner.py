"""A corner plot: the density of every number on the diagonal, of every pair below it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from scipy.ndimage import gaussian_filter

from quenched.numbers import finite_number, real_array
from quenched.plots.canvas import BLUE, GREY, ORANGE, PLAIN, SMALL, dress, new_figure, read_figure_path, write_figure
from quenched.plots.panels import draw_density
from quenched.result import Fit
from quenched.text import harmless, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 16
_BINS = 48
_SMOOTHING = 2.0  # bins
_LEVELS = (0.95, 0.5)  # probability inside each contour
_SAMPLES = 16_384


def plot_corner(
    samples: Fit | Mapping[str, Any], path: str | Path | None = None, *, truths: Mapping[str, float] | None = None
) -> "Figure":
    """Draw all one- and two-dimensional marginals of a posterior.

    Parameters
    ----------
    samples
        A fit (in natural units), or columns of samples by label.
    path
        File to write as well; its ending says the format.
    truths
        Values to mark, by label.

    Raises
    ------
    ValueError
        For more than 16 columns, which nobody could read, or columns of unequal length.
    """
    path = read_figure_path(path)
    columns = _columns_of(samples) if isinstance(samples, Fit) else _columns_given(samples)
    _check(columns)
    truths = _read_truths(truths)
    n = len(columns)
    side = max(1.0, min(1.9, 11.0 / n))
    figure = new_figure(side * n + 0.8, side * n + 0.5)
    grid = figure.subplots(n, n, squeeze=False)
    ranges = [_range(values) for values in columns.values()]
    items = list(columns.items())
    for i, (label, values) in enumerate(items):
        for j, (other, across) in enumerate(items):
            axes = grid[i, j]
            if j > i:
                axes.set_axis_off()
                continue
            if i == j:
                draw_density(axes, values)
            else:
                _draw_pair(axes, across, values, ranges[j], ranges[i])
            _mark(axes, truths.get(other), None if i == j else truths.get(label))
            axes.set_xlim(*ranges[j])
            _label(axes, other if i == n - 1 else "", label if j == 0 and i else "")
    write_figure(figure, path, dpi=110)
    return figure


def _columns_of(fit: Fit) -> dict[str, np.ndarray]:
    columns = {}
    for leaf, values in zip(fit.space.leaves, jax.tree.leaves(fit.sample(_SAMPLES)), strict=True):
        for name, index in leaf.entries(leaf.shape):
            columns[name] = values[(slice(None), *index)]
    return columns


def _columns_given(samples: Any) -> dict[str, np.ndarray]:
    if not isinstance(samples, Mapping) and not hasattr(samples, "columns"):
        raise ValueError(f"samples={shown(samples)}: give a fit, or a mapping of names to arrays.")
    return {harmless(str(name)): real_array(f"samples: {name!r}", samples[name]) for name in samples}


def _read_truths(truths: Any) -> dict[str, float]:
    if truths is not None and not isinstance(truths, Mapping):
        raise ValueError(f"truths={shown(truths)}: give a mapping of names to numbers.")
    given = (truths or {}).items()
    return {
        harmless(str(name)): finite_number(f"truths: {name!r}", value) for name, value in given if value is not None
    }


def _check(columns: dict[str, np.ndarray]) -> None:
    if not columns or len(columns) > _MOST:
        raise ValueError(f"samples: {len(columns)} columns; a corner plot can show 1 to {_MOST}: choose some.")
    shapes = {name: values.shape for name, values in columns.items()}
    if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ValueError(f"samples: every column must be one array of the same length; got {shapes}.")
    if not all(shape[0] for shape in shapes.values()):
        raise ValueError("samples: there are none; give at least one number of each column.")


def _range(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, [0.004, 0.996])
    room = 0.04 * (high - low) or 1e-6 + 0.01 * abs(high)
    return max(float(values.min()), low - room) - 1e-12, min(float(values.max()), high + room) + 1e-12


def _draw_pair(axes: "Axes", x: np.ndarray, y: np.ndarray, x_range: Any, y_range: Any) -> None:
    dress(axes)
    counts, x_edges, y_edges = np.histogram2d(x, y, bins=_BINS, range=[x_range, y_range])
    density = gaussian_filter(counts, _SMOOTHING).T
    ordered = np.sort(density.ravel())[::-1]
    inside = np.cumsum(ordered) / ordered.sum()
    levels = [float(ordered[np.searchsorted(inside, level)]) for level in _LEVELS]
    middle = [0.5 * (edges[1:] + edges[:-1]) for edges in (x_edges, y_edges)]
    if levels[0] < levels[1]:
        for low, alpha in zip(levels, (0.18, 0.35), strict=True):
            axes.contourf(*middle, density, levels=[low, density.max() + 1.0], colors=[BLUE], alpha=alpha)
        axes.contour(*middle, density, levels=levels, colors=[BLUE], linewidths=0.7)
    axes.set_ylim(*y_range)


def _mark(axes: "Axes", x: float | None, y: float | None) -> None:
    for value, draw in ((x, axes.axvline), (y, axes.axhline)):
        if value is not None:
            draw(value, color=ORANGE, lw=1.0, ls="--")


def _label(axes: "Axes", below: str, beside: str) -> None:
    """Ticks and names only at the outer edge."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(2))
    axes.tick_params(labelsize=SMALL - 2, labelbottom=bool(below), labelleft=bool(beside))
    if axes.get_yticks().size:
        axes.yaxis.set_major_locator(MaxNLocator(2))
    axes.set_xlabel(below, fontsize=SMALL - 1, color=GREY, **PLAIN)
    axes.set_ylabel(beside, fontsize=SMALL - 1, color=GREY, **PLAIN)
