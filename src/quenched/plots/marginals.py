"""Marginal posteriors in natural units.

Up to a dozen numbers get a density each. Beyond, each array of the parameters gets one panel: a density for a single
number, intervals along the index for many.
"""

from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from quenched.numbers import insist_tree, real_array
from quenched.plots.canvas import GREY, INK, PLAIN, SMALL, new_figure, short
from quenched.plots.panels import draw_density, draw_intervals, draw_outline, draw_ticks
from quenched.plots.spread import spread
from quenched.results import Fit, insist_fit
from quenched.text import shown
from quenched.transforms import Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_PANELS = 12
_COLUMNS = 4
_LETTERS = 24  # of a title that fit above a panel


class _Panel(NamedTuple):
    title: str
    values: np.ndarray  # (n,) for a density, (n, numbers) for intervals
    others: np.ndarray | None  # samples of somebody else's, of the same form


def plot_marginals(
    fit: Fit, figure: "Figure | SubFigure | None" = None, *, samples: Parameters | None = None
) -> "Figure | SubFigure":
    """Draw the marginal posterior of every number, or of every array when there are many numbers.

    Parameters
    ----------
    fit
        What to show.
    figure
        Where to draw; None makes a figure.
    samples
        To compare with, as `fit.sample` gives them: of a Markov chain, or `fit.resample(n)`. Drawn as a dashed outline.

    Examples
    --------
    >>> from quenched.plots import plot_marginals
    >>> fit = qd.fit(lambda p: -0.5 * (p["a"] ** 2 + jnp.sum(p["b"] ** 2)), {"a": 0.0, "b": np.zeros(2)})
    >>> figure = plot_marginals(fit, samples=fit.resample(500))  # or those of a Markov chain
    >>> [axes.get_title(loc="left") for axes in figure.get_axes()]
    ['a', 'b[0]', 'b[1]']
    """
    insist_fit(fit)
    panels = _panels(fit, samples)
    first = panels[:_PANELS]
    rows, columns = _grid(len(first))
    if figure is not None and not hasattr(figure, "supxlabel"):
        raise ValueError(f"figure={shown(figure)}: give a figure of matplotlib, or None for one of its own.")
    figure = new_figure(*marginals_size(fit)) if figure is None else figure
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, panel in zip(grid, first, strict=False):
        draw = draw_density if panel.values.ndim == 1 else draw_intervals
        draw(axes, panel.values)
        if panel.others is not None:
            (draw_outline if panel.values.ndim == 1 else draw_ticks)(axes, panel.others)
        axes.set_title(short(panel.title, _LETTERS), loc="left", fontsize=SMALL + 1, color=INK, **PLAIN)
    for axes in grid[len(first) :]:
        axes.set_axis_off()
    note = "mean, 50 % interval (strong) and 95 % interval (faint)"
    further = (";\n" if columns < 3 else "; ") + "dashed: the samples"
    note += further if samples is not None else ""
    left_out = len(panels) - len(first)
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


def _panels(fit: Fit, samples: Parameters | None) -> list[_Panel]:
    one_each = sum(_sizes(fit)) <= _PANELS
    own = jax.tree.leaves(spread(fit))
    theirs = [None] * len(own) if samples is None else _like(fit, samples, own)
    panels = []
    for leaf, values, others in zip(fit.space.leaves, own, theirs, strict=True):
        size = values[0].size
        if one_each or size == 1:
            for name, index in leaf.entries(leaf.shape):
                place = (slice(None), *index)
                panels.append(_Panel(name, values[place], None if others is None else others[place]))
        elif size:
            shape = " × ".join(map(str, leaf.shape))
            flat = None if others is None else others.reshape(len(others), -1)
            panels.append(_Panel(f"{leaf.name} ({shape})", values.reshape(len(values), -1), flat))
    return panels


def _like(fit: Fit, samples: Parameters, own: list[np.ndarray]) -> list[np.ndarray]:
    """Samples by the arrays of the fit; a mapping may hold more than those."""
    if isinstance(samples, dict) and isinstance(fit.mean, dict):
        samples = {name: samples[name] for name in fit.mean if name in samples}
    insist_tree("samples", samples)
    found = [real_array("samples", leaf) for leaf in jax.tree.leaves(samples)]
    shapes = [array.shape[1:] for array in own]
    if [array.shape[1:] for array in found] != shapes:
        raise ValueError(
            f"samples: arrays of shapes {[array.shape for array in found]}; as fit.sample(n) gives them they have the shapes "
            f"{[('n', *shape) for shape in shapes]}."
        )
    if not all(len(array) for array in found):
        raise ValueError("samples: there are none; give a few hundred, as fit.sample(n) does.")
    return found
