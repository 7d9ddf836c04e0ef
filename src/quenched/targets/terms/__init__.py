"""Sums of terms that each see few of the parameters: how they are written down, and what each row sees on the real line."""

from quenched.targets.terms.checking import check_terms
from quenched.targets.terms.each import each, sum_of
from quenched.targets.terms.local import LocalTerm, Piece, local_terms, log_density_of
from quenched.targets.terms.sees import SparseRows, dot, each_entry, whole
from quenched.targets.terms.terms import Terms
from quenched.targets.terms.weighted import in_files, numbers_of_rows, of_some_rows, rows_between, some_rows

__all__ = [
    "LocalTerm",
    "Piece",
    "SparseRows",
    "Terms",
    "check_terms",
    "dot",
    "each",
    "each_entry",
    "in_files",
    "local_terms",
    "log_density_of",
    "numbers_of_rows",
    "of_some_rows",
    "rows_between",
    "some_rows",
    "sum_of",
    "whole",
]
