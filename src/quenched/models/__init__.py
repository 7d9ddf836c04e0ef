"""Models as scikit-learn estimators (`pip install "quenched[sklearn]"`)."""

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError('quenched.models needs scikit-learn: pip install "quenched[sklearn]".') from error

from quenched.models.cauchy_ppca import CauchyPPCA
from quenched.models.noise import cauchy, gaussian, laplace, student_t
from quenched.models.ppca import PPCA

__all__ = ["PPCA", "CauchyPPCA", "cauchy", "gaussian", "laplace", "student_t"]
