"""Every random stream of the library: a seed, the purpose it serves, and a key that nobody else uses.

People simulate data with the same small seeds that they give to a fit. If the draws of seed 0 were
`numpy.random.default_rng(0).standard_normal(...)`, they would be the rows of a design matrix simulated with seed 0,
and the bound optimistic by many nats. So no stream here is one that NumPy gives out for a seed, and none is another's.
"""

from enum import IntEnum, unique

import numpy as np

from quenched.numbers import seed_number

_KEY = 0x7175656E63686564  # "quenched": no seed of a person's own is mixed with it


@unique
class Purpose(IntEnum):
    """What random numbers are for; each purpose has a stream of its own for every seed."""

    DRAWS = 1  # the frozen points of a fit
    CHECK = 2  # the points that a fit was not trained on
    STARTS = 3  # places around the given start
    SHORT_FIT = 4  # the few draws of the fit that finds a start
    SAMPLES = 5  # of the fitted posterior
    MOMENTS = 6  # points by which moments in natural units are taken
    REPLICATES = 7  # other sets of draws, for the error that is due to them
    WEIGHTS = 8  # posterior samples that are weighed by the target
    RESAMPLING = 9  # which of them are kept
    SKEWNESS = 10  # points at which the skewness of the target is felt
    SIMULATIONS = 11  # parameters and data of a calibration
    RANKS = 12  # samples that true values are ranked among
    BANDS = 13  # uniform ranks, for the band that they stay in
    NOISE = 14  # of a prediction
    PROJECTION = 15  # the draws of each row that a fitted model projects
    CURVES = 16  # points that follow a posterior, for a figure
    BOUNDS = 17  # points that tell whether a parameter presses against its bounds
    SHORTFALL = 18  # a second set of draws, for what the first one may have cost
    MIRRORS = 19  # samples at which copies of a posterior are looked for
    TERMS = 20  # the draws of each term of a sum
    PROBES = 21  # directions in which a covariance is felt
    FRESH = 22  # draws and rows that are taken anew at every step
    GRADIENT = 23  # directions along which a gradient is compared with values
    FURTHER = 24  # points further out than a posterior's own


def generator(seed: int, purpose: Purpose) -> np.random.Generator:
    """Random numbers for a purpose: the same for the same seed, on every machine."""
    return np.random.default_rng(_sequence(seed, purpose))


def stream(seed: int, purpose: Purpose, index: int = 0) -> int:
    """A seed derived from another, for draws that serve a purpose of their own; `index` tells several sets apart."""
    return int(_sequence(seed, purpose, index).generate_state(1, np.uint64)[0] >> np.uint64(1))


def jax_key(seed: int, purpose: Purpose):
    """A key for JAX's random numbers, of packages that make theirs with it."""
    import jax

    return jax.random.PRNGKey(stream(seed, purpose) % 2**32)


def _sequence(seed: int, *place: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed_number("seed", seed), spawn_key=(_KEY, *map(int, place)))
