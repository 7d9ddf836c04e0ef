"""Points that follow a posterior, in natural units, for curves and intervals."""

from typing import Any

import jax
import numpy as np
from scipy.special import ndtri

from quenched.draws import Purpose, generator, make, stream
from quenched.posterior import to_natural
from quenched.results import Fit
from quenched.text import shown
from quenched.transforms import Parameters, Space

_POINTS = 16_384  # a power of two, for Sobol points
_NUMBERS = 20_000_000  # in all: many parameters get fewer points each
_LARGEST_SOBOL = 1000  # coordinates


def spread(fit: Fit) -> Parameters:
    """Evenly spread points of the posterior, shaped like `start` with a leading axis, so that curves are smooth."""
    dim, n = fit.posterior.dim, _POINTS
    while n > 256 and n * dim > _NUMBERS:
        n //= 2
    if dim <= _LARGEST_SOBOL:
        points = make("sobol", n, dim, stream(0, Purpose.CURVES)).points
    else:  # a Latin hypercube: each coordinate is spread evenly by itself
        random, levels = generator(0, Purpose.CURVES), ndtri((np.arange(n) + 0.5) / n)
        points = np.stack([random.permutation(levels) for _ in range(dim)], axis=1)
    return to_natural(fit.space, fit.posterior.transform(points))


def weighted(fit: Fit, n: int) -> Parameters | None:
    """At most n check draws, moved to the target by their Pareto-smoothed weights; None for a fit without.

    Fewer where the weights are worth fewer, or the same few would stand for all.
    """
    if fit.collapsed is not None:  # its weights are of other draws, of a few parameters
        return None
    weights = fit.weights.weights
    if not len(weights) or not np.isfinite(weights).all() or not weights.sum() > 0:
        return None
    n = int(np.clip(round(fit.weights.share * len(weights)), 1, n))
    chosen = generator(fit.settings["seed"], Purpose.RESAMPLING).choice(len(weights), n, p=weights / weights.sum())
    return to_natural(fit.space, fit.posterior.transform(fit.check_draws[chosen]))


def read_names(names: Any) -> list[str]:
    """Names of parameters, in a list."""
    if not isinstance(names, (list, tuple, set)) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names={shown(names)}: give names of parameters, as in fit.summary().")
    if not names:
        raise ValueError("names: is empty; name at least one parameter, or leave it out for all.")
    return list(names)


def columns(space: Space, values: Parameters, names: list[str] | None = None) -> dict[str, np.ndarray]:
    """Points, a column by name for each number; or only those that are asked for, where the name of an array means all of it.

    Raises
    ------
    ValueError
        For a name that is no parameter.
    """
    wanted = None if names is None else set(names)
    found: dict[str, np.ndarray] = {}
    for leaf, array in zip(space.leaves, jax.tree.leaves(values), strict=True):
        for name, index in leaf.entries(leaf.shape):
            if wanted is None or name in wanted or leaf.name in wanted:
                found[name] = np.asarray(array)[(slice(None), *index)]
    known = {*found, *(leaf.name for leaf in space.leaves)}
    unknown = [] if wanted is None else sorted(wanted - known)
    if unknown:
        some = ", ".join(leaf.name for leaf in space.leaves[:8])
        raise ValueError(f"names: no parameter is called {shown(unknown[0])}; there are {some}.")
    return found
