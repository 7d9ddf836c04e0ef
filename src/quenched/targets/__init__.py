"""What is approximated: a log density, a likelihood with a Gaussian prior, a regression, a host function, a sum of terms."""

from quenched.targets.captured import fingerprint
from quenched.targets.explaining import insist_number
from quenched.targets.form import EntropyForm, ExactKLForm, Form, GaussianPriorForm, Hyper, Moments
from quenched.targets.mistaken import package_of
from quenched.targets.model import Model, read_model, read_target
from quenched.targets.target import (
    Asking,
    HalfSquares,
    Target,
    call,
    from_value,
    from_value_and_grad,
    log_density,
    regression,
    with_gaussian_prior,
)
from quenched.targets.terms import (
    Held,
    LocalTerm,
    Piece,
    SparseRows,
    Terms,
    check_terms,
    dot,
    each,
    each_entry,
    local_terms,
    numbers_of_rows,
    of_some_rows,
    some_rows,
    sum_of,
    whole,
)

__all__ = [
    "Asking",
    "EntropyForm",
    "ExactKLForm",
    "Form",
    "GaussianPriorForm",
    "HalfSquares",
    "Held",
    "Hyper",
    "LocalTerm",
    "Model",
    "Moments",
    "Piece",
    "SparseRows",
    "Target",
    "Terms",
    "call",
    "check_terms",
    "dot",
    "each",
    "each_entry",
    "fingerprint",
    "from_value",
    "from_value_and_grad",
    "insist_number",
    "local_terms",
    "log_density",
    "numbers_of_rows",
    "of_some_rows",
    "package_of",
    "read_model",
    "read_target",
    "regression",
    "some_rows",
    "sum_of",
    "whole",
    "with_gaussian_prior",
]
