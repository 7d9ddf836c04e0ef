"""What is approximated: a log density, a likelihood with a Gaussian prior, a regression, a host function."""

from quenched.targets.captured import fingerprint
from quenched.targets.explaining import insist_number
from quenched.targets.form import EntropyForm, ExactKLForm, Form, GaussianPriorForm, Hyper, Moments
from quenched.targets.model import Model, read_model, read_target
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
    "Model",
    "Moments",
    "Target",
    "call",
    "fingerprint",
    "from_value_and_grad",
    "insist_number",
    "log_density",
    "read_model",
    "read_target",
    "regression",
    "with_gaussian_prior",
]
