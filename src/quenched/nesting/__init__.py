"""Nested frozen draws: a posterior of a few outer parameters, with the best inner Gaussian solved for each of their draws."""

from quenched.nesting.algebra import Dense
from quenched.nesting.rows import Own, RowArrays, Rows, read_rows, seen_by
from quenched.nesting.split import Split
from quenched.nesting.whole import Asked, fit_nested, nested

__all__ = ["Asked", "Dense", "Own", "RowArrays", "Rows", "Split", "fit_nested", "nested", "read_rows", "seen_by"]
