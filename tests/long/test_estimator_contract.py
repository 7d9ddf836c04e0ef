"""scikit-learn's own checks of the estimators, with their defaults; no check is expected to fail."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from quenched.models import LinearRegression, LogisticRegression, PoissonRegression, RelevanceVectorClassifier


@pytest.fixture(autouse=True)
def _without_convergence_warnings():
    # Some checks have targets that do not depend on the features, or follow them without error.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@parametrize_with_checks(
    [LinearRegression(), LogisticRegression(), PoissonRegression(), RelevanceVectorClassifier()],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
