"""Whether data identify a parameter that is bounded: words for a posterior that is all prior, or all bound.

Both signs are read off the marginal posterior in natural units, on which a flat prior is uniform:

- *not identified*: the posterior equals the prior; the largest difference of their distribution functions is small.
- *pressed against a bound*: the mean lies less than 1.4 standard deviations from the bound. A density that falls from the
  bound has 1.0 (exponential) or 1.3 (half normal); a uniform one has 1.7, and one that vanishes at the bound more.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.draws import Purpose, make, stream
from quenched.numbers import finite_number, real_array
from quenched.posterior import to_natural
from quenched.results import Fit, insist_fit
from quenched.transforms import Interval

_SAME = 0.1  # largest difference of distribution functions that counts as none
_NEAR = 1.4  # standard deviations from a bound
_POINTS = 4096


class Judgement(NamedTuple):
    """Of one number. `words` is empty when the data identify it within its bounds.

    Examples
    --------
    >>> from quenched.science import identify
    >>> identify(np.linspace(0.0, 1.0, 1000), 0.0, 1.0).identified
    False
    """

    identified: bool
    pressed: str  # "lower", "upper" or ""
    words: str


def identify(samples: np.ndarray, lower: float, upper: float) -> Judgement:
    """Judge one parameter with a flat prior between two bounds.

    Parameters
    ----------
    samples
        Of its posterior, in natural units.
    lower, upper
        Its bounds.

    Examples
    --------
    >>> from quenched.science import identify
    >>> random = np.random.default_rng(0)
    >>> identify(random.uniform(0.0, 10.0, 1000), 0.0, 10.0).words
    'not identified: the posterior equals the prior'
    >>> identify(random.normal(5.0, 0.1, 1000), 0.0, 10.0).words
    ''
    """
    samples, lower, upper = real_array("samples", samples), finite_number("lower", lower), finite_number("upper", upper)
    if samples.ndim != 1 or not samples.size:
        raise ValueError(f"samples has shape {samples.shape}; give (n,), not empty.")
    if not lower < upper:
        raise ValueError(f"lower={lower}, upper={upper}: the lower bound must be below the upper.")
    share = np.sort((samples - lower) / (upper - lower))
    n = len(share)
    difference = np.max(np.abs(share - (np.arange(n) + 0.5) / n))
    if difference < _SAME:
        return Judgement(False, "", "not identified: the posterior equals the prior")
    mean, sd = share.mean(), max(share.std(), 1e-300)
    for name, away in (("lower", mean), ("upper", 1.0 - mean)):
        if away < _NEAR * sd:
            return Judgement(True, name, f"pressed against its {name} bound")
    return Judgement(True, "", "")


def identify_fit(fit: Fit) -> dict[str, Judgement]:
    """Judge every number with an `interval` transform, by name; the density must be flat in natural units.

    Examples
    --------
    >>> from quenched.science import identify_fit
    >>> bounded = {"share": qd.interval(0.0, 1.0), "idle": qd.interval(0.0, 1.0)}
    >>> log_density = lambda p: -0.5 * ((p["share"] - 0.4) / 0.05) ** 2  # flat in "idle"
    >>> fit = qd.fit(log_density, {"share": 0.5, "idle": 0.5}, transforms=bounded)
    >>> {name: judgement.identified for name, judgement in identify_fit(fit).items()}
    {'idle': False, 'share': True}
    """
    insist_fit(fit)
    dim = fit.posterior.dim
    points = make("matched", max(_POINTS, 2 * dim), dim, stream(0, Purpose.BOUNDS)).points
    natural: Any = to_natural(fit.space, fit.posterior.transform(points))
    found = {}
    for leaf, values in zip(fit.space.leaves, jax.tree.leaves(natural), strict=True):
        if not isinstance(leaf.transform, Interval):
            continue
        for name, index in leaf.entries(leaf.shape):
            found[name] = identify(values[(slice(None), *index)], leaf.transform.lower, leaf.transform.upper)
    return found
