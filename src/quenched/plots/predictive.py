"""Predictions beside what was observed: bands, and the points outside them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.numbers import plain_array, real_array
from quenched.plots.canvas import BLUE, GREY, INK, ORANGE, SMALL, dress, read_axes
from quenched.text import given_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INTERVALS = (0.025, 0.25, 0.5, 0.75, 0.975)
_VEIL = 0.8  # of the legend: bands and lines go all over the plot, and words on them cannot be read
_MANY = 200  # observations that get smaller dots


def plot_predictive(
    predicted: Any, observed: Any = None, x: Any = None, axes: "Axes | None" = None, *, label: str = ""
) -> "Axes":
    """Draw bands that hold 50 and 95 % of the predictions, and the observations; those outside the wide band are crosses.

    Parameters
    ----------
    predicted
        Samples of the prediction, (samples, points): an entry of `fit.predict(n)`, or made from `fit.sample(n)`.
    observed
        (points,), with NaN where there is none.
    x
        Where the points are; 0, 1, ... by default. They are sorted.
    axes
        Where to draw; None makes a figure, found as `axes.figure`.
    label
        Of the horizontal axis.

    Raises
    ------
    ValueError
        When the shapes do not belong together.

    Examples
    --------
    >>> from quenched.plots import plot_predictive
    >>> predicted = np.random.default_rng(0).normal(0.0, 1.0, (400, 20))  # or fit.predict(400)["y"]
    >>> axes = plot_predictive(predicted, observed=np.zeros(20), label="week")
    >>> axes.get_xlabel()
    'week'
    """
    samples = real_array("predicted", predicted)
    if samples.ndim != 2 or not samples.size:
        raise ValueError(f"predicted has shape {samples.shape}; give (samples, points).")
    n = samples.shape[1]
    across = np.arange(n) if x is None else real_array("x", x)
    if observed is not None:
        observed = plain_array("observed", observed)
        if observed.dtype.kind not in "fiub":
            raise ValueError(f"observed: has dtype {observed.dtype}; give real numbers, and NaN where there is none.")
    for name, value in (("x", across), ("observed", observed)):
        if value is not None and np.shape(value) != (n,):
            raise ValueError(f"{name} has shape {np.shape(value)}, but {n} points were predicted.")
    label, axes = given_text("label", label), read_axes(axes, 7.2, 3.6)
    from matplotlib.ticker import MaxNLocator

    dress(axes, xlabel=label)
    order = np.argsort(across, kind="stable")
    low, left, middle, right, high = np.quantile(samples, _INTERVALS, axis=0)[:, order]
    axes.fill_between(across[order], low, high, color=BLUE, alpha=0.16, lw=0, label="95 % of predictions")
    axes.fill_between(across[order], left, right, color=BLUE, alpha=0.35, lw=0, label="50 %")
    axes.plot(across[order], middle, color=BLUE, lw=1.3, label="median")
    if observed is not None:
        _observe(axes, across[order], np.asarray(observed, float)[order], low, high)
    if np.array_equal(across, np.round(across)):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(framealpha=_VEIL, edgecolor="none", fontsize=SMALL - 0.5, labelcolor=GREY)
    return axes


def _observe(axes: "Axes", x: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    outside = (y < low) | (y > high)
    size = 3.2 if len(y) <= _MANY else 1.4  # or they would hide the bands
    axes.plot(x[~outside], y[~outside], "o", color=INK, markersize=size, markeredgewidth=0, label="observed")
    if outside.any():
        share = f"outside the band ({outside.sum()} of {np.isfinite(y).sum()})"
        style = {"markersize": size + 2.8, "markeredgecolor": "white", "markeredgewidth": 0.3 * size}
        axes.plot(x[outside], y[outside], "X", color=ORANGE, label=share, **style)
