"""What a fit raises: a target on the real line (`Problem`), whitened coordinates, and the bound on frozen draws."""

from quenched.objective.bound import (
    Chunks,
    Slope,
    Totals,
    close,
    cut_up,
    half_of_mirrored,
    log_q,
    nothing,
    ratios_in_chunks,
    slope_in_chunks,
    totals_at,
)
from quenched.objective.coordinates import Coordinates
from quenched.objective.objective import Objective, cut, log_ratios, place, worth
from quenched.objective.problem import Batch, Problem, RealLine, Rows, make_batch, make_problem

__all__ = [
    "Batch",
    "Chunks",
    "Coordinates",
    "Objective",
    "Problem",
    "RealLine",
    "Rows",
    "Slope",
    "Totals",
    "close",
    "cut",
    "cut_up",
    "half_of_mirrored",
    "log_q",
    "log_ratios",
    "make_batch",
    "make_problem",
    "nothing",
    "place",
    "ratios_in_chunks",
    "slope_in_chunks",
    "totals_at",
    "worth",
]
