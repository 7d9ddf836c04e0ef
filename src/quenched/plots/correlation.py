"""The correlations of a posterior on the real line, as a heat map."""

from typing import TYPE_CHECKING

import numpy as np

from quenched.numbers import whole_number
from quenched.plots.canvas import GREY, PLAIN, SMALL, dress, read_axes, short
from quenched.results import Fit, insist_fit
from quenched.transforms import real_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 40  # rows that can be read
_DENSE = 3000  # coordinates whose whole covariance may be formed
_LABELLED = 40
_LETTERS = 24  # of a label
_FAINT = 0.1  # what the scale reaches at the least: a picture of less is grey all over
_WRITTEN = 10  # rows whose numbers are written into their squares


def plot_correlation(fit: Fit, axes: "Axes | None" = None, *, most: int = _MOST) -> "Axes":
    """Draw the correlation matrix of the coordinates on the real line, dark where negative and bright where positive.

    The scale goes as far as the strongest correlation; the diagonal, which says nothing, is left out.

    Parameters
    ----------
    fit
        What to show. Of many coordinates, those that correlate most with another.
    axes
        Where to draw; None makes a figure, found as `axes.figure`.
    most
        Coordinates to show at the most.

    Examples
    --------
    >>> from quenched.plots import plot_correlation
    >>> fit = qd.fit(lambda w: -0.5 * (jnp.sum(w**2) + jnp.sum(w) ** 2), np.zeros(50))
    >>> plot_correlation(fit, most=10).get_title(loc="left")
    'Correlations (10 of 50)'
    """
    insist_fit(fit)
    places = _places(fit, whole_number("most", most, 1))
    correlation = _correlation(fit, places)
    names = real_names(fit.space)
    side = max(3.0, min(8.0, 0.22 * len(places) + 2.2))
    axes = read_axes(axes, side + 0.9, side)
    left_out = fit.posterior.dim - len(places)
    title = f"Correlations ({len(places)} of {fit.posterior.dim})" if left_out else "Correlations"
    np.fill_diagonal(correlation, np.nan)
    dress(axes, title=f"{title}\nnone in this family" if len(places) > 1 and not _any(correlation) else title)
    most_of_all = max(_FAINT, float(np.nanmax(np.abs(correlation)))) if len(places) > 1 else 1.0
    image = axes.imshow(correlation, cmap="cividis", vmin=-most_of_all, vmax=most_of_all, interpolation="nearest")
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    bar.ax.tick_params(labelsize=SMALL - 1, colors=GREY)
    bar.outline.set_visible(False)  # pyright: ignore
    shown = [short(names[place], _LETTERS) for place in places] if len(places) <= _LABELLED else []
    ticks = np.arange(len(shown))
    size = SMALL - 1 if len(places) <= 20 else SMALL - 2.5
    axes.set_xticks(ticks, shown, rotation=90, fontsize=size, **PLAIN)
    axes.set_yticks(ticks, shown, fontsize=size, **PLAIN)
    if len(places) <= _WRITTEN:
        for i, j in zip(*np.nonzero(~np.eye(len(places), dtype=bool)), strict=True):
            ink = "white" if correlation[i, j] < 0.2 * most_of_all else "black"
            axes.text(j, i, f"{correlation[i, j]:.2f}", ha="center", va="center", fontsize=SMALL - 2, color=ink)
    axes.spines[:].set_visible(False)
    return axes


def has_correlations(fit: Fit, most: int = _MOST) -> bool:
    """Whether a heat map of so many coordinates would show any."""
    correlation = _correlation(fit, _places(fit, most))
    np.fill_diagonal(correlation, 0.0)
    return bool(np.abs(correlation).max(initial=0.0) > _FAINT)


def _any(correlation: np.ndarray) -> bool:
    """Of a matrix with NaN on its diagonal."""
    return bool(np.nan_to_num(correlation).any())


def _places(fit: Fit, most: int) -> np.ndarray:
    """Coordinates to show, in their order."""
    dim = fit.posterior.dim
    if dim <= most:
        return np.arange(dim)
    if dim > _DENSE:  # those of the smallest arrays: what the many have in common
        sizes = np.repeat(fit.space.sizes, fit.space.sizes)
        return np.sort(np.argsort(sizes, kind="stable")[:most])
    strength = np.abs(_scaled(fit.covariance))
    np.fill_diagonal(strength, 0.0)
    return np.sort(np.argsort(-strength.max(axis=0), kind="stable")[:most])


def _correlation(fit: Fit, places: np.ndarray) -> np.ndarray:
    if len(places) == fit.posterior.dim or not fit.posterior.member.affine:
        return _scaled(fit.covariance)[np.ix_(places, places)]
    return _scaled(fit.posterior.marginal([int(place) for place in places]).covariance)


def _scaled(covariance: np.ndarray) -> np.ndarray:
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    return covariance / np.outer(scale, scale)
