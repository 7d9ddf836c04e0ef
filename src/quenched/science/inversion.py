"""The density that is inferred from: log-normal noise around Boore's model, flat priors within physical bounds.

The likelihood is that of the paper (Sec. 3.6) for y = ln FAS. Every prior is normalised, so bounds on the log evidence of
different settings can be compared. The noise is a parameter like the others, flat in its logarithm: what is known of it
is then part of the posterior, and Laplace's method meets the same density.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.precision import in_double
from quenched.science import boore
from quenched.science.spectra import Spectra
from quenched.text import shown
from quenched.transforms import Transform, interval

PARAMETERS = {  # name: symbol, unit, bounds of the literature, where the search begins
    "stress_drop": ("Δσ", "bar", (1.0, 1000.0), 100.0),
    "spreading": ("η", "", (0.5, 2.0), 1.0),
    "quality": ("Q", "", (20.0, 3000.0), 300.0),
    "kappa0": ("κ0", "s", (0.001, 0.1), 0.03),
    "noise": ("σ", "ln", (0.001, 10.0), 0.5),
}
Bounds = dict[str, tuple[float, float]]


class Observations(NamedTuple):
    """What the log density is given: nothing in it is traced as a constant, so new spectra never cause a new trace."""

    points: boore.SpectrumTerms
    event: Array  # whose stress drop belongs to the point
    log_amplitude: Array
    log_prior: Array  # log density of the flat priors, the same everywhere within the bounds


def read_bounds(given: Mapping[str, Any] | None) -> Bounds:
    """Bounds of every parameter: the user's where given, else those of the literature.

    Raises
    ------
    ValueError
        For an unknown name, or bounds that are not positive and increasing.
    """
    bounds = {name: default for name, (_, _, default, _) in PARAMETERS.items()}
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"bounds={shown(given)}: give a mapping such as {{'quality': (20, 3000)}}.")
    for name, pair in (given or {}).items():
        if name not in bounds:
            raise ValueError(f"bounds: there is no parameter {shown(name)}; there are {', '.join(bounds)}.")
        try:
            lower, upper = (float(end) for end in pair)
        except Exception as error:  # of whatever it is, when it is looked through
            raise ValueError(f"bounds: {name} = {shown(pair)}; give (lower, upper).") from error
        if not 0.0 < lower < upper < math.inf:
            raise ValueError(f"bounds: {name} = {shown(pair)}; 0 < lower < upper is needed, both finite.")
        bounds[name] = (lower, upper)
    return bounds


def predicted(parameters: Any, points: boore.SpectrumTerms, event: Array) -> Array:
    """ln FAS (cm/s) at every point."""
    p = parameters
    return boore.log_amplitude(points, p["stress_drop"], p["spreading"], p["quality"], p["kappa0"], event)


def log_density(parameters: Any, data: Observations) -> Array:
    """log p(Y, parameters), normalised, in natural units."""
    residual = data.log_amplitude - predicted(parameters, data.points, data.event)
    noise = parameters["noise"]
    n = residual.shape[0]
    log_likelihood = -0.5 * jnp.sum(residual**2) / noise**2 - n * (jnp.log(noise) + 0.5 * math.log(2.0 * math.pi))
    return log_likelihood + data.log_prior - jnp.log(noise)


def observations(spectra: Spectra, events: list[str], bounds: Bounds, medium: boore.Medium) -> Observations:
    """Prepare spectra for the log density."""
    assert spectra.amplitude is not None
    points, event = prepare(spectra, events, medium)
    widths = {name: math.log(upper - lower) for name, (lower, upper) in bounds.items()}
    lower, upper = bounds["noise"]
    widths["noise"] = math.log(math.log(upper / lower))
    log_prior = -sum(widths.values()) - (len(events) - 1) * widths["stress_drop"]
    return Observations(points, event, np.log(spectra.amplitude), np.asarray(log_prior))


def prepare(spectra: Spectra, events: list[str], medium: boore.Medium) -> tuple[boore.SpectrumTerms, np.ndarray]:
    """Terms of the model and the number of the event, per point."""
    number = {name: index for index, name in enumerate(events)}
    with in_double():
        points = boore.terms(spectra.magnitude, spectra.distance, spectra.frequency, medium)
        points = boore.SpectrumTerms(*map(np.asarray, points))
    return points, np.array([number[name] for name in spectra.event.tolist()])


def transforms(bounds: Bounds) -> dict[str, Transform]:
    """Each parameter between its bounds."""
    return {name: interval(*pair) for name, pair in bounds.items()}


def start(bounds: Bounds, n_events: int) -> dict[str, Any]:
    """Usual values, or the geometric middle of bounds that leave them out."""
    chosen = {}
    for name, (lower, upper) in bounds.items():
        usual = PARAMETERS[name][3]
        chosen[name] = usual if lower < usual < upper else math.sqrt(lower * upper)
    return {**chosen, "stress_drop": np.full(n_events, chosen["stress_drop"])}
