"""Whether error bars are as long as they should be: how often they hold the truth, against how often they ought to."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom, norm

from quenched.numbers import real_array
from quenched.plots.canvas import BLUE, GREY, SMALL, dress, read_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NOMINAL = np.linspace(0.02, 0.98, 49)


def plot_error_bars(estimates: Any, errors: Any, truths: Any, axes: "Axes | None" = None) -> "Axes":
    """Draw the share of truths inside estimate ± k errors against what a normal error has there.

    Below the diagonal error bars are too short, above it too long. The grey band holds 95 % of what chance does to as many
    independent ones.

    Parameters
    ----------
    estimates, errors, truths
        Arrays of one shape: what was found, the standard error that was reported, and what is right.
    axes
        Where to draw; None makes a figure, found as `axes.figure`.

    Raises
    ------
    ValueError
        When the shapes differ, or an error is not positive.

    Examples
    --------
    >>> from quenched.plots import plot_error_bars
    >>> estimates = np.random.default_rng(0).normal(0.0, 1.0, 200)
    >>> plot_error_bars(estimates, errors=np.ones(200), truths=np.zeros(200)).get_ylabel()
    'share that is inside'
    """
    given = {"estimates": estimates, "errors": errors, "truths": truths}
    found, error, right = (real_array(name, value) for name, value in given.items())
    if not found.shape == error.shape == right.shape:
        raise ValueError(f"estimates, errors and truths have shapes {found.shape}, {error.shape} and {right.shape}.")
    if not found.size:
        raise ValueError("estimates: there are none.")
    if not (error > 0).all():
        raise ValueError(f"errors: {int((~(error > 0)).sum())} of {error.size} are not positive.")
    away = np.abs((found - right) / error).ravel()
    n = away.size
    inside = (away[None] <= norm.ppf(0.5 + 0.5 * _NOMINAL)[:, None]).mean(axis=1)
    axes = read_axes(axes, 4.4, 4.2)
    dress(axes, xlabel="share that ought to be inside", ylabel="share that is inside")
    low, high = binom.interval(0.95, n, _NOMINAL)
    axes.fill_between(_NOMINAL, low / n, high / n, color=GREY, alpha=0.2, lw=0, label="chance, 95 %")
    axes.plot([0, 1], [0, 1], color=GREY, lw=1.2, ls="--")
    axes.plot(_NOMINAL, inside, color=BLUE, lw=1.8, label=f"{n} error bars")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=GREY, loc="upper left")
    return axes
