"""A corner plot: the density of every number on the diagonal, of every pair below it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.numbers import finite_number, real_array
from quenched.plots.canvas import GREY, ORANGE, PLAIN, SMALL, new_figure, read_figure_path, short, write_figure
from quenched.plots.pair import draw_contours, plot_pair, plotted_range
from quenched.plots.panels import draw_density
from quenched.plots.spread import columns as columns_of
from quenched.plots.spread import read_names, spread
from quenched.results import Fit
from quenched.text import did_you_mean, harmless_lines, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 16
_LETTERS = 15  # of a label that fit beside an inch of a panel


def plot_corner(
    samples: Fit | Mapping[str, Any],
    path: str | Path | None = None,
    *,
    names: list[str] | None = None,
    truths: Mapping[str, float] | None = None,
) -> "Figure":
    """Draw all one- and two-dimensional marginals of a posterior.

    Parameters
    ----------
    samples
        A fit (in natural units: ellipses where its posterior has them, with samples moved to the target by their importance
        weights as dots), or columns of samples by label.
    path
        File to write as well; its ending says the format.
    names
        Of the parameters to show; all by default.
    truths
        Values to mark, by label.

    Raises
    ------
    ValueError
        For more than 16 columns, which nobody could read, or columns of unequal length.

    Examples
    --------
    >>> from quenched.plots import plot_corner
    >>> fit = qd.fit(lambda p: -0.5 * (p["a"] ** 2 + (p["b"] - p["a"]) ** 2), {"a": 0.0, "b": 0.0})
    >>> len(plot_corner(fit, truths={"a": 0.5}).get_axes())
    4
    """
    path, fit = read_figure_path(path), samples if isinstance(samples, Fit) else None
    columns = _columns(samples, names)
    _check(columns)
    truths = _read_truths(truths)
    n = len(columns)
    side = max(1.0, min(1.9, 11.0 / n))
    figure = new_figure(side * n + 0.8, side * n + 0.5)
    grid = figure.subplots(n, n, squeeze=False)
    ranges = [plotted_range(values) for values in columns.values()]
    items, labels = list(columns.items()), [_lines(label, int(_LETTERS * side)) for label in columns]
    for i, (label, values) in enumerate(items):
        for j, (other, across) in enumerate(items):
            axes = grid[i, j]
            if j > i:
                axes.set_axis_off()
                continue
            if i == j:
                draw_density(axes, values)
            elif fit is not None:
                plot_pair(fit, other, label, axes)
                axes.set_ylim(*ranges[i])
            else:
                draw_contours(axes, across, values, ranges[j], ranges[i])
            _mark(axes, truths.get(other), None if i == j else truths.get(label))
            axes.set_xlim(*ranges[j])
            _label(axes, labels[j] if i == n - 1 else "", labels[i] if j == 0 and i else "")
    write_figure(figure, path, dpi=110)
    return figure


def _columns(samples: Fit | Mapping[str, Any], names: list[str] | None) -> dict[str, np.ndarray]:
    names = None if names is None else read_names(names)
    if isinstance(samples, Fit):
        return columns_of(samples.space, spread(samples), names)
    if not isinstance(samples, Mapping) and not hasattr(samples, "columns"):
        raise ValueError(f"samples={shown(samples)}: give a fit, or a mapping of names to arrays.")
    unknown = [name for name in names or () if name not in samples]
    if unknown:
        raise ValueError(
            f"names={shown(unknown[0])}: the samples have none of that name{did_you_mean(unknown[0], samples)}"
        )
    chosen = [name for name in samples if names is None or name in names]
    return {harmless_lines(str(name)): real_array(f"samples: {name!r}", samples[name]) for name in chosen}


def _read_truths(truths: Any) -> dict[str, float]:
    if truths is not None and not isinstance(truths, Mapping):
        raise ValueError(f"truths={shown(truths)}: give a mapping of names to numbers.")
    given = (truths or {}).items()
    return {
        harmless_lines(str(name)): finite_number(f"truths: {name!r}", value)
        for name, value in given
        if value is not None
    }


def _check(columns: dict[str, np.ndarray]) -> None:
    if not columns or len(columns) > _MOST:
        raise ValueError(f"samples: {len(columns)} columns; a corner plot can show 1 to {_MOST}: choose some.")
    shapes = {name: values.shape for name, values in columns.items()}
    if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ValueError(f"samples: every column must be one array of the same length; got {shapes}.")
    if not all(shape[0] for shape in shapes.values()):
        raise ValueError("samples: there are none; give at least one number of each column.")


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


def _lines(label: str, letters: int) -> str:
    return "\n".join(short(line, letters) for line in label.split("\n"))
