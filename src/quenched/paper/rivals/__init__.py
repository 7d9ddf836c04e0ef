"""The methods that the paper compares with and that no estimator of the library needs, and the truth they are measured by."""

from quenched.paper.rivals.best_gaussian import LogisticPosterior, best_gaussian, logistic_bound
from quenched.paper.rivals.exact_linear_regression import exact_linear_regression
from quenched.paper.rivals.hamiltonian import Chains, bridge, convergence, hamiltonian
from quenched.paper.rivals.jaakkola_jordan import jaakkola_jordan

__all__ = [
    "Chains",
    "LogisticPosterior",
    "best_gaussian",
    "bridge",
    "convergence",
    "exact_linear_regression",
    "hamiltonian",
    "jaakkola_jordan",
    "logistic_bound",
]
