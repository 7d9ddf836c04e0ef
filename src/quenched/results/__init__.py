"""What a fit returns: `Fit` and `Fits`, what happened in them, their tables, and files of them."""

from quenched.results.attachment import draws_of, own_hyper, same_parameters
from quenched.results.fit import Fit, FitError, insist_fit, require_origin
from quenched.results.fits import Fits, Origins
from quenched.results.outcome import Code, History, Optimum, Round, Status
from quenched.results.storage import as_a_warning, insist_writable, load, save
from quenched.results.summary import (
    describe,
    evidence_in_words,
    moved_by_draws,
    print_summary,
    render,
    rows_of,
    rows_shown,
)

__all__ = [
    "Code",
    "Fit",
    "FitError",
    "Fits",
    "History",
    "Optimum",
    "Origins",
    "Round",
    "Status",
    "as_a_warning",
    "describe",
    "draws_of",
    "evidence_in_words",
    "insist_fit",
    "insist_writable",
    "load",
    "moved_by_draws",
    "own_hyper",
    "print_summary",
    "render",
    "require_origin",
    "rows_of",
    "rows_shown",
    "same_parameters",
    "save",
]
