"""Exact Bayesian linear regression: the posterior along each direction of the data, and the log evidence.

Prior N(w | 0, I/α), likelihood N(y | Φw, I/β). The posterior is Gaussian, S⁻¹ = αI + βΦᵀΦ and
m = βSΦᵀy (Bishop 2006, Eqs. 3.53 and 3.54), and the log evidence is Bishop's Eq. 3.86. Precisions that are
not given maximise it; they then obey MacKay's equations (3.92 and 3.95), with γ the number of weights that
the data determine: α = γ / mᵀm and 1/β = |y − Φm|² / (N − γ).

After one singular value decomposition the evidence costs O(M), and the search runs along one line: if both
precisions are unknown, along log(α/β), since the best β given α/β is in closed form. So a grid can look for
the global maximum. Alternating MacKay's two equations finds a local one, slowly when the signal is weak.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from quenched.models.linear_predictors.arguments import Array

_TOLERANCE = 1e-10  # relative error of the precisions


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Φ = U diag(values) directions, with Uᵀy and the part of |y|² that no weights reach."""

    values: Array
    directions: Array
    targets: Array
    unreachable: float
    targets_norm: float
    n_items: float


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """The posterior along each direction of the spectrum, with the precisions and the log evidence.

    `evidence` is in nats with all constants. `converged` is False when it does not fall before the end of the
    search: with the prior precision if the targets do not depend on the features, with the noise precision if
    the features fit the targets without error.
    """

    directions: Array
    coordinates: Array
    precision: Array
    prior_precision: float
    noise_precision: float
    evidence: float
    converged: bool

    @property
    def mean(self) -> Array:
        """Of the weights."""
        return self.coordinates @ self.directions

    @property
    def covariance(self) -> Array:
        """Of the weights, dense."""
        scaled = self.directions / np.sqrt(self.precision)[:, None]
        return scaled.T @ scaled


def solve_linear(
    spectrum: Spectrum, prior_precision: float | None = None, noise_precision: float | None = None
) -> LinearSolution:
    """The posterior, and what is None of the precisions by maximising the evidence."""
    line = _Line(spectrum, prior_precision, noise_precision)
    place, converged = _search(line)
    alpha, beta = (float(value[0]) for value in line.precisions(np.array([place])))
    seen, n_directions = spectrum.values.size, len(spectrum.directions)
    precision, coordinates = np.full(n_directions, alpha), np.zeros(n_directions)
    precision[:seen] += beta * spectrum.values**2
    coordinates[:seen] = beta * spectrum.values * spectrum.targets / precision[:seen]
    evidence = float(line.evidence_and_slope(np.array([place]))[0][0])
    return LinearSolution(spectrum.directions, coordinates, precision, alpha, beta, evidence, converged)


def decompose(features: Array, targets: Array, *, whole: bool = False, n_items: float | None = None) -> Spectrum:
    """The spectrum of features and targets; rows may be many, and are then triangulated first.

    Parameters
    ----------
    features, targets
        Φ and y.
    whole
        Also the directions that no row of a wide Φ sees.
    n_items
        What counts for the noise, where it is not the number of rows: they are weighted, or an intercept was taken out.
    """
    n_rows, n_weights = features.shape
    norm, n_items = float(targets @ targets), float(n_rows if n_items is None else n_items)
    if n_rows > n_weights:
        triangle: Any = np.linalg.qr(np.column_stack([features, targets]), mode="r")
        left, values, directions = np.linalg.svd(triangle[:n_weights, :n_weights])
        rest = float(triangle[n_weights, n_weights] ** 2)
        return Spectrum(values, directions, left.T @ triangle[:n_weights, n_weights], rest, norm, n_items)
    # A square or wide Φ of full rank reaches everything; what is left of y there is rounding.
    left, values, directions = np.linalg.svd(features, full_matrices=whole)
    return Spectrum(values, directions, left[:, : values.size].T @ targets, 0.0, norm, n_items)


