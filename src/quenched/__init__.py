"""Bayesian inference with frozen draws: the best Gaussian posterior, a bound on the log evidence, and a verdict."""

from quenched.baselines import laplace
from quenched.calibration import Calibration, calibrate
from quenched.draws import Draws, antithetic, iid, matched, sobol
from quenched.families import Blocks, Warped
from quenched.fitting import Alternating, Joint, assess, fit, fit_many
from quenched.frontends import from_numpyro, from_pymc
from quenched.outcome import Status
from quenched.result import Fit, FitError
from quenched.results import Fits
from quenched.storage import load
from quenched.targets import (
    Model,
    dot,
    each,
    each_entry,
    from_value,
    from_value_and_grad,
    regression,
    sum_of,
    whole,
    with_gaussian_prior,
)
from quenched.transforms import above, below, correlation_cholesky, interval, ordered, positive, real, simplex

__version__ = "0.1.0"

__all__ = [
    "Alternating",
    "Blocks",
    "Calibration",
    "Draws",
    "Fit",
    "FitError",
    "Fits",
    "Joint",
    "Model",
    "Status",
    "Warped",
    "above",
    "antithetic",
    "assess",
    "below",
    "calibrate",
    "correlation_cholesky",
    "dot",
    "each",
    "each_entry",
    "fit",
    "fit_many",
    "from_numpyro",
    "from_pymc",
    "from_value",
    "from_value_and_grad",
    "iid",
    "interval",
    "laplace",
    "load",
    "matched",
    "ordered",
    "positive",
    "real",
    "regression",
    "simplex",
    "sobol",
    "sum_of",
    "whole",
    "with_gaussian_prior",
]
