"""Models as scikit-learn estimators (`pip install "quenched[sklearn]"`)."""

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError('quenched.models needs scikit-learn: pip install "quenched[sklearn]".') from error

from quenched.models.cauchy_ppca import CauchyPPCA
from quenched.models.linear_regression import LinearRegression
from quenched.models.logistic_regression import LogisticRegression
from quenched.models.mixed import MixedModel
from quenched.models.multiclass_rvm import fit_multiclass_rvm
from quenched.models.noise import cauchy, gaussian, laplace, student_t
from quenched.models.poisson_regression import PoissonRegression
from quenched.models.ppca import PPCA
from quenched.models.relevance_vector_classifier import RelevanceVectorClassifier

__all__ = [
    "PPCA",
    "CauchyPPCA",
    "LinearRegression",
    "LogisticRegression",
    "MixedModel",
    "PoissonRegression",
    "RelevanceVectorClassifier",
    "cauchy",
    "fit_multiclass_rvm",
    "gaussian",
    "laplace",
    "student_t",
]
