"""Log densities that nobody should have to fit, by every family and every way to fit."""

import numpy as np
import pytest

import hostile_densities
import quenched as qd
from hostile_densities import DENSITIES, NAMES, complaint, log_density, options, start
from quenched.trust import Trust

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of arithmetic with such numbers
FINITE = [name for name in NAMES if "nan" not in name and "infinite" not in name]


@pytest.mark.parametrize("family", ["diagonal", "warped"])
@pytest.mark.parametrize("name", NAMES)
def test_a_fit_ends_as_it_must(name, family):
    assert complaint(name, hostile_densities.fit(name, family=family)) == ""


@pytest.mark.parametrize("name", NAMES)
def test_laplace_is_right_or_in_doubt(name):
    found = qd.laplace(log_density, start(name), **options(name))
    density = DENSITIES[name]
    if density.ending == "right":
        assert found.converged
        np.testing.assert_allclose(found.mean, density.mean, atol=0.02 * density.sd)
        np.testing.assert_allclose(found.sd, density.sd, rtol=0.02)
    else:
        assert found.answer.trust is not Trust.BOTH or density.ending == "any"


def test_many_fits_end_as_single_ones_do():
    """Side by side in one program: none spoils another. Branches that are not taken have gradients too, and these are finite."""
    which = np.array([NAMES.index(name) for name in FINITE], np.int32)
    starts = np.stack([start(name) for name in FINITE])
    with pytest.warns(UserWarning, match="fits failed"):
        fits = qd.fit_many(log_density, starts, which, own_starts=True, progress=False)
    for name, found in zip(FINITE, fits, strict=True):
        if DENSITIES[name].ending == "failed":
            assert not found.converged, name
        elif DENSITIES[name].ending == "right":
            assert complaint(name, found) == ""


def test_nested_draws_name_what_is_improper():
    """Above a field that is fine, a parameter that nothing holds."""
    import jax.numpy as jnp

    def target(p):
        return -0.5 * jnp.sum((p["field"] - 1.0) ** 2) + 0.0 * p["scale"]

    found = qd.nested(target, {"field": np.zeros(2), "scale": 0.0}, outer=["scale"], throw=False, progress=False)
    assert found.answer.trust is not Trust.BOTH
