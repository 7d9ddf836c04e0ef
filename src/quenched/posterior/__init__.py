"""The fitted posterior, on the real line and in natural units."""

from quenched.posterior.natural_units import (
    Derived,
    derived,
    moment_draws,
    natural_moments,
    natural_moments_of_many,
    natural_quantiles,
    to_natural,
)
from quenched.posterior.posterior import Posterior

__all__ = [
    "Derived",
    "Posterior",
    "derived",
    "moment_draws",
    "natural_moments",
    "natural_moments_of_many",
    "natural_quantiles",
    "to_natural",
]
