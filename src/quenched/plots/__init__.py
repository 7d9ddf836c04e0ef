"""Figures of a fit. Needs the extra `plots`; matplotlib is imported when the first figure is made."""

from quenched.plots.canvas import new_figure
from quenched.plots.figure import plot_fit
from quenched.plots.marginals import plot_marginals
from quenched.plots.monitor import plot_monitor
from quenched.plots.ranks import plot_ranks

__all__ = ["new_figure", "plot_fit", "plot_marginals", "plot_monitor", "plot_ranks"]
