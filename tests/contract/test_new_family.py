"""A family is one file and one line of the registry: that of the page on extending goes through all that a fit is asked for."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.families import families, member_kinds

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
(SKELETON,) = (block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "class Spherical" in block)


def log_density(w, data):
    return -0.5 * (w[0] ** 2 + 4.0 * w[1] ** 2) + 0.3 * w[0] * data


@pytest.fixture(scope="module")
def skeleton():
    found = {"jnp": jnp, "np": np, "qd": qd}
    exec(compile(SKELETON, "extending.md", "exec"), found)
    return found


@pytest.fixture
def registered(skeleton, monkeypatch):
    """As a line of the registry would."""
    monkeypatch.setitem(families, "spherical", skeleton["Spherical"]())
    monkeypatch.setitem(member_kinds, "SphericalGaussian", skeleton["SphericalGaussian"])


def test_it_is_fitted_diagnosed_and_advised(skeleton):
    fit = qd.fit(log_density, np.zeros(2), data=1.0, family=skeleton["Spherical"](), progress=False)
    np.testing.assert_allclose(fit.posterior.variance(), 0.4, rtol=1e-3)
    diagnosis = fit.diagnose(progress=False)
    assert diagnosis.at_maximum
    assert "The spherical family leaves out correlations" not in diagnosis.verdict  # the target has none
    again = qd.fit(log_density, fit, progress=False)
    assert again.settings["family"] == "spherical"
    np.testing.assert_allclose(again.mean, fit.mean, atol=1e-6)


def test_it_is_fitted_many_times(skeleton):
    fits = qd.fit_many(
        log_density, np.zeros(2), data=np.array([0.0, 1.0]), family=skeleton["Spherical"](), progress=False
    )
    np.testing.assert_allclose(fits.mean[:, 0], [0.0, 0.3], atol=1e-3)


def test_a_line_of_the_registry_gives_it_a_name_and_files(registered, tmp_path):
    fit = qd.fit(log_density, np.zeros(2), data=1.0, family="spherical", progress=False)
    fit.save(tmp_path / "fit.npz")
    loaded = qd.load(tmp_path / "fit.npz")
    np.testing.assert_array_equal(loaded.posterior.variance(), fit.posterior.variance())
    assert loaded.attach(log_density, data=1.0).diagnose(progress=False).at_maximum
