"""Every noise is a density, and pulls as its derivative says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from quenched.models import cauchy, student_t
from quenched.models.noise import noises, pull, read_noise


@pytest.mark.parametrize("name", noises)
def test_it_integrates_to_one(name):
    with jax.enable_x64(True):
        density = lambda r: float(jnp.exp(noises[name](jnp.asarray(r))))
        total = sum(quad(density, *part, limit=200)[0] for part in ((-np.inf, 0.0), (0.0, np.inf)))
    assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "law"),
    [("cauchy", stats.cauchy()), ("gaussian", stats.norm()), ("laplace", stats.laplace()), ("student_t", stats.t(4))],
)
def test_it_is_the_density_of_its_name(name, law):
    residuals = np.array([-30.0, -2.0, 0.5, 1.0, 8.0])
    with jax.enable_x64(True):
        np.testing.assert_allclose(noises[name](jnp.asarray(residuals)), law.logpdf(residuals), atol=3e-4)


def test_one_degree_of_freedom_is_cauchy():
    residuals = np.linspace(-5.0, 5.0, 11)
    np.testing.assert_allclose(student_t(1.0)(residuals), cauchy(residuals), rtol=1e-5)
    assert student_t(3.0) is student_t(3.0)


def test_pulls_are_known_in_closed_form():
    sizes = np.array([0.01, 1.0, 7.0])
    with jax.enable_x64(True):
        np.testing.assert_allclose(pull(noises["gaussian"], sizes), 1.0)
        np.testing.assert_allclose(pull(cauchy, sizes), 2.0 / (1.0 + sizes**2))
        assert np.isfinite(pull(noises["laplace"], np.zeros(2))).all()
        assert (np.asarray(pull(lambda r: r**2, sizes)) > 0).all()  # not a density, but no reason to divide by zero


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ("cauchi", "'cauchy', 'gaussian', 'laplace', 'student_t'"),
        (3.0, "name or a JAX function"),
        (lambda r: jnp.sum(r), "one finite log density per residual"),
        (lambda r: jnp.log(r), "one finite log density per residual"),
        (lambda r: r @ r, "failed on an array"),
    ],
)
def test_what_is_not_a_noise_is_refused(noise, message):
    with pytest.raises(ValueError, match=message):
        read_noise(noise)


def test_degrees_of_freedom_are_positive():
    with pytest.raises(ValueError, match="degrees=-1"):
        student_t(-1.0)
