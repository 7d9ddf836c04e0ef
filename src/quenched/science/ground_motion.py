"""`GroundMotion`: from a table of Fourier amplitudes to a posterior of stress drops, path and site parameters."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from quenched.fitting import fit as fit_frozen_draws
from quenched.numbers import probability as read_probability
from quenched.results import Fit, load, save
from quenched.science import findings, inversion, prediction
from quenched.science.boore import Medium, read_medium
from quenched.science.prediction import Prediction
from quenched.science.spectra import UNITS, Spectra, read_spectra
from quenched.text import shown

_SAMPLES = 4096  # for tables and figures


class GroundMotion:
    """Bayesian inversion of Fourier amplitude spectra with Boore's stochastic model.

    A table has one row per point of a spectrum: event, Mw, R (km), f (Hz) and Fourier amplitude of acceleration. Inferred
    are a stress drop Δσ per event, geometrical spreading η, quality factor Q, near-surface attenuation κ0, and the noise σ
    of ln amplitude; each lies within bounds, with a flat prior there.

    Parameters
    ----------
    bounds
        (lower, upper) of `stress_drop` (bar), `spreading`, `quality`, `kappa0` (s) or `noise` (ln units), to replace the
        usual ranges 1 to 1000, 0.5 to 2, 20 to 3000, 0.001 to 0.1 and 0.001 to 10.
    medium
        Density, shear velocity and free-surface factor; (2.8, 3.5, 2). A sensor at depth has a factor nearer to 1.
    unit
        Of the amplitudes: "cm/s", "m/s" or "g s".

    Attributes
    ----------
    fit_
        The fit itself: posterior, bound, verdict, diagnostics.
    events_
        Names of the events, in the order of the stress drops.
    spectra_
        What was fitted.

    Notes
    -----
    It is a point source without site amplification: at a soft site, amplification shows up as a large stress drop, and large
    earthquakes nearby are not points. Smoothed spectra have correlated neighbours, which the noise takes for
    independent: standard deviations are then too small by about the square root of the points that are smoothed together.

    Examples
    --------
    >>> from quenched.science import GroundMotion, fourier_amplitude
    >>> f = np.geomspace(0.3, 25.0, 60)
    >>> of = lambda Mw, R: fourier_amplitude(Mw, R, f, stress_drop=100.0, spreading=1.0, quality=300.0, kappa0=0.03)
    >>> noise = np.random.default_rng(1).normal(0.0, 0.3, 120)
    >>> table = {
    ...     "event": ["first"] * 60 + ["second"] * 60,
    ...     "Mw": [5.0] * 60 + [6.0] * 60,
    ...     "R": [20.0] * 60 + [80.0] * 60,
    ...     "f": np.tile(f, 2),
    ...     "fas": np.concatenate([of(5.0, 20.0), of(6.0, 80.0)]) * np.exp(noise),
    ... }
    >>> model = GroundMotion().fit(table)
    >>> bool(abs(model.fit_.mean["kappa0"] - 0.03) < 0.01)
    True
    >>> bands = model.predict((["first"], [5.0], [50.0], [5.0]))
    >>> bool(bands.lower[0] < bands.median[0] < bands.upper[0])
    True
    """

    def __init__(
        self, *, bounds: Mapping[str, tuple[float, float]] | None = None, medium: Medium = Medium(), unit: str = "cm/s"
    ):
        self.bounds, self.medium, self.unit = bounds, medium, unit

    def __repr__(self) -> str:
        return f"GroundMotion(bounds={self.bounds!r}, medium={self.medium!r}, unit={self.unit!r})"

    def fit(self, table: Any, *, using: Callable[..., Fit] = fit_frozen_draws, **options: Any) -> "GroundMotion":
        """Infer the parameters.

        Parameters
        ----------
        table
            A DataFrame, a mapping of columns (`event`, `Mw`, `R`, `f`, `fas`, or the names of the files that
            `read_spectra_csv` reads), or arrays (event, Mw, R, f, amplitude).
        using
            `quenched.fit`, or `quenched.laplace` to compare with.
        options
            Of that function: `draws`, `seed`, `tolerance`, `method`, `progress`, ...

        Raises
        ------
        ValueError
            For a table that cannot be right, or with fewer points than parameters.
        """
        bounds = inversion.read_bounds(self.bounds)
        spectra = read_spectra(table, self._unit_name())
        events = sorted(set(spectra.event.tolist()))
        n_parameters = len(events) + len(bounds) - 1
        if len(spectra) <= n_parameters:
            raise ValueError(
                f"table: {len(spectra)} points cannot determine {n_parameters} parameters ({len(events)} stress drops, "
                "spreading, quality, kappa0, noise); give more points or fewer events."
            )
        fitted = using(
            inversion.log_density,
            inversion.start(bounds, len(events)),
            data=inversion.observations(spectra, events, bounds, self._medium()),
            transforms=inversion.transforms(bounds),
            **options,
        )
        self.fit_, self.events_, self.spectra_ = fitted, events, spectra
        return self

    def sample(self, n: int, seed: int = 0) -> dict[str, np.ndarray]:
        """Samples of the posterior in natural units, by name; `stress_drop` has a column per event."""
        return self._fitted().sample(n, seed)

    def predict(self, table: Any, *, probability: float = 0.95, n: int = 1000, seed: int = 0) -> Prediction:
        """Fourier amplitudes for events that were fitted, at any distance and frequency.

        Parameters
        ----------
        table
            As for `fit`; the amplitude is not needed.
        probability
            Of the bands.
        n, seed
            Samples of the posterior.
        """
        probability = read_probability("probability", probability)
        samples = self.sample(n, seed)
        points, event = self._prepare(read_spectra(table, self._unit_name(), observed=False))
        return prediction.predict(samples, points, event, probability, UNITS[self.unit])

    def prediction_error(self, table: Any, *, n: int = 200, seed: int = 0) -> float:
        """The paper's test error: mean squared error of ln amplitude, averaged over samples of the posterior."""
        return float(np.mean(self.residuals(table, n=n, seed=seed) ** 2))

    def residuals(self, table: Any, *, n: int = 200, seed: int = 0) -> np.ndarray:
        """Predicted minus observed ln amplitude under samples of the posterior, (n, points)."""
        spectra = read_spectra(table, self._unit_name())
        assert spectra.amplitude is not None
        return prediction.curves(self.sample(n, seed), *self._prepare(spectra)) - np.log(spectra.amplitude)

    def summary(self) -> list[dict[str, Any]]:
        """One row per number: mean, sd, 95 % interval, bounds, and a remark where the data do not identify it."""
        samples = self.sample(_SAMPLES)
        return findings.table_of(samples, self.events_, inversion.read_bounds(self.bounds))

    def __str__(self) -> str:
        if not hasattr(self, "fit_"):
            return repr(self)
        return findings.render_table(self.summary(), self.fit_, len(self.spectra_))

    def plot_spectra(self, path: str | Path | None = None, *, table: Any = None, probability: float = 0.95):
        """Figure of observed and predicted spectra with bands, a panel per event and distance.

        Parameters
        ----------
        path
            File to write as well.
        table
            What to show; by default what was fitted.
        probability
            Of the bands.
        """
        from quenched.plots import plot_spectra
        from quenched.science.panels import spectrum_panels

        shown = self.spectra_ if table is None and self._fitted() else read_spectra(table, self._unit_name())
        return plot_spectra(spectrum_panels(self, shown, probability), self.unit, path)

    def plot_corner(self, path: str | Path | None = None, *, names: list[str] | None = None, n: int = 4 * _SAMPLES):
        """Corner plot of the posterior in natural units.

        Parameters
        ----------
        path
            File to write as well.
        names
            Of parameters (`spreading`, `quality`, `kappa0`, `noise`) and events; all when None.
        n
            Samples.
        """
        from quenched.plots import plot_corner
        from quenched.science.panels import corner_columns

        return plot_corner(corner_columns(self, names, n), path)

    def save(self, path: str | Path) -> Path:
        """Write model and posterior to one `.npz` file; `GroundMotion.load` reads it, and so does `quenched.load`."""
        spectra = self._fitted() and self.spectra_
        columns = {field.name: getattr(spectra, field.name).tolist() for field in dataclasses.fields(Spectra)}
        bounds = None if self.bounds is None else {name: list(pair) for name, pair in self.bounds.items()}
        own = {"bounds": bounds, "medium": list(self.medium), "unit": self.unit, "spectra": columns}
        settings = {**self.fit_.settings, "ground_motion": own}
        return save(dataclasses.replace(self.fit_, settings=settings), path)

    @classmethod
    def load(cls, path: str | Path) -> "GroundMotion":
        """Read what `save` has written.

        Raises
        ------
        ValueError
            For a file that holds something else.
        """
        fitted = load(path)
        own = fitted.settings.pop("ground_motion", None) if isinstance(fitted, Fit) else None
        if own is None:
            raise ValueError(f"path={str(path)!r}: holds a fit, but not of GroundMotion; read it with quenched.load.")
        bounds = None if own["bounds"] is None else {name: tuple(pair) for name, pair in own["bounds"].items()}
        model = cls(bounds=bounds, medium=Medium(*own["medium"]), unit=own["unit"])
        model.fit_ = fitted
        model.spectra_ = Spectra(**{name: np.array(values) for name, values in own["spectra"].items()})
        model.events_ = sorted(set(model.spectra_.event.tolist()))
        return model

    def _fitted(self) -> Fit:
        if not hasattr(self, "fit_"):
            raise ValueError("GroundMotion: nothing was fitted yet; call fit(table) first.")
        return self.fit_

    def _unit_name(self) -> str:
        if not isinstance(self.unit, str) or self.unit not in UNITS:
            raise ValueError(f"unit={shown(self.unit)} is not known; use {', '.join(map(repr, UNITS))}.")
        return self.unit

    def _medium(self) -> Medium:
        return read_medium(self.medium)

    def _prepare(self, spectra: Spectra):
        unknown = sorted(set(spectra.event.tolist()) - set(self.events_))
        if unknown:
            raise ValueError(
                f"table: event {unknown[0]!r} was not fitted, so its stress drop is not known; there are "
                f"{', '.join(self.events_)}."
            )
        return inversion.prepare(spectra, self.events_, self._medium())
