"""Marginals of expectation propagation, corrected one factor at a time (Cseke and Heskes 2011).

The marginal of a parameter x is EP's Gaussian times, for every term of one number v, the mean of term over site under the
Gaussian of v given x. Where x is what a term sees, that factor is the ratio itself. Terms of several numbers are left as
their sites have them.
"""

from typing import Any

import numpy as np

from quenched.baselines.sites import Gaussians, Sites, log_errors

_PLACES = 25  # at which a marginal is looked at
_REACH = 4.5  # standard deviations to each side


def corrected(
    terms: list[Sites], sites: list[Gaussians], mean: np.ndarray, covariance: np.ndarray, given: Any
) -> dict[str, np.ndarray]:
    """Mean, standard deviation and skewness of every parameter on the real line."""
    along = np.linspace(-_REACH, _REACH, _PLACES)
    sds = np.sqrt(np.diag(covariance))
    chosen = [(term, own) for term, own in zip(terms, sites, strict=True) if term.values.shape[1] == 1]
    moments = [_of_parameter(place, along, chosen, mean, covariance, sds, given) for place in range(len(mean))]
    centre, spread, skewness = np.array(moments).T
    return {"mean": mean + sds * centre, "sd": sds * spread, "skewness": skewness}


def _of_parameter(
    place: int,
    along: np.ndarray,
    chosen: list[tuple[Sites, Gaussians]],
    mean: np.ndarray,
    covariance: np.ndarray,
    sds: np.ndarray,
    given: Any,
) -> tuple[float, float, float]:
    """Moments in units of EP's own Gaussian."""
    log_density = -0.5 * along**2
    for term, own in chosen:
        values = term.values[:, 0]
        shared = np.einsum("nk,nk->n", values, covariance[place][term.columns]) / sds[place]
        own_variance = np.einsum(
            "nk,nkj,nj->n", values, covariance[term.columns[:, :, None], term.columns[:, None]], values
        )
        rest = np.sqrt(np.maximum(own_variance - shared**2, 0.0))
        means = term.means(mean)
        found = log_errors(
            term.rows,
            term.arrays,
            means[:, :1] + shared[:, None] * along,
            rest,
            own.precision[:, 0, 0],
            own.shift[:, 0],
            given,
        )
        log_density = log_density + np.sum(np.asarray(found), axis=0)
    weights = np.exp(log_density - log_density.max())
    weights = weights / weights.sum()
    centre = weights @ along
    spread = np.sqrt(weights @ (along - centre) ** 2)
    return float(centre), float(spread), float(weights @ ((along - centre) / spread) ** 3)
