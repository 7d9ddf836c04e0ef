"""The monitor: the bound on the draws and on the check draws, round by round (paper, Sec. 2.3).

While the fit follows the target, both rise together. A check bound that falls away from the bound shows a fit that
follows its draws.
"""

from typing import TYPE_CHECKING

import numpy as np

from quenched.plots.canvas import BLUE, GREEN, GREY, HAIRLINE, SMALL, dress, plain_numbers, read_axes
from quenched.results import Fit, History, Round, insist_fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 12  # rounds that get a marker and a tick each
_CHECK = "check bound ± 2 standard errors"


def plot_monitor(fit: Fit, axes: "Axes | None" = None) -> "Axes":
    """Draw bound and check bound per round, the latter with a band of two standard errors.

    Parameters
    ----------
    fit
        What to show.
    axes
        Where to draw; None makes a figure, found as `axes.figure`.

    Examples
    --------
    >>> from quenched.plots import plot_monitor
    >>> axes = plot_monitor(qd.fit(lambda w: -0.5 * w**2, 0.0))
    >>> axes.get_title(loc="left")
    'Bound on the draws, and on fresh draws'
    """
    insist_fit(fit)
    axes = read_axes(axes, 7.2, monitor_height(fit))
    seen = _finite_rounds(fit)
    dress(axes, title="Bound on the draws, and on fresh draws")
    if not seen:
        axes.text(0.5, 0.5, "no round was finished", transform=axes.transAxes, ha="center", color=GREY, fontsize=SMALL)
        axes.set(xticks=[], yticks=[])
    elif len(seen) == 1:
        _draw_one(axes, seen[0], fit.settings.get("tolerance"))
    else:
        _draw_rounds(axes, seen)
    return axes


def monitor_height(fit: Fit) -> float:
    """Inches that the monitor needs."""
    return 3.0 if len(_finite_rounds(fit)) > 1 else 1.6


def _finite_rounds(fit: Fit) -> History:
    return History(entry for entry in fit.history if np.isfinite([entry.bound, entry.check_bound]).all())


def _draw_one(axes: "Axes", only: Round, tolerance: float | None) -> None:
    """One round: two values on a line of nats, with the tolerance shaded below the bound."""
    from matplotlib.ticker import MaxNLocator

    label = f"nats, on {only.n_draws} draws"
    if tolerance is not None:
        axes.axvspan(only.bound - tolerance, only.bound, color=BLUE, alpha=0.1, lw=0)
        label += f"; shaded: the tolerance of {tolerance:.2g} below the bound"
    axes.errorbar(only.check_bound, 0, xerr=2 * np.nan_to_num(only.check_error), color=GREEN, fmt="o", capsize=4)
    axes.plot(only.bound, 1, "o", color=BLUE, markerfacecolor="white", markersize=6)
    axes.set_yticks([1, 0], ["bound", _CHECK.replace(" ± ", "\n± ")])
    axes.set_ylim(-0.7, 1.7)
    axes.margins(x=0.15)
    axes.set_xlabel(label, fontsize=SMALL, color=GREY)
    plain_numbers(axes.xaxis)
    axes.xaxis.set_major_locator(MaxNLocator(5))


def _draw_rounds(axes: "Axes", seen: History) -> None:
    rounds = np.arange(1, len(seen) + 1)
    bound, check, error = seen["bound"], seen["check_bound"], np.nan_to_num(seen["check_error"])
    style = {"marker": "o" if len(seen) <= _FEW else None, "markersize": 4.5, "lw": 1.6}
    axes.fill_between(rounds, check - 2 * error, check + 2 * error, color=GREEN, alpha=0.18, lw=0)
    axes.plot(rounds, check, color=GREEN, label=_CHECK, **style)
    axes.plot(rounds, bound, color=BLUE, ls="--", label="bound", markerfacecolor="white", **style)
    plain_numbers(axes.yaxis)
    axes.set_ylabel("nats", fontsize=SMALL, color=GREY)
    if len(seen) <= _FEW:
        axes.set_xticks(rounds, [f"{n}\n{entry.n_draws} draws" for n, entry in zip(rounds, seen, strict=True)])
        axes.set_xlim(0.5, len(seen) + 0.5)
        axes.margins(y=0.2)
    else:
        _mark_growth(axes, seen["n_draws"])
        _look_at_the_end(axes, np.stack([bound, check]))
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=GREY, handlelength=2.8, loc="best")


def _mark_growth(axes: "Axes", n_draws: np.ndarray) -> None:
    """Name the number of draws, or draw a line wherever it changes."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(1, len(n_draws))
    changes = np.flatnonzero(np.diff(n_draws)) + 1
    label = "round" if len(changes) else f"round, with {n_draws[0]} draws"
    axes.set_xlabel(label, fontsize=SMALL, color=GREY)
    for index in changes:
        axes.axvline(index + 0.5, color=HAIRLINE, lw=1, zorder=0)
        axes.annotate(
            f"{n_draws[index]} draws",
            (index + 0.5, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -2),
            textcoords="offset points",
            va="top",
            fontsize=SMALL - 1,
            color=GREY,
        )


def _look_at_the_end(axes: "Axes", values: np.ndarray) -> None:
    """Leave the first steep rounds below the frame: what matters is how the curves end."""
    later = values[:, max(1, values.shape[1] // 10) :]
    room = 0.15 * max(float(np.ptp(later)), 1e-6)
    if values.min() < later.min() - 5 * room:
        axes.set_ylim(later.min() - room, values.max() + room)
