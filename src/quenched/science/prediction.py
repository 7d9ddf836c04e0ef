"""Predicted spectra with their uncertainty."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from quenched.compiling import program
from quenched.draws import Purpose, generator
from quenched.precision import in_double
from quenched.science import boore
from quenched.science.inversion import predicted

_NUMBERS = 4_000_000  # samples times points held at once


class Prediction(NamedTuple):
    """Fourier amplitudes, one per point of the table, in the unit of the model.

    Attributes
    ----------
    median
        Of an observation, and of the model.
    lower, upper
        Between which an observation lies with the probability asked for: parameters and noise.
    model_lower, model_upper
        The same for the model's spectrum, without the noise of an observation.

    Examples
    --------
    >>> from quenched.science import Prediction
    >>> Prediction._fields  # of model.predict(table): an entry for each row of the table
    ('median', 'lower', 'upper', 'model_lower', 'model_upper')
    """

    median: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    model_lower: np.ndarray
    model_upper: np.ndarray


@program
def _curves(samples: Any, points: boore.SpectrumTerms, event: Any) -> Any:
    return jax.vmap(predicted, in_axes=(0, None, None))(samples, points, event)


def curves(samples: dict[str, np.ndarray], points: boore.SpectrumTerms, event: np.ndarray) -> np.ndarray:
    """ln FAS (cm/s) under every sample at every point, (samples, points)."""
    with in_double():
        given = jax.tree.map(jnp.asarray, (samples, points, event))
        return np.asarray(_curves(*given))


def predict(
    samples: dict[str, np.ndarray], points: boore.SpectrumTerms, event: np.ndarray, probability: float, unit: float
) -> Prediction:
    """Bands at every point, a block of points at a time.

    A sample's noise is the same normal quantile at every point, in an order that owes nothing to the sample: bands are
    smooth along the frequency.
    """
    n = len(samples["noise"])
    tails = [0.5 - 0.5 * probability, 0.5, 0.5 + 0.5 * probability]
    noise = samples["noise"] * generator(0, Purpose.NOISE).permutation(ndtri((np.arange(n) + 0.5) / n))
    block = max(1, _NUMBERS // n)
    parts = []
    for begin in range(0, len(event), block):
        rows = slice(begin, begin + block)
        lines = curves(samples, boore.SpectrumTerms(*(column[rows] for column in points)), event[rows])
        model_lower, median, model_upper = np.quantile(lines, tails, axis=0)
        lower, _, upper = np.quantile(lines + noise[:, None], tails, axis=0)
        parts.append(np.exp([median, lower, upper, model_lower, model_upper]))
    return Prediction(*(np.concatenate(parts, axis=1) / unit))