@dataclass(frozen=True, eq=False)
class _Line:
    """The unknown precisions as functions of one number t, and the evidence along it."""

    spectrum: Spectrum
    prior_precision: float | None
    noise_precision: float | None

    def precisions(self, place: Array) -> tuple[Array, Array]:
        """Prior and noise precision at each t; both unknown: t = log(α/β) and the best β given that ratio."""
        spectrum = self.spectrum
        if self.prior_precision is not None and self.noise_precision is not None:
            return np.full_like(place, self.prior_precision), np.full_like(place, self.noise_precision)
        moving = np.exp(place)
        if self.noise_precision is not None:
            return moving, np.full_like(place, self.noise_precision)
        if self.prior_precision is not None:
            return np.full_like(place, self.prior_precision), moving
        unexplained = moving[:, None] / (moving[:, None] + spectrum.values**2)
        noise = spectrum.n_items / (unexplained @ spectrum.targets**2 + spectrum.unreachable)
        return moving * noise, noise

    def evidence_and_slope(self, place: Array) -> tuple[Array, Array]:
        """The log evidence at each t, and its derivative (that of β vanishes where β is at its best)."""
        spectrum = self.spectrum
        alpha, beta = self.precisions(place)
        data_precision = beta[:, None] * spectrum.values**2
        shrinkage = alpha[:, None] / (alpha[:, None] + data_precision)
        n_effective = np.sum(data_precision / (alpha[:, None] + data_precision), axis=1)
        # α mᵀm, written so that it is safe when β is huge.
        penalty = beta * ((shrinkage * (1 - shrinkage)) @ spectrum.targets**2)
        misfit = beta * (shrinkage**2 @ spectrum.targets**2 + spectrum.unreachable)
        evidence = np.sum(np.log(shrinkage), axis=1) + spectrum.n_items * np.log(beta / (2 * np.pi))
        slope = n_effective - penalty
        if self.prior_precision is not None:
            slope = spectrum.n_items - n_effective - misfit
        return (evidence - misfit - penalty) / 2, slope / 2

    def grid(self) -> Array:
        """Values of t that cover every precision rounding can tell from zero and infinity."""
        spectrum = self.spectrum
        largest = spectrum.values[0] ** 2
        if self.prior_precision is not None and self.noise_precision is not None:
            return np.zeros(1)
        if not spectrum.targets_norm > 0:
            raise ValueError("targets are all zero: no maximum; give both prior_precision and noise_precision")
        if self.prior_precision is None:
            if not largest > 0:
                raise ValueError("features are all zero and say nothing of the weights; give prior_precision")
            low, high = 1e-20 * largest, 1e12 * largest
            scale = 1.0 if self.noise_precision is None else self.noise_precision
            return _steps(low * scale, high * scale)
        # The noise variance is at most |y|² / N and the variance of the fit under the prior.
        most = spectrum.targets_norm + np.sum(spectrum.values**2) / self.prior_precision
        return _steps(spectrum.n_items / most, 1e20 * spectrum.n_items / spectrum.targets_norm)


def _steps(low: float, high: float) -> Array:
    # Four points a decade: the evidence is a sum of logistic-shaped terms of width one in t = log(.).
    return np.linspace(np.log(low), np.log(high), 1 + int(4 * np.log10(high / low)))


def _search(line: _Line) -> tuple[float, bool]:
    """Best grid point, then the zero of the slope beside it."""
    grid = line.grid()
    evidence, slope = line.evidence_and_slope(grid)
    best = int(np.argmax(evidence))
    if grid.size == 1:
        return float(grid[0]), True
    ahead = best + (1 if slope[best] > 0 else -1)
    # A maximum no higher than an end of the grid is a plateau: rounding would pick its precisions.
    plateau = evidence[best] - max(evidence[0], evidence[-1]) <= 1e-9 * max(1.0, abs(evidence[best]))
    if plateau or not 0 <= ahead < grid.size or slope[best] * slope[ahead] > 0:
        return float(grid[best]), False
    slope_at = lambda place: line.evidence_and_slope(np.array([place]))[1][0]
    root: Any = brentq(slope_at, grid[best], grid[ahead], xtol=_TOLERANCE, maxiter=1000)  # SciPy's stubs add a report
    return float(root), True
