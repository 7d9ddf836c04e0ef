"""Likelihoods of mixed models: the log density of one row given its linear predictor, and the mean of the response."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, expit, gammaln
from jax.scipy.stats import norm

from quenched.arrays import namespace


class MixedLikelihood(NamedTuple):
    """`log_density(predictor, row, dispersion)`; `mean(predictor)`; and what its responses must be."""

    log_density: Callable[[Any, Any, Any], Any]
    mean: Callable[[np.ndarray], np.ndarray]
    dispersed: bool
    fits: Callable[[np.ndarray], bool]
    needs: str


def _bernoulli(eta, row, dispersion):
    return row["y"] * eta - jnp.logaddexp(0.0, eta)


def _binomial(eta, row, dispersion):
    n, y = row["n"], row["y"]
    ways = gammaln(n + 1.0) - gammaln(y + 1.0) - gammaln(n - y + 1.0)
    return ways + y * eta - n * jnp.logaddexp(0.0, eta)


def _gaussian(eta, row, dispersion):
    return norm.logpdf(row["y"], eta, jnp.exp(dispersion))


def _poisson(eta, row, dispersion):
    return row["y"] * eta - jnp.exp(eta) - gammaln(row["y"] + 1.0)


def _negative_binomial(eta, row, dispersion):
    shape, y = jnp.exp(dispersion), row["y"]
    ways = gammaln(y + shape) - gammaln(shape) - gammaln(y + 1.0)
    return ways + y * eta + shape * dispersion - (y + shape) * jnp.logaddexp(eta, dispersion)


def _beta(eta, row, dispersion):
    precision, y = jnp.exp(dispersion), row["y"]
    a, b = precision * expit(eta), precision * expit(-eta)  # 1 - mean would be 0 where the mean is nearly 1
    return (a - 1.0) * jnp.log(y) + (b - 1.0) * jnp.log1p(-y) - betaln(a, b)


def cut_points(steps):
    """The first, and then those that positive steps lead to."""
    xp = namespace(steps)
    rest = xp.cumsum(xp.exp(steps[..., 1:]), axis=-1)
    return steps[..., :1] + xp.concatenate([xp.zeros_like(steps[..., :1]), rest], axis=-1)


def _ordinal(eta, row, steps):
    """Cumulative logit: P(y ≤ k) = σ(c_k − η), from σ(b) − σ(a) = σ(b) σ(−a) (1 − exp(a − b))."""
    cuts, y = cut_points(steps), row["y"].astype(int)
    last = len(cuts)
    upper, lower = cuts[jnp.minimum(y, last - 1)], cuts[jnp.maximum(y - 1, 0)]
    between = (y > 0) & (y < last)
    gap = jnp.where(between, upper - lower, 1.0)
    below = jnp.where(y < last, -jnp.logaddexp(0.0, eta - upper), 0.0)
    above = jnp.where(y > 0, -jnp.logaddexp(0.0, lower - eta), 0.0)
    return below + above + jnp.where(between, jnp.log(-jnp.expm1(-gap)), 0.0)


def _logistic(eta: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-eta))


def _counts(y: np.ndarray) -> bool:
    return bool(np.all(y >= 0) and np.all(y == np.round(y)))


likelihoods = {
    "gaussian": MixedLikelihood(_gaussian, lambda eta: eta, True, lambda y: True, "real numbers"),
    "bernoulli": MixedLikelihood(_bernoulli, _logistic, False, lambda y: set(np.unique(y)) <= {0.0, 1.0}, "0 and 1"),
    "binomial": MixedLikelihood(_binomial, _logistic, False, _counts, "proportion(successes, trials)"),
    "poisson": MixedLikelihood(_poisson, np.exp, False, _counts, "counts"),
    "negative binomial": MixedLikelihood(_negative_binomial, np.exp, True, _counts, "counts"),
    "ordinal": MixedLikelihood(
        _ordinal, _logistic, False, lambda y: len(np.unique(y)) > 2, "three or more categories, in order"
    ),
    "beta": MixedLikelihood(
        _beta, _logistic, True, lambda y: bool(np.all((y > 0) & (y < 1))), "numbers between 0 and 1"
    ),
}
