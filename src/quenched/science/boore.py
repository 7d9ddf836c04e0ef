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

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array

RADIATION = 0.55  # R_θφ, averaged over the sphere
PARTITION = 2.0**-0.5  # V, into one of two equal horizontal components
CORNER = 4.9e6  # Brune's constant in these units
GRAVITY = 980.665  # cm/s² in one g


class Medium(NamedTuple):
    """What is not inferred: density (g/cm³), shear velocity (km/s), factor of the free surface."""

    density: float = 2.8
    velocity: float = 3.5
    free_surface: float = 2.0


class Terms(NamedTuple):
    """All of log FAS that does not depend on the parameters, one entry per point of a spectrum."""

    level: Array  # log (C M0 (2 π f)²)
    corner: Array  # (f / fc)² at a stress drop of 1 bar
    log_distance: Array
    path: Array  # π f R / β
    site: Array  # π f


def terms(magnitude: Any, distance: Any, frequency: Any, medium: Medium = Medium()) -> Terms:
    """Prepare points of spectra: moment magnitude, distance (km), frequency (Hz)."""
    density, velocity, free_surface = medium
    log_scale = np.log(RADIATION * PARTITION / (4.0 * np.pi) * 1e-20) + jnp.log(free_surface / (density * velocity**3))
    log_moment = np.log(10.0) * (1.5 * magnitude + 16.05)
    log_frequency = jnp.log(frequency)
    unit_corner = jnp.log(CORNER * velocity) - log_moment / 3.0
    return Terms(
        level=log_scale + log_moment + 2.0 * (np.log(2.0 * np.pi) + log_frequency),
        corner=jnp.exp(2.0 * (log_frequency - unit_corner)),
        log_distance=jnp.log(distance),
        path=np.pi * frequency * distance / velocity,
        site=np.pi * frequency,
    )


def log_amplitude(
    points: Terms, stress_drop: Any, spreading: Any, quality: Any, kappa0: Any, event: Any = None
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
    """
    points = terms(jnp.asarray(magnitude), jnp.asarray(distance), jnp.asarray(frequency), medium)
    return jnp.exp(log_amplitude(points, jnp.asarray(stress_drop), spreading, quality, kappa0))


def corner_frequency(magnitude: Any, stress_drop: Any, velocity: float = 3.5) -> Array:
    """Brune's corner frequency fc (Hz) of a moment magnitude and a stress drop (bar)."""
    log_moment = np.log(10.0) * (1.5 * jnp.asarray(magnitude) + 16.05)
    return jnp.exp(jnp.log(CORNER * velocity) + (jnp.log(jnp.asarray(stress_drop)) - log_moment) / 3.0)
