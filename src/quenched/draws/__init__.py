"""Makers of frozen points."""

from quenched.draws.draws import (
    Draws,
    Groups,
    antithetic,
    iid,
    kinds,
    make,
    matched,
    replicates,
    smallest,
    sobol,
    stream,
)

__all__ = [
    "Draws",
    "Groups",
    "antithetic",
    "iid",
    "kinds",
    "make",
    "matched",
    "replicates",
    "smallest",
    "sobol",
    "stream",
]
