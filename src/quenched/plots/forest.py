"""Intervals, one below the other: a forest plot of parameters, and the effects of a grouping from the lowest to the highest."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.numbers import real_array, whole_number
from quenched.plots.canvas import (
    BLUE,
    GREY,
    HAIRLINE,
    INK,
    ORANGE,
    PLAIN,
    SMALL,
    dress,
    read_axes,
    short,
)
from quenched.plots.spread import columns, read_names, spread
from quenched.results import Fit, insist_fit
from quenched.text import given_text, harmless, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 40
_LETTERS = 28  # of a label
_INTERVALS = (0.025, 0.25, 0.75, 0.975)
_NORMAL = np.array([-1.959964, -0.6744898, 0.6744898, 1.959964])


def plot_forest(
    fit: Fit, axes: "Axes | None" = None, *, names: Sequence[str] | None = None, most: int = _MOST
) -> "Axes":
    """Draw a line for every number: its mean, its 50 % interval (thick) and its 95 % interval (thin), in natural units.

    Parameters
    ----------
    fit
        What to show.
    axes
        Where to draw; None makes a figure, found as `axes.figure`.
    names
        Of numbers or of whole arrays; all by default.
    most
        Lines at the most: of more, those whose mean is the most standard deviations away from zero.

    Examples
    --------
    >>> from quenched.plots import plot_forest
    >>> fit = qd.fit(lambda w: -0.5 * jnp.sum((w - np.arange(50)) ** 2), np.zeros(50))
    >>> plot_forest(fit, most=20).get_title(loc="left")
    'The 20 clearest of 50'
    """
    insist_fit(fit)
    most, axes = whole_number("most", most, 1), None if axes is None else read_axes(axes, 1.0, 1.0)
    found = columns(fit.space, spread(fit), None if names is None else read_names(names))
    labels = list(found)
    means, sds = (np.array([getattr(values, name)() for values in found.values()]) for name in ("mean", "std"))
    order = np.argsort(-np.abs(means) / np.maximum(sds, 1e-300), kind="stable")[:most]
    chosen = np.sort(order)
    edges = np.stack([np.quantile(found[labels[i]], _INTERVALS) for i in chosen])
    left_out = len(labels) - len(chosen)
    axes = _axes(axes, len(chosen))
    dress(axes, title=f"The {len(chosen)} clearest of {len(labels)}" if left_out else "Mean, 50 % and 95 % intervals")
    _draw(axes, means[chosen], edges, [labels[i] for i in chosen])
    return axes


def plot_effects(table: Any, axes: "Axes | None" = None, *, title: str = "", most: int = _MOST) -> "Axes":
    """Draw the effects of a grouping, from the lowest to the highest, with their 50 and 95 % intervals.

    Parameters
    ----------
    table
        With `mean` and `sd` by level, as `MixedModel(...).effects_["1|group"]` is: a DataFrame, or a mapping of arrays with
        the levels under `level`.
    axes
        Where to draw; None makes a figure, found as `axes.figure`.
    title
        Above it.
    most
        Levels that get a line and a name each; of more, all become one band, and the outermost are named.

    Examples
    --------
    >>> from quenched.plots import plot_effects
    >>> table = {"level": ["north", "south"], "mean": [0.3, -0.2], "sd": [0.1, 0.2]}  # or mixed.effects_["1|region"]
    >>> [label.get_text() for label in plot_effects(table).get_yticklabels()]  # from the lowest
    ['south', 'north']
    """
    means, sds, levels = _read_effects(table)
    most, title = whole_number("most", most, 1), given_text("title", title)
    axes = None if axes is None else read_axes(axes, 1.0, 1.0)
    order = np.argsort(means, kind="stable")
    edges = means[order, None] + sds[order, None] * _NORMAL
    if len(order) <= most:
        axes = _axes(axes, len(order))
        dress(axes, title=title)
        _draw(axes, means[order], edges, [levels[i] for i in order])
        return axes
    axes = read_axes(axes, 7.2, 3.6)
    dress(axes, title=title, xlabel=f"{len(order)} levels, from the lowest to the highest mean", ylabel="effect")
    rank = np.arange(1, len(order) + 1)
    axes.fill_between(rank, edges[:, 0], edges[:, 3], color=BLUE, alpha=0.18, lw=0)
    axes.fill_between(rank, edges[:, 1], edges[:, 2], color=BLUE, alpha=0.4, lw=0)
    axes.plot(rank, means[order], color=INK, lw=1.2)
    axes.axhline(0.0, color=GREY, lw=0.8, ls=":")
    for place, side in ((0, "left"), (len(order) - 1, "right")):
        axes.annotate(
            levels[order[place]], (rank[place], float(means[order[place]])), fontsize=SMALL - 1, color=INK, ha=side,
            xytext=(4 if side == "left" else -4, -10 if side == "left" else 6), textcoords="offset points", **PLAIN,
        )  # fmt: skip
    return axes


def _read_effects(table: Any) -> tuple[np.ndarray, np.ndarray, list[str]]:
    levels = table.index if hasattr(table, "columns") else table.get("level") if isinstance(table, Mapping) else None
    if levels is None or "mean" not in table or "sd" not in table:
        raise ValueError(
            f"table={shown(table)}: give a DataFrame by level with the columns mean and sd, or a mapping of arrays with "
            "the levels under 'level'."
        )
    means, sds = (real_array(f"table: {name}", table[name]) for name in ("mean", "sd"))
    names = [harmless(str(level)) for level in np.ravel(np.asarray(levels, dtype=object))]
    if not means.shape == sds.shape == (len(names),) or not names:
        raise ValueError(f"table: has {means.shape} means and {sds.shape} sds for {len(names)} levels.")
    return means, sds, names


def _axes(axes: "Axes | None", n: int) -> "Axes":
    return read_axes(axes, 6.0, 0.2 * n + 0.9)


def _draw(axes: "Axes", means: np.ndarray, edges: np.ndarray, labels: list[str]) -> None:
    height = np.arange(len(labels))[::-1]
    axes.hlines(height, edges[:, 0], edges[:, 3], color=BLUE, lw=1.1, alpha=0.7)
    axes.hlines(height, edges[:, 1], edges[:, 2], color=BLUE, lw=3.2)
    axes.plot(means, height, "o", color=ORANGE, markersize=3.6, markeredgecolor="white", markeredgewidth=0.5)
    if edges.min() < 0.0 < edges.max():
        axes.axvline(0.0, color=HAIRLINE, lw=1.0, zorder=0)
    axes.set_yticks(
        height,
        [short(label, _LETTERS) for label in labels],
        fontsize=SMALL - (0.5 if len(labels) <= 25 else 2.0),
        **PLAIN,
    )
    axes.set_ylim(-0.8, len(labels) - 0.2)
    axes.tick_params(axis="y", length=0, colors=INK)
