"""No number of a result is computed in 32 bits, whatever the family and whatever JAX is set to where it is asked for.

Posteriors a hundred million away from zero and a thousandth wide: numbers of 32 bits are 8 apart there, thousands of
standard deviations, and those of 64 bits 1e-8.
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import quenched as qd
import registry
from quenched.draws import Purpose, generator
from quenched.families import LowRankGaussian

START = {"v": 0.0, "w": np.array([1e8, -1e8])}
OPTIONS = {"draws": 16, "progress": False}

every_family = pytest.mark.parametrize("name", sorted(registry.FAMILIES))
few = settings(registry.law, max_examples=2)
centres = st.lists(st.floats(-3.5, 3.5), min_size=2, max_size=2).map(lambda away: START["w"] + away)
sds = st.lists(st.floats(5e-4, 2e-3), min_size=2, max_size=2).map(np.array)


def far_and_narrow(parameters, data):
    away = (parameters["w"] - data["centre"]) / data["sd"]
    return -0.5 * jnp.sum(away**2) - 0.5 * parameters["v"] ** 2


def away(parameters, data):
    """From the truth, in standard deviations: (..., 3)."""
    v, w = np.asarray(parameters["v"]), np.asarray(parameters["w"])
    assert v.dtype == w.dtype == np.float64
    return np.concatenate([v[..., None], (w - data["centre"]) / data["sd"]], axis=-1)


def assert_true(fit, data):
    """Moments, covariance, samples and density are those of the target."""
    exact, wide = np.append(0.0, data["centre"]), np.append(1.0, data["sd"])
    np.testing.assert_allclose(away(fit.mean, data), 0.0, atol=1e-3)
    np.testing.assert_allclose(np.append(fit.sd["v"], fit.sd["w"]), wide, rtol=1e-3)
    np.testing.assert_allclose((fit.posterior.mean - exact) / wide, 0.0, atol=1e-3)
    np.testing.assert_allclose(fit.covariance / np.outer(wide, wide), np.eye(3), atol=2e-3)
    z = generator(5, Purpose.SAMPLES).standard_normal((7, 3))
    samples = away(fit.sample(7, seed=5), data)
    if isinstance(fit.posterior.member, LowRankGaussian):  # turned by its directions
        samples, z_seen = (np.linalg.norm(rows, axis=1) for rows in (samples, z))
    else:
        z_seen = z
    np.testing.assert_allclose(samples, z_seen, atol=1e-2)
    points = exact + wide * z
    expected = stats.norm.logpdf(z).sum(axis=1) - np.log(wide).sum()
    np.testing.assert_allclose(fit.posterior.log_density(points), expected, atol=2e-2)
    for leaf in jax.tree.leaves(fit.posterior.member):
        assert isinstance(leaf, np.ndarray)
        assert leaf.dtype == np.float64


@every_family
@few
@given(centres, sds)
def test_one_fit(name, centre, sd):
    """Made, resumed, loaded, and resumed from what was loaded."""
    data, family = {"centre": centre, "sd": sd}, registry.FAMILIES[name](3)
    with jax.enable_x64(False), tempfile.TemporaryDirectory() as folder:
        fit = qd.fit(far_and_narrow, START, data=data, family=family, **OPTIONS)
        assert_true(fit, data)
        loaded = qd.load(fit.save(Path(folder) / "fit.npz"))
        assert_true(loaded, data)
        for earlier in (fit, loaded):
            assert_true(qd.fit(far_and_narrow, earlier, data=data, family=family, **OPTIONS), data)


@every_family
@few
@given(centres, sds)
def test_many_fits(name, centre, sd):
    each = [{"centre": centre, "sd": sd}, {"centre": centre + 1.0, "sd": 2.0 * sd}]
    data = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    with jax.enable_x64(False), tempfile.TemporaryDirectory() as folder:
        fits = qd.fit_many(far_and_narrow, START, data, family=registry.FAMILIES[name](3), **OPTIONS)
        for many in (fits, qd.load(fits.save(Path(folder) / "fits.npz"))):
            np.testing.assert_allclose(away(many.mean, data), 0.0, atol=1e-3)
            np.testing.assert_allclose(many.sd["w"], data["sd"], rtol=1e-3)
            np.testing.assert_allclose(many.covariance[:, [1, 2], [1, 2]], data["sd"] ** 2, rtol=2e-3)
            for one, own in zip(many, each, strict=True):
                assert_true(one, own)


@every_family
@few
@given(centres, sds)
def test_diagnosis(name, centre, sd):
    data = {"centre": centre, "sd": sd}
    with jax.enable_x64(False):
        fit = qd.fit(far_and_narrow, START, data=data, family=registry.FAMILIES[name](3), **OPTIONS)
        np.testing.assert_allclose(away(fit.mean, data), 0.0, atol=1e-3)  # kept from here on, for the diagnosis too
        reweighted = fit.diagnose(replicates=2, samples=400, progress=False).reweighted
        np.testing.assert_allclose(away(reweighted.mean, data), 0.0, atol=1e-2)
        np.testing.assert_allclose(reweighted.sd["w"], sd, rtol=1e-2)
        samples = away(fit.resample(500), data)
        assert np.abs(samples).max() < 6.0
        np.testing.assert_allclose(samples.std(axis=0), 1.0, atol=0.2)
