"""The figure of a calibration: for each number a histogram of its ranks, and their distribution function less the uniform."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.plots.canvas import BLUE, GREY, ORANGE, dress, new_figure, read_figure_path, write_figure
from quenched.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from quenched.calibration import Calibration

_MOST = 12  # numbers shown: the ones furthest from uniform


def plot_ranks(calibration: "Calibration", path: str | Path | None = None) -> "Figure":
    """Draw the ranks.

    Parameters
    ----------
    calibration
        What to show; of many numbers, those furthest from uniform.
    path
        File to write as well; its ending says the format (`.png`, `.svg`, `.pdf`).

    Examples
    --------
    >>> from jax.scipy.stats import norm
    >>> from quenched.plots import plot_ranks
    >>> simulate = lambda random: (mu := random.normal(), random.normal(mu, 1.0, 4))
    >>> log_density = lambda mu, data: norm.logpdf(mu) + norm.logpdf(data, mu).sum()
    >>> calibration = qd.calibrate(simulate, log_density, 0.0, n=50)
    >>> len(plot_ranks(calibration).get_axes())  # ranks, and how they are distributed; as calibration.plot()
    2
    """
    if not hasattr(calibration, "findings"):
        raise ValueError(f"calibration={shown(calibration)}: give what quenched.calibrate returns.")
    file = read_figure_path(path)
    order = np.argsort([-finding.departure for finding in calibration.findings], kind="stable")[:_MOST]
    chosen = np.sort(order)
    figure = new_figure(7.2, 1.7 * len(chosen) + 0.6)
    for index, (left, right) in zip(chosen, figure.subplots(len(chosen), 2, squeeze=False), strict=True):
        finding, ranks = calibration.findings[index], calibration.ranks[:, index]
        colour = BLUE if finding.verdict == "calibrated" else ORANGE
        _histogram(left, ranks, calibration.n_samples, colour)
        _distribution(right, ranks, calibration, colour)
        dress(left, title=f"{finding.name}: {finding.verdict}", ylabel="data sets")
        dress(right)
    left.set_xlabel("rank of the true value", fontsize=8.5, color=GREY)
    right.set_xlabel("distribution of the ranks less the uniform", fontsize=8.5, color=GREY)
    write_figure(figure, file, dpi=160)
    return figure


def _histogram(axes: "Axes", ranks: np.ndarray, n_samples: int, colour: str) -> None:
    from scipy.stats import binom

    bins = int(np.clip(len(ranks) // 10, 5, 20))
    axes.hist(ranks, bins=bins, range=(-0.5, n_samples + 0.5), color=colour, alpha=0.7)
    low, high = binom.interval(0.99, len(ranks), 1.0 / bins)
    axes.axhspan(low, high, color=GREY, alpha=0.2, lw=0)


def _distribution(axes: "Axes", ranks: np.ndarray, calibration: Any, colour: str) -> None:
    band, found = calibration.band, calibration.distribution(ranks)
    axes.fill_between(band.points, band.low - band.points, band.high - band.points, color=GREY, alpha=0.2, lw=0)
    axes.plot(band.points, found - band.points, color=colour, lw=1.4)
