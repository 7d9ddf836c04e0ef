"""Figures of a fit. Needs the extra `plots`; matplotlib is imported when the first figure is made."""

from quenched.plots.canvas import BLUE, GREEN, GREY, HAIRLINE, INK, ORANGE, SMALL, dress, new_figure
from quenched.plots.corner import plot_corner
from quenched.plots.correlation import plot_correlation
from quenched.plots.error_bars import plot_error_bars
from quenched.plots.figure import plot_fit
from quenched.plots.forest import plot_effects, plot_forest
from quenched.plots.marginals import plot_marginals
from quenched.plots.monitor import plot_monitor
from quenched.plots.pair import plot_pair
from quenched.plots.predictive import plot_predictive
from quenched.plots.ranks import plot_ranks
from quenched.plots.spectra import Panel, plot_spectra

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "HAIRLINE",
    "INK",
    "ORANGE",
    "SMALL",
    "Panel",
    "dress",
    "new_figure",
    "plot_corner",
    "plot_correlation",
    "plot_effects",
    "plot_error_bars",
    "plot_fit",
    "plot_forest",
    "plot_marginals",
    "plot_monitor",
    "plot_pair",
    "plot_predictive",
    "plot_ranks",
    "plot_spectra",
]
