"""scikit-learn's own checks of the estimators."""

import importlib
import sys
import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from quenched.models import PPCA, CauchyPPCA


@pytest.fixture(autouse=True)
def _without_convergence_warnings():
    # Some checks fit a handful of rows, or noise-free ones, whose best scale is zero.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


# One component: several checks have data of two columns.
@parametrize_with_checks([PPCA(n_components=1), CauchyPPCA(n_components=1, draws=4, max_iter=50)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("quenched.models")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r'pip install "quenched\[sklearn\]"'):
        importlib.import_module("quenched.models")
