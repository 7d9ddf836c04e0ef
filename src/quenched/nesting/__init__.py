"""Nested frozen draws: a posterior of a few outer parameters, with the best inner Gaussian solved for each of their draws."""

from quenched.nesting.few import TooManyInside
from quenched.nesting.returning import outer_of
from quenched.nesting.rows import RowArrays, TermRows, read_rows, seen_by
from quenched.nesting.split import Split
from quenched.nesting.third_order import ThirdOrder, third_order
from quenched.nesting.whole import DividedModel, NestedOptions, better_guess, fit_nested, judged, nested, of_outer, pose

__all__ = [
    "DividedModel",
    "NestedOptions",
    "RowArrays",
    "Split",
    "TermRows",
    "ThirdOrder",
    "TooManyInside",
    "better_guess",
    "fit_nested",
    "judged",
    "nested",
    "of_outer",
    "outer_of",
    "pose",
    "read_rows",
    "seen_by",
    "third_order",
]
