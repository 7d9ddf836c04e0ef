"""Makers of frozen points."""

from quenched.draws.check import CHECK_BATCH, CHECK_BLOCK, CheckDraws, check_draws, check_draws_of
from quenched.draws.draws import (
    Draws,
    antithetic,
    iid,
    kinds,
    make,
    matched,
    replicates,
    smallest,
    sobol,
)
from quenched.draws.streams import Purpose, generator, jax_key, stream
from quenched.draws.term_draws import Points, TermDraws, term_draws

__all__ = [
    "CHECK_BATCH",
    "CHECK_BLOCK",
    "CheckDraws",
    "Draws",
    "Points",
    "Purpose",
    "TermDraws",
    "antithetic",
    "check_draws",
    "check_draws_of",
    "generator",
    "iid",
    "jax_key",
    "kinds",
    "make",
    "matched",
    "replicates",
    "smallest",
    "sobol",
    "stream",
    "term_draws",
]
