"""Models that see their data through linear predictors: the best Gaussian of the weights, in NumPy and without draws."""

from quenched.models.linear_predictors.arguments import (
    check_precision,
    check_rounds,
    checked_features,
    checked_vector,
)
from quenched.models.linear_predictors.design import Design, View, lay_out
from quenched.models.linear_predictors.likelihoods import (
    Bernoulli,
    Categorical,
    Likelihood,
    Poisson,
    contrasts,
    softmax_expectations,
)
from quenched.models.linear_predictors.linear_bound import raise_linear_bound
from quenched.models.linear_predictors.linear_evidence import LinearSolution, decompose, solve_linear
from quenched.models.linear_predictors.quadrature import softplus_expectations
from quenched.models.linear_predictors.sites import (
    INTERCEPT_SD,
    LinearProblem,
    Path,
    SiteRound,
    raise_sites,
    site_posterior,
)

__all__ = [
    "INTERCEPT_SD",
    "Bernoulli",
    "Categorical",
    "Design",
    "Likelihood",
    "LinearProblem",
    "LinearSolution",
    "Path",
    "Poisson",
    "SiteRound",
    "View",
    "check_precision",
    "check_rounds",
    "checked_features",
    "checked_vector",
    "contrasts",
    "decompose",
    "lay_out",
    "raise_linear_bound",
    "raise_sites",
    "site_posterior",
    "softmax_expectations",
    "softplus_expectations",
    "solve_linear",
]
