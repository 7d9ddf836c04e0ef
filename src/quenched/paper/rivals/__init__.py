"""The methods that the paper compares with, or that know the truth; none of them needs draws."""

from quenched.paper.rivals.exact_linear_regression import ExactLinearRegression, exact_linear_regression
from quenched.paper.rivals.gauss_hermite import best_gaussian, logistic_bound
from quenched.paper.rivals.jaakkola_jordan import jaakkola_jordan
from quenched.paper.rivals.logistic_sites import LogisticPosterior
from quenched.paper.rivals.multiclass_rvm import MulticlassRVM, fit_multiclass_rvm

__all__ = [
    "ExactLinearRegression",
    "LogisticPosterior",
    "MulticlassRVM",
    "best_gaussian",
    "exact_linear_regression",
    "fit_multiclass_rvm",
    "jaakkola_jordan",
    "logistic_bound",
]
