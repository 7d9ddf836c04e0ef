"""The Gaussian of low rank that is nearest in KL(q ‖ p) to one of a given precision.

Its covariance is D (I + Q (s² − 1) Qᵀ) D. Given D, the best directions Q are eigenvectors of D precision D, and s² = 1 / λ
for their eigenvalues: each gains λ − 1 − log λ. So D alone is searched for.
"""

from collections.abc import Callable

import numpy as np
import scipy  # its parts are imported when they are first asked for

from quenched.families.positive_definite import cholesky_or_nan, natural_units, positive_definite

_SMALL = 200  # coordinates up to which it is found to the last digit; beyond, a fit goes on from near it
_STEPS, _POLISHES = 6, 20
_FURTHEST = 4.0  # of log D from where each parameter has a unit precision: beyond, a direction does all that D would


def nearest(precision: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standard deviations D, directions Q (dim, rank) and stretches s."""
    units = natural_units(precision)
    scaled = precision * units * units[:, None]
    if not np.isfinite(cholesky_or_nan(scaled)).all():
        values, vectors, units = positive_definite(precision)
        scaled = (vectors * values) @ vectors.T
    scaled = 0.5 * (scaled + scaled.T)
    if rank >= len(scaled):  # directions alone say everything
        return units, *_stretched(scaled, leading, rank)
    # Among directions that gain most, some may be narrow; a search that goes for wide ones may end elsewhere.
    choices = (leading, _widest) if len(scaled) <= _SMALL else (leading,)
    found = [_search(scaled, choose, rank) for choose in choices]
    place = int(np.argmin([value for value, _ in found]))
    sds = np.exp(found[place][1])
    return units * sds, *_stretched(scaled * sds * sds[:, None], choices[place], rank)


def leading(values: np.ndarray, rank: int) -> np.ndarray:
    """Which of some eigenvalues of a precision in units of standard deviations gain most by a stretch."""
    return np.argsort(-(values - 1.0 - np.log(values)), kind="stable")[:rank]


def _widest(values: np.ndarray, rank: int) -> np.ndarray:
    return np.argsort(values, kind="stable")[:rank]


def _stretched(seen: np.ndarray, choose: Callable, rank: int) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(seen)
    values = np.maximum(values, 1e-12)
    chosen = choose(values, rank)
    return vectors[:, chosen], values[chosen] ** -0.5


def _search(scaled: np.ndarray, choose: Callable, rank: int) -> tuple[float, np.ndarray]:
    """The lowest divergence, up to a constant, and log D there."""

    def lost(log_sds: np.ndarray) -> tuple[float, np.ndarray]:
        sds = np.exp(log_sds)
        seen = scaled * sds * sds[:, None]
        directions, stretches = _stretched(seen, choose, rank)
        # The diagonal of D precision D (I + Q (s² − 1) Qᵀ), by which log D has its slope, too.
        kept = np.diag(seen) + np.sum(directions**2 * (1.0 - stretches**-2), axis=1)
        return 0.5 * np.sum(kept) - np.sum(log_sds) - np.sum(np.log(stretches)), kept - 1.0

    dim = len(scaled)
    found = scipy.optimize.minimize(
        lost,
        np.zeros(dim),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-_FURTHEST, _FURTHEST)] * dim,
        options={"maxiter": 500 if dim <= _SMALL else _STEPS, "ftol": 0.0, "gtol": 1e-10, "maxcor": 20},
    )
    return float(found.fun), _polished(lost, found.x) if dim <= _SMALL else found.x


def _polished(lost: Callable, log_sds: np.ndarray) -> np.ndarray:
    """Short steps down the slope, as long as it falls: values alone cannot tell the last digits apart."""
    steepness, best = np.inf, log_sds
    for _ in range(_POLISHES):
        slope = lost(log_sds)[1] * (np.abs(log_sds) < _FURTHEST)
        if not np.max(np.abs(slope)) < steepness:
            break
        steepness, best, log_sds = np.max(np.abs(slope)), log_sds, log_sds - 0.4 * slope
    return best
