"""A fit as ArviZ data."""

import sys

import numpy as np
import pytest

import quenched as qd
from fits import make_fit

START = {"mu": 4.0, "net": {"w": np.zeros((3, 2))}, "tau": 2.0}


@pytest.fixture
def fit():
    return make_fit(START, transforms={"tau": qd.positive})


def test_leaves_are_variables_with_one_chain(fit):
    posterior = fit.to_arviz(n=50).posterior
    shapes = {name: variable.shape for name, variable in posterior.data_vars.items()}
    assert shapes == {"mu": (1, 50), "net.w": (1, 50, 3, 2), "tau": (1, 50)}
    assert posterior["net.w"].dims[:2] == ("chain", "draw")


def test_values_are_the_samples_in_natural_units(fit):
    posterior = fit.to_arviz(n=50, seed=3).posterior
    samples = fit.sample(50, seed=3)
    np.testing.assert_array_equal(posterior["tau"].values[0], samples["tau"])
    np.testing.assert_array_equal(posterior["net.w"].values[0], samples["net"]["w"])
    assert (posterior["tau"].values > 0).all()


def test_a_bare_array_is_called_parameters():
    assert make_fit(np.zeros(4)).to_arviz(n=5).posterior["parameters"].shape == (1, 5, 4)


def test_the_verdict_travels_with_the_samples(fit):
    attributes = fit.to_arviz(n=5).posterior.attrs
    assert attributes["bound"] == -32.1
    assert attributes["check_bound"] == -32.15
    assert attributes["status"] == "converged"
    assert attributes["verdict"] == fit.verdict
    assert attributes["inference_library"] == "quenched"
    assert attributes["inference_library_version"] == qd.__version__
    assert all(type(value) in (str, float, int) for value in attributes.values())


def test_without_arviz_the_extra_is_named(fit, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(ImportError, match=r'pip install "quenched\[arviz\]"'):
        fit.to_arviz()
