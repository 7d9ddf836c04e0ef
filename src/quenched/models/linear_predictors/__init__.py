"""Models that see their data through linear predictors: the best Gaussian of the weights, in NumPy and without draws."""

from quenched.models.linear_predictors.arguments import (
    check_precision,
    check_rounds,
    checked_features,
    checked_vector,
)
from quenched.models.linear_predictors.best_gaussian import (
    LogisticPosterior,
    answer,
    best_gaussian,
    logistic_bound,
    logistic_problem,
    raise_linear_bound,
)
from quenched.models.linear_predictors.design import Design, View, lay_out
from quenched.models.linear_predictors.exact_linear_regression import (
    ExactLinearRegression,
    decompose,
    exact_linear_regression,
    solve_linear,
)
from quenched.models.linear_predictors.likelihoods import (
    Bernoulli,
    Categorical,
    Likelihood,
    Poisson,
    contrasts,
    softmax_expectations,
)
from quenched.models.linear_predictors.quadrature import softplus_expectations
from quenched.models.linear_predictors.sites import (
    INTERCEPT_SD,
    LinearProblem,
    Path,
    SiteRound,
    predictors,
    raise_sites,
    site_posterior,
)

__all__ = [
    "INTERCEPT_SD",
    "Bernoulli",
    "Categorical",
    "Design",
    "ExactLinearRegression",
    "Likelihood",
    "LinearProblem",
    "LogisticPosterior",
    "Path",
    "Poisson",
    "SiteRound",
    "View",
    "answer",
    "best_gaussian",
    "check_precision",
    "check_rounds",
    "checked_features",
    "checked_vector",
    "contrasts",
    "decompose",
    "exact_linear_regression",
    "lay_out",
    "logistic_bound",
    "logistic_problem",
    "predictors",
    "raise_linear_bound",
    "raise_sites",
    "site_posterior",
    "softmax_expectations",
    "softplus_expectations",
    "solve_linear",
]
