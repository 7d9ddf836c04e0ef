"""Makers of frozen points."""

from quenched.draws.check import CHECK_BATCH, MOST_CHECKED, CheckDraws, check_draws_of
from quenched.draws.draws import (
    CHECK_BLOCK,
    Draws,
    antithetic,
    check_draws,
    iid,
    kinds,
    make,
    matched,
    replicates,
    smallest,
    sobol,
)
from quenched.draws.groups import Groups
from quenched.draws.streams import Purpose, generator, jax_key, stream
from quenched.draws.term_draws import Points, TermDraws, term_draws

__all__ = [
    "CHECK_BATCH",
    "CHECK_BLOCK",
    "MOST_CHECKED",
    "CheckDraws",
    "Draws",
    "Groups",
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
