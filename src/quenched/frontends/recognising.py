"""Which of another package's maps are our own transforms.

Packages do not say how they take a parameter to the real line, but they show it: a few points are enough to tell, since
candidates are compared to the last digits, and all parameters are moved at once, so that a support that depends on
another parameter is not mistaken for a fixed one. What is recognised is known after loading too, without the package, and
has exact quantiles.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from quenched.compiling import compiled
from quenched.precision import in_double
from quenched.transforms import (
    JointTransform,
    Transform,
    above,
    correlation_cholesky,
    interval,
    ordered,
    positive,
    real,
    simplex,
)

_PROBES = 3
_FAR = 40.0  # where the logistic function is one, and the exponential of minus it nothing, to the last digit
_SAME = 1e-9  # relative

Arrays = dict[str, Any]


def transforms_of(
    to_natural: Callable[[Arrays], Arrays],
    to_real: Callable[[Arrays], Arrays],
    start: Mapping[str, np.ndarray],
    *,
    on_host: bool = False,
) -> dict[str, Transform] | JointTransform:
    """Our own transforms of all parameters, or the package's own map with those that are ours.

    Parameters
    ----------
    to_natural, to_real, on_host
        As in `JointTransform`.
    start
        The parameters on the real line, for their names and shapes.
    """
    with in_double():
        known = _recognised(to_natural if on_host else compiled(jax.vmap(to_natural)), start)
    return known if len(known) == len(start) else JointTransform(to_natural, to_real, known, on_host)


def _recognised(rows_to_natural: Callable[[Arrays], Arrays], start: Mapping[str, np.ndarray]) -> dict[str, Transform]:
    rows, used = {}, 0
    for name, value in start.items():
        shape = (_PROBES, *np.shape(value))
        probes = 1.5 * np.sin(1.0 + np.sqrt(2.0) * (used + np.arange(np.prod(shape)))).reshape(shape)  # no two the same
        used += probes.size
        ends = [np.full((1, *shape[1:]), end) for end in (-_FAR, _FAR)]
        rows[name] = np.concatenate([probes, *ends])
    natural = {name: np.asarray(value) for name, value in rows_to_natural(rows).items()}
    found = {name: _one(rows[name], natural[name]) for name in start}
    return {name: transform for name, transform in found.items() if transform is not None}


def _one(rows: np.ndarray, natural: np.ndarray) -> Transform | None:
    """The transform that takes these rows on the real line to these in natural units, if it is one of ours."""
    if rows.shape == natural.shape:
        low, high = _scalar(_short(natural[-2])), _scalar(_short(natural[-1]))
        growing, share = np.exp(rows), 1.0 / (1.0 + np.exp(-rows))
        if _same(rows, natural):
            return real
        if _same(growing, natural):
            return positive
        if np.isfinite(low).all() and _same(low + growing, natural):
            return above(low)
        if np.ndim(low) == np.ndim(high) == 0 and low < high < np.inf and _same(low + (high - low) * share, natural):
            return interval(float(low), float(high))
    return next((one for one in (ordered, simplex, correlation_cholesky) if _agrees(one, rows, natural)), None)


def _short(bounds: np.ndarray) -> np.ndarray:
    """Without the digits that rounding has added: where the logistic function ends, packages cut it off."""
    return np.vectorize(lambda bound: float(f"{bound:.12g}") if abs(bound) > 1e-12 else 0.0, otypes=[float])(bounds)


def _scalar(bounds: np.ndarray) -> Any:
    """One number where all bounds are the same."""
    return float(bounds.flat[0]) if bounds.size and np.ptp(bounds) == 0 else bounds


def _agrees(transform: Transform, rows: np.ndarray, natural: np.ndarray) -> bool:
    try:
        if transform.real_shape(natural.shape[1:]) != rows.shape[1:]:
            return False
    except ValueError:  # of an array that the transform cannot have
        return False
    own = np.asarray(compiled(jax.vmap(transform.to_natural))(rows[:_PROBES]))
    return own.shape == natural[:_PROBES].shape and _same(own, natural)


def _same(own: np.ndarray, natural: np.ndarray) -> bool:
    """At the probes; the ends are for reading off bounds alone."""
    return bool(np.allclose(own[:_PROBES], natural[:_PROBES], rtol=_SAME, atol=1e-12))
