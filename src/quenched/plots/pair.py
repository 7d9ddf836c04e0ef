"""Two parameters: contours of their posterior, and samples moved to the target by their importance weights.

Where the posterior is a Gaussian on the real line and each of the two has a transform of its own, the contours are ellipses,
carried into natural units; otherwise they are those of a smoothed histogram.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.stats import chi2

from quenched.plots.canvas import BLUE, GREY, ORANGE, PLAIN, SMALL, dress, read_axes
from quenched.plots.spread import columns, spread, weighted
from quenched.posterior import to_natural
from quenched.results import Fit, insist_fit
from quenched.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 48
_SMOOTHING = 2.0  # bins
_LEVELS = (0.95, 0.5)  # probability inside each contour
_DOTS = 300
_TURN = np.linspace(0.0, 2.0 * np.pi, 120)


def plot_pair(fit: Fit, x: str, y: str, axes: "Axes | None" = None) -> "Axes":
    """Draw the joint posterior of two numbers: contours that hold 50 and 95 %, and weighted samples as dots.

    Dots that leave the contours show what the family cannot follow.

    Parameters
    ----------
    fit
        What to show.
    x, y
        Names, as in `fit.summary()`.
    axes
        Where to draw; None makes a figure, found as `axes.figure`.

    Examples
    --------
    >>> from quenched.plots import plot_pair
    >>> fit = qd.fit(lambda p: -0.5 * (p["a"] ** 2 + (p["b"] - p["a"]) ** 2), {"a": 0.0, "b": 0.0})
    >>> axes = plot_pair(fit, "a", "b")
    >>> axes.figure.savefig("pair.png")  # doctest: +SKIP
    >>> axes.get_xlabel()
    'a'
    """
    insist_fit(fit)
    known = fit.space.names()
    for argument, name in (("x", x), ("y", y)):
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"{argument}={shown(name)}: no number is called so; there are {', '.join(known[:8])}.")
    axes = read_axes(axes, 4.6, 4.2)
    own, dots = _points(fit, x, y)
    dress(axes)
    ellipses = _ellipses(fit, x, y)
    if ellipses is None:
        draw_contours(axes, *own, plotted_range(own[0]), plotted_range(own[1]))
    else:
        for (across, up), alpha in zip(ellipses, (0.16, 0.3), strict=True):
            axes.fill(across, up, facecolor=BLUE, edgecolor="none", alpha=alpha)
            axes.plot(across, up, color=BLUE, lw=0.9)
    if dots is not None:
        axes.plot(*dots, ".", color=ORANGE, markersize=3.0, alpha=0.7, markeredgewidth=0, zorder=3)
    axes.set_xlabel(x, fontsize=SMALL, color=GREY, **PLAIN)
    axes.set_ylabel(y, fontsize=SMALL, color=GREY, **PLAIN)
    return axes


@lru_cache(maxsize=4)
def _all_points(fit: Fit) -> tuple[Any, Any]:
    return spread(fit), weighted(fit, _DOTS)


def _points(fit: Fit, x: str, y: str) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray] | None]:
    own, moved = _all_points(fit)
    pick = lambda values: (lambda found: (found[x], found[y]))(columns(fit.space, values, [x, y]))
    return pick(own), None if moved is None else pick(moved)


def _ellipses(fit: Fit, x: str, y: str) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """The 95 and 50 % ellipses in natural units; None where there are none."""
    names = fit.space.coordinate_names()
    if not fit.posterior.member.affine or x not in names or y not in names or x == y:
        return None
    i, j = names.index(x), names.index(y)
    mean, spreads = fit.posterior.mean, np.sqrt(fit.posterior.variance())
    factor = np.linalg.cholesky(fit.posterior.marginal([i, j]).covariance)
    found = []
    for level in _LEVELS:
        edge = np.sqrt(chi2.ppf(level, 2)) * factor @ np.stack([np.cos(_TURN), np.sin(_TURN)])
        rows = np.tile(mean, (len(_TURN), 1))
        rows[:, i], rows[:, j] = mean[i] + edge[0], mean[j] + edge[1]
        moved = rows + np.where(np.isin(np.arange(len(mean)), [i, j]), 0.0, spreads)
        first, second = (columns(fit.space, to_natural(fit.space, some), [x, y]) for some in (rows, moved))
        if any(not np.allclose(first[name], second[name], rtol=1e-9, atol=1e-12) for name in (x, y)):
            return None  # the transform of one of them takes the others in
        found.append((first[x], first[y]))
    return found


def plotted_range(values: np.ndarray) -> tuple[float, float]:
    """All but the far tails, with some room."""
    low, high = np.quantile(values, [0.004, 0.996])
    room = 0.06 * (high - low) or 1e-6 + 0.01 * abs(high)
    slack = 0.3 * room + 1e-12
    return max(float(values.min()) - slack, low - room), min(float(values.max()) + slack, high + room)


def draw_contours(axes: "Axes", x: np.ndarray, y: np.ndarray, x_range: Any, y_range: Any) -> None:
    """Contours that hold half and 95 % of the samples."""
    dress(axes)
    counts, x_edges, y_edges = np.histogram2d(x, y, bins=_BINS, range=[x_range, y_range])
    density = gaussian_filter(counts, _SMOOTHING, mode="constant").T
    ordered = np.sort(density.ravel())[::-1]
    inside = np.cumsum(ordered) / ordered.sum()
    levels = [float(ordered[np.searchsorted(inside, level)]) for level in _LEVELS]
    middle = [0.5 * (edges[1:] + edges[:-1]) for edges in (x_edges, y_edges)]
    if levels[0] < levels[1]:
        for low, alpha in zip(levels, (0.18, 0.35), strict=True):
            axes.contourf(*middle, density, levels=[low, density.max() + 1.0], colors=[BLUE], alpha=alpha)
        axes.contour(*middle, density, levels=levels, colors=[BLUE], linewidths=0.7)
    axes.set_ylim(*y_range)
