"""What is approximated: a log density, a likelihood with a Gaussian prior, a regression, a host function."""

from quenched.targets.captured import fingerprint
from quenched.targets.form import EntropyForm, ExactKLForm, Form, GaussianPriorForm, Hyper, Moments
from quenched.targets.target import (
    HalfSquares,
    Target,
    call,
    from_value_and_grad,
    log_density,
    regression,
    with_gaussian_prior,
)

__all__ = [
    "EntropyForm",
    "ExactKLForm",
    "Form",
    "GaussianPriorForm",
    "HalfSquares",
    "Hyper",
    "Moments",
    "Target",
    "call",
    "fingerprint",
    "from_value_and_grad",
    "log_density",
    "regression",
    "with_gaussian_prior",
]
