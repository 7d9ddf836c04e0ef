"""ArviZ before version 1: `InferenceData`, and the functions that people use on it."""

import numpy as np
import pytest

from quenched.models import PoissonRegression

arviz = pytest.importorskip("arviz")
pytestmark = [
    pytest.mark.skipif(
        not hasattr(arviz, "InferenceData"), reason="this ArviZ has DataTree, which tests/export checks"
    ),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def data():
    """Of the same counts with a column that has nothing to do with them, and with three."""
    random = np.random.default_rng(1)
    X = random.normal(size=(50, 3))
    y = random.poisson(np.exp(0.2 + 0.8 * X[:, 0]))
    fits = [PoissonRegression(prior_precision=1.0).fit(X[:, columns], y).fit_ for columns in ([1], [0, 1, 2])]
    return [fit.to_arviz() for fit in fits]


def test_groups_and_attributes(data):
    assert isinstance(data[1], arviz.InferenceData)
    assert set(data[1].groups()) == {
        *("posterior", "posterior_predictive", "log_likelihood", "sample_stats", "observed_data"),
    }
    assert data[1].posterior["coef"].dims == ("chain", "draw", "feature")
    assert data[1].posterior.attrs["verdict"].startswith("Trust")


def test_functions_that_people_use(data):
    less, more = data
    assert "coef[x0]" in arviz.summary(more).index
    assert arviz.loo(more).elpd_loo > arviz.loo(less).elpd_loo
    assert list(arviz.compare({"less": less, "more": more}).index) == ["more", "less"]
    assert arviz.plot_pair(more, var_names=["coef"]).shape == (2, 2)
    assert arviz.plot_ppc(more, num_pp_samples=5) is not None
