"""Two ways to show marginal posteriors: the density of one number, and intervals along the index of an array.

Both mark the mean, the 50 % interval (strong) and the 95 % interval (faint).
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import gaussian_filter1d

from quenched.plots.canvas import BLUE, INK, ORANGE, dress, plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 120
_SMOOTHING = 3.0  # bins
_BARS = 60  # intervals drawn one by one; more become a band
_DENSE = 400  # numbers side by side whose means, drawn by a line of usual width, would hide the band where they leap
_INTERVALS = (0.025, 0.25, 0.75, 0.975)


def draw_density(axes: "Axes", values: np.ndarray) -> None:
    """A smoothed histogram of samples over all but the far tails."""
    dress(axes)
    counts, edges = np.histogram(values, bins=_BINS, range=_plotted(values))
    curve = gaussian_filter1d(counts.astype(float), _SMOOTHING, mode="nearest")
    middle = 0.5 * (edges[1:] + edges[:-1])
    far_left, left, right, far_right = np.quantile(values, _INTERVALS)
    axes.plot(middle, curve, color=BLUE, lw=1.4)
    for begin, end, alpha in ((far_left, far_right, 0.15), (left, right, 0.25)):
        inside = np.linspace(max(begin, middle[0]), min(end, middle[-1]), _BINS)
        axes.fill_between(inside, np.interp(inside, middle, curve), color=BLUE, alpha=alpha, lw=0)
    mean = values.mean()
    axes.plot([mean, mean], [0, np.interp(mean, middle, curve)], color=ORANGE, lw=1.6)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_ylim(0, None)
    _few_ticks(axes.xaxis)


def _plotted(values: np.ndarray) -> tuple[float, float]:
    """All but the far tails, and nothing beyond the last value: a positive number stays positive."""
    low, high = np.quantile(values, [0.002, 0.998])
    low, high = max(values.min(), low - 0.05 * (high - low)), min(values.max(), high + 0.05 * (high - low))
    if not high - low > 1e-12 * max(abs(low), abs(high)):  # too narrow for its place on the number line
        return low - 0.5 * max(abs(low), 1e-12), high + 0.5 * max(abs(high), 1e-12)
    return low, high


def draw_intervals(axes: "Axes", values: np.ndarray) -> None:
    """Samples (n, numbers) as means with intervals, one number beside the other; many in no order are put into one."""
    ordered = values.shape[1] <= _BARS or _smooth(values.mean(axis=0))
    values = values if ordered else values[:, np.argsort(values.mean(axis=0), kind="stable")]
    dress(axes, xlabel="index" if ordered else "from the lowest to the highest mean")
    far_left, left, right, far_right = np.quantile(values, _INTERVALS, axis=0)
    mean, index = values.mean(axis=0), np.arange(values.shape[1])
    if len(index) <= _BARS:
        axes.vlines(index, far_left, far_right, color=BLUE, lw=1, alpha=0.6)
        axes.vlines(index, left, right, color=BLUE, lw=2.6)
        axes.plot(index, mean, "o", color=ORANGE, markersize=2.6)
    else:
        axes.fill_between(index, far_left, far_right, color=BLUE, alpha=0.18, lw=0)
        axes.fill_between(index, left, right, color=BLUE, alpha=0.4, lw=0)
        axes.plot(index, mean, color=ORANGE, lw=0.8 if len(index) <= _DENSE else 0.3)
    axes.set_xlim(-0.7, len(index) - 0.3)
    _few_ticks(axes.xaxis, integer=True)
    _few_ticks(axes.yaxis)


def _smooth(means: np.ndarray) -> bool:
    """Whether neighbours are alike, as in a time series (von Neumann's ratio, 2 for independent ones)."""
    return float(np.mean(np.diff(means) ** 2)) < 1.2 * float(np.var(means)) + 1e-300


def draw_outline(axes: "Axes", values: np.ndarray) -> None:
    """Samples of somebody else's over a density, as a dashed outline of the same area."""
    counts, edges = np.histogram(values, bins=_BINS, range=_plotted(values))
    curve = gaussian_filter1d(counts.astype(float), _SMOOTHING, mode="nearest") / (len(values) * (edges[1] - edges[0]))
    own = axes.get_lines()[0]
    x, y = (np.asarray(part, float) for part in own.get_data())
    area = float(np.trapezoid(y, x))
    axes.plot(0.5 * (edges[1:] + edges[:-1]), curve * area, color=INK, lw=1.3, ls="--")
    axes.set_ylim(0, 1.05 * max(float(y.max()), float(curve.max()) * area))


def draw_ticks(axes: "Axes", values: np.ndarray) -> None:
    """Means and 95 % intervals of somebody else's samples, beside those that are there in the order of their index."""
    if axes.get_xlabel() != "index":
        return
    low, high = np.quantile(values, [_INTERVALS[0], _INTERVALS[-1]], axis=0)
    index = np.arange(values.shape[1])
    axes.plot(index, values.mean(axis=0), "_", color=INK, markersize=4)
    axes.plot(index, low, ls="--", color=INK, lw=0.8)
    axes.plot(index, high, ls="--", color=INK, lw=0.8)


def _few_ticks(axis: Any, integer: bool = False) -> None:
    from matplotlib.ticker import MaxNLocator

    plain_numbers(axis)
    axis.set_major_locator(MaxNLocator(4, integer=integer))
