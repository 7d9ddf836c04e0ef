"""Boore's stochastic model of ground motion: the Fourier amplitude spectrum of acceleration of a point source.

D. M. Boore (2003), Simulation of ground motion using the stochastic method, Pure Appl. Geophys. 160, 635-676:

    FAS(Mw, R, f) = C M0 (2 π f)² / (1 + (f / fc)²)          source: Brune's ω-squared spectrum
                    (R / 1 km)^(−η) exp(−π f R / (Q β))      path
                    exp(−π κ0 f)                             site
    C  = R_θφ V F / (4 π ρ β³ R0) 1e-20
    M0 = 10^(1.5 Mw + 16.05) dyne cm
    fc = 4.9e6 β (Δσ / M0)^(1/3) Hz

Distances are in km, β in km/s, ρ in g/cm³, Δσ in bar (0.1 MPa), κ0 in s, amplitudes in cm/s. Everything is in JAX and
in logarithms, so it can be differentiated by anything and neither M0 nor C leaves the range of a float.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.numbers import finite_number, positive_number, real_array
from quenched.text import shown

RADIATION = 0.55  # R_θφ, averaged over the sphere
PARTITION = 2.0**-0.5  # V, into one of two equal horizontal components
CORNER = 4.9e6  # Brune's constant in these units
GRAVITY = 980.665  # cm/s² in one g


class Medium(NamedTuple):
    """What is not inferred: density (g/cm³), shear velocity (km/s), factor of the free surface.

    Examples
    --------
    >>> from quenched.science import GroundMotion, Medium
    >>> GroundMotion(medium=Medium(free_surface=1.0)).medium.velocity  # a sensor at depth
    3.5
    """

    density: float = 2.8
    velocity: float = 3.5
    free_surface: float = 2.0


class SpectrumTerms(NamedTuple):
    """All of log FAS that does not depend on the parameters, one entry per point of a spectrum."""

    level: Array  # log (C M0 (2 π f)²)
    corner: Array  # (f / fc)² at a stress drop of 1 bar
    log_distance: Array
    path: Array  # π f R / β
    site: Array  # π f


def terms(magnitude: Any, distance: Any, frequency: Any, medium: Medium = Medium()) -> SpectrumTerms:
    """Prepare points of spectra: moment magnitude, distance (km), frequency (Hz)."""
    density, velocity, free_surface = medium
    log_scale = np.log(RADIATION * PARTITION / (4.0 * np.pi) * 1e-20) + jnp.log(free_surface / (density * velocity**3))
    log_moment = np.log(10.0) * (1.5 * magnitude + 16.05)
    log_frequency = jnp.log(frequency)
    unit_corner = jnp.log(CORNER * velocity) - log_moment / 3.0
    return SpectrumTerms(
        level=log_scale + log_moment + 2.0 * (np.log(2.0 * np.pi) + log_frequency),
        corner=jnp.exp(2.0 * (log_frequency - unit_corner)),
        log_distance=jnp.log(distance),
        path=np.pi * frequency * distance / velocity,
        site=np.pi * frequency,
    )


def log_amplitude(
    points: SpectrumTerms, stress_drop: Any, spreading: Any, quality: Any, kappa0: Any, event: Any = None
) -> Array:
    """log FAS (cm/s). With `event`, stress drops are one per event and it says which is whose; else they broadcast."""
    lowering = stress_drop ** (-2.0 / 3.0)
    lowering = lowering if event is None else lowering[event]  # powers of a few events, not of every point
    return (
        points.level
        - jnp.log1p(points.corner * lowering)
        - spreading * points.log_distance
        - points.path / quality
        - kappa0 * points.site
    )


def fourier_amplitude(
    magnitude: Any,
    distance: Any,
    frequency: Any,
    *,
    stress_drop: Any,
    spreading: Any,
    quality: Any,
    kappa0: Any,
    medium: Medium = Medium(),
) -> Array:
    """Fourier amplitude of acceleration (cm/s; divide by 980.665 for g s). All arguments broadcast.

    Computes in JAX's precision: within `jax.enable_x64(True)` it agrees with pyRVT to 1e-14, otherwise to 1e-5.

    Parameters
    ----------
    magnitude, distance, frequency
        Mw, R in km, f in Hz.
    stress_drop
        Δσ in bar.
    spreading
        η, the exponent of geometrical spreading.
    quality
        Q, independent of frequency.
    kappa0
        κ0 in s.
    medium
        Density, shear velocity and free-surface factor.

    Examples
    --------
    >>> from quenched.science import fourier_amplitude
    >>> path = {"spreading": 1.0, "quality": 200.0, "kappa0": 0.04}
    >>> near, far = fourier_amplitude(6.0, np.array([10.0, 100.0]), 1.0, stress_drop=100.0, **path)
    >>> bool(near > 10 * far)
    True
    """
    at = _read("magnitude", magnitude), _read("distance", distance, 0.0), _read("frequency", frequency, 0.0)
    source = _read("stress_drop", stress_drop, 0.0)
    path = _read("spreading", spreading), _read("quality", quality, 0.0), _read("kappa0", kappa0)
    _insist_broadcast(*at, source, *path)
    return jnp.exp(log_amplitude(terms(*at, read_medium(medium)), source, *path))


def corner_frequency(magnitude: Any, stress_drop: Any, velocity: float = 3.5) -> Array:
    """Brune's corner frequency fc (Hz) of a moment magnitude and a stress drop (bar).

    Examples
    --------
    >>> from quenched.science import corner_frequency
    >>> round(float(corner_frequency(6.0, 100.0)), 2)  # Hz
    0.36
    """
    velocity = finite_number("velocity", positive_number("velocity", velocity))
    magnitude, stress_drop = _read("magnitude", magnitude), _read("stress_drop", stress_drop, 0.0)
    _insist_broadcast(magnitude, stress_drop)
    log_moment = np.log(10.0) * (1.5 * magnitude + 16.05)
    return jnp.exp(jnp.log(CORNER * velocity) + (jnp.log(stress_drop) - log_moment) / 3.0)


def read_medium(medium: Any) -> Medium:
    """Three positive numbers."""
    try:
        given = Medium(*medium)
    except Exception as error:  # of whatever it is, when it is looked through
        raise ValueError(f"medium={shown(medium)}: give Medium(density, velocity, free_surface).") from error
    return Medium(
        *(finite_number(f"medium: {n}", positive_number(f"medium: {n}", v)) for n, v in given._asdict().items())
    )


def _read(name: str, value: Any, above: float | None = None) -> Array:
    """Real numbers, all above this; what JAX is tracing is taken as it is."""
    if isinstance(value, jax.Array):
        return value
    array = real_array(name, value)
    if above is not None and not (array > above).all():
        first = array[~(array > above)].flat[0]
        raise ValueError(f"{name}: {first:g} is not possible; it must be greater than {above:g}.")
    return jnp.asarray(array)


def _insist_broadcast(*inputs: Array) -> None:
    shapes = [np.shape(one) for one in inputs]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ValueError(f"magnitude, stress_drop and the others: shapes {shapes} do not broadcast.") from error
