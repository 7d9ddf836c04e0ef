"""What is approximated: a log density, a likelihood with a Gaussian prior, a regression, a host function, a sum of terms."""

from quenched.targets.calling import Asking, call
from quenched.targets.captured import Unchanging, fingerprint
from quenched.targets.explaining import explaining, insist_number, kept_from_a_trace
from quenched.targets.form import EntropyForm, Form, Hyper, Moments
from quenched.targets.gaussian_priors import regression, with_gaussian_prior
from quenched.targets.mistaken import package_of
from quenched.targets.model import Model, read_model, read_target
from quenched.targets.target import Target, from_value, from_value_and_grad, log_density
from quenched.targets.terms import (
    LocalTerm,
    Piece,
    SparseRows,
    Terms,
    check_terms,
    dot,
    each,
    each_entry,
    in_files,
    local_terms,
    log_density_of,
    numbers_of_rows,
    of_some_rows,
    rows_between,
    some_rows,
    sum_of,
    whole,
)

__all__ = [
    "Asking",
    "EntropyForm",
    "Form",
    "Hyper",
    "LocalTerm",
    "Model",
    "Moments",
    "Piece",
    "SparseRows",
    "Target",
    "Terms",
    "Unchanging",
    "call",
    "check_terms",
    "dot",
    "each",
    "each_entry",
    "explaining",
    "fingerprint",
    "from_value",
    "from_value_and_grad",
    "in_files",
    "insist_number",
    "kept_from_a_trace",
    "local_terms",
    "log_density",
    "log_density_of",
    "numbers_of_rows",
    "of_some_rows",
    "package_of",
    "read_model",
    "read_target",
    "regression",
    "rows_between",
    "some_rows",
    "sum_of",
    "whole",
    "with_gaussian_prior",
]
