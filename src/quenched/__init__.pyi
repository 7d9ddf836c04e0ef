from .baselines import laplace
from .calibration import Calibration, calibrate
from .draws import Draws, antithetic, iid, matched, sobol
from .execute import keep_programs
from .families import Blocks, LowRank, Sparse, Warped
from .fitting import Alternating, Joint, Streaming, assess, fit, fit_many
from .frontends import from_numpyro, from_pymc, from_stan, from_torch
from .nesting import nested
from .results import Fit, FitError, Fits, Status, load
from .targets import (
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
from .transforms import above, below, correlation_cholesky, interval, ordered, positive, real, simplex

__version__: str

__all__ = [
    "Alternating",
    "Blocks",
    "Calibration",
    "Draws",
    "Fit",
    "FitError",
    "Fits",
    "Joint",
    "LowRank",
    "Model",
    "Sparse",
    "Status",
    "Streaming",
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
    "from_stan",
    "from_torch",
    "from_value",
    "from_value_and_grad",
    "iid",
    "interval",
    "keep_programs",
    "laplace",
    "load",
    "matched",
    "nested",
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
