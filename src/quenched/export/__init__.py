"""Fits in the formats of other libraries."""

from quenched.export.arviz import to_arviz
from quenched.export.mcmc import NutsStart, nuts_start

__all__ = ["NutsStart", "nuts_start", "to_arviz"]
