"""How often the intervals due to the draws cover the answer of very many draws."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import cauchy, norm

import quenched as qd
from quenched.paper.datasets import ground_motion
from quenched.science import GroundMotion

_MANY = 32768  # draws of the answer that counts as the truth


class Coverage(NamedTuple):
    """Shares of intervals that cover."""

    name: str
    dim: int
    n_draws: int
    mean: float
    sd: float
    bound: float


def logistic(w, data):
    scores = data[0] @ w
    return jnp.sum(data[1] * scores - jnp.logaddexp(0.0, scores)) - 0.5 * w @ w


def schools(parameters, data):
    effects = parameters["mu"] + parameters["tau"] * parameters["z"]
    prior = norm.logpdf(parameters["mu"], 0.0, 5.0) + cauchy.logpdf(parameters["tau"], 0.0, 5.0)
    return prior + jnp.sum(norm.logpdf(parameters["z"])) + jnp.sum(norm.logpdf(data[0], effects, data[1]))


@cache
def _logistic_data():
    generator = np.random.default_rng(0)
    features = generator.standard_normal((60, 8))
    chance = 1.0 / (1.0 + np.exp(-features @ generator.standard_normal(8)))
    return features, (generator.uniform(size=60) < chance).astype(float)


def fit_logistic(**options) -> qd.Fit:
    return qd.fit(logistic, np.zeros(8), data=_logistic_data(), **options)


def fit_schools(**options) -> qd.Fit:
    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    start = {"mu": 0.0, "tau": 1.0, "z": np.zeros(8)}
    return qd.fit(schools, start, data=(effects, errors), transforms={"tau": qd.positive}, **options)


@cache
def _spectra():
    """A random 200 of the points of KiK-net station FKSH11, borehole."""
    table = ground_motion("fksh11")
    chosen = np.random.default_rng(0).permutation(len(table["event"]))[:200]
    return {name: column[chosen] for name, column in table.items()}


def fit_ground_motion(**options) -> qd.Fit:
    return GroundMotion().fit(_spectra(), **options).fit_


FITS: dict[str, Callable[..., qd.Fit]] = {
    "logistic regression": fit_logistic,
    "eight schools": fit_schools,
    "ground motion": fit_ground_motion,
}
CASES = {  # from twice the dimension upwards
    "logistic regression": (16, 32, 128),
    "eight schools": (20, 64, 256),
    "ground motion": (24, 64, 256),
}


def flat(tree) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def cover(name: str, n_draws: int, n_fits: int) -> Coverage:
    """Fit with many seeds and count."""
    make = FITS[name]
    truth = make(draws=_MANY, seed=10**6, method=qd.Joint(gradient_tolerance=1e-6), progress=False)  # to its very top
    means, sds, bounds = [], [], []
    for seed in range(n_fits):
        fit = make(draws=n_draws, seed=seed, progress=False, throw=False)
        diagnosis = fit.diagnose(progress=False)
        t = diagnosis.t_quantile
        means.append(np.abs(flat(fit.mean) - flat(truth.mean)) <= t * flat(diagnosis.mean_error))
        sds.append(np.abs(flat(fit.sd) - flat(truth.sd)) <= t * flat(diagnosis.sd_error))
        bounds.append(abs(fit.bound - truth.bound) <= t * diagnosis.bound_error)
    return Coverage(name, truth.posterior.dim, n_draws, *(float(np.mean(x)) for x in (means, sds, bounds)))
