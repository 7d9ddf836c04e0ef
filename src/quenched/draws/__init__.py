"""Makers of frozen points."""

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
from quenched.draws.groups import Groups
from quenched.draws.streams import Purpose, generator, stream

__all__ = [
    "Draws",
    "Groups",
    "Purpose",
    "antithetic",
    "generator",
    "iid",
    "kinds",
    "make",
    "matched",
    "replicates",
    "smallest",
    "sobol",
    "stream",
]
