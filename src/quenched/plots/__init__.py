"""Figures of a fit. Needs the extra `plots`; matplotlib is imported when the first figure is made."""

from quenched.plots.canvas import BLUE, GREEN, GREY, HAIRLINE, ORANGE, SMALL, dress, new_figure
from quenched.plots.corner import plot_corner
from quenched.plots.figure import plot_fit
from quenched.plots.marginals import plot_marginals
from quenched.plots.monitor import plot_monitor
from quenched.plots.ranks import plot_ranks
from quenched.plots.spectra import Panel, plot_spectra

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "HAIRLINE",
    "ORANGE",
    "SMALL",
    "Panel",
    "dress",
    "new_figure",
    "plot_corner",
    "plot_fit",
    "plot_marginals",
    "plot_monitor",
    "plot_ranks",
    "plot_spectra",
]
