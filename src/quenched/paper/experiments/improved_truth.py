"""The truth by which improved approximations are measured: a grid for two parameters, long chains for more.

Chains run in the coordinates of the nested posterior. Where the data say little of the effects, these are far from those of
Gaussians, and a chain that has to follow a funnel does not settle; then others run with the effects in units of their own
standard deviations, where such a posterior is near its prior, which is no funnel. Where neither settle, both run on for longer.
Those that have settled best are the truth.
"""

import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import log_ndtr

from quenched.arrays import Array
from quenched.fitting import fit
from quenched.paper.experiments.bivariate_densities import skew_log_density
from quenched.paper.experiments.improved_problems import Posed
from quenched.paper.rivals import Chains, convergence, hamiltonian
from quenched.precision import in_double
from quenched.results import Fit
from quenched.transforms import real_names

SAMPLES = 20_000
SETTLED = 1.01  # R-hat
_LENGTHS = (1, 4)  # of chains, one after the other until they have settled
_GRID = 1201  # points to each side of a plane


class Truth(NamedTuple):
    """Samples on the real line, the log evidence with its error, and how good the chains are."""

    samples: np.ndarray  # (draws, dim)
    evidence: float
    evidence_error: float
    rhat: float
    effective: float
    seconds: float  # of the processor


def truth_of(posed: Posed, guide: Fit, chains: int, draws: int) -> Truth:
    """By chains in the coordinates of a fit, or by a grid."""
    began = time.process_time()
    if posed.exact is not None:
        return Truth(_by_grid(posed.exact), 0.0, 0.0, 1.0, float(SAMPLES), time.process_time() - began)
    with in_double():
        found = settled(posed, guide, chains, draws)
    samples = found.samples.reshape(-1, found.samples.shape[-1])
    return Truth(
        samples, found.evidence, found.evidence_error, found.rhat, found.effective, time.process_time() - began
    )


def settled(posed: Posed, guide: Fit, chains: int, draws: int) -> Chains:
    """The first chains that settle, or those of all that have settled best."""
    tried = []
    for length in _LENGTHS:
        tried.append(hamiltonian(guide, chains=chains, draws=length * draws, seed=1))
        if tried[-1].rhat > SETTLED and posed.spreads:
            tried.append(in_units(posed, guide, chains, length * draws))
        if tried[-1].rhat <= SETTLED:
            break
    return min(tried, key=lambda one: one.rhat)


def in_units(posed: Posed, guide: Fit, chains: int, draws: int) -> Chains:
    """Chains with the effects in units of their standard deviations; their samples are of the effects as they were."""
    names, log_density = real_names(guide.space), guide.nuts_start().log_density
    leaf = [name.partition("[")[0] for name in names]
    places = [k for k, name in enumerate(leaf) if name in posed.spreads]
    scales = [names.index(f"log_sd[{posed.spreads[leaf[k]]}]") for k in places]

    def stretched(vector: Array) -> Array:
        scale = jnp.exp(vector[np.array(scales)])
        return vector.at[np.array(places)].multiply(scale, unique_indices=True)

    def unstretched(vector: Array) -> Array:
        return log_density(stretched(vector)) + jnp.sum(vector[np.array(scales)])

    begin = np.array(guide.posterior.mean)
    begin[places] = 0.0
    found = hamiltonian(fit(unstretched, begin, throw=False, progress=False), chains=chains, draws=draws, seed=2)
    samples = np.asarray(jax.vmap(jax.vmap(stretched))(jnp.asarray(found.samples)))
    rhat, effective = convergence(samples)
    return found._replace(samples=samples, rhat=rhat, effective=effective)


def _by_grid(vector: tuple[float, ...]) -> np.ndarray:
    """Samples of a skew density, which is normalised, from its values on a grid."""
    side = np.linspace(-7.0, 7.0, _GRID)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    weights = np.exp(skew_log_density(points, vector, log_ndtr))
    random = np.random.default_rng(15)
    chosen = points[random.choice(len(points), SAMPLES, p=weights / weights.sum())]
    return chosen + (side[1] - side[0]) * (random.uniform(size=chosen.shape) - 0.5)
