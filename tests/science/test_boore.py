"""The forward model: reference values, gradients, limits."""

import csv
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched.science import Medium, boore, corner_frequency, fourier_amplitude

TYPICAL = {"stress_drop": 100.0, "spreading": 1.0, "quality": 200.0, "kappa0": 0.04}


@pytest.fixture
def reference():
    folder = os.environ.get("QUENCHED_DATA")
    if not folder:
        pytest.skip("QUENCHED_DATA is not set: the reference values are not at hand")
    with (Path(folder) / "groundmotion/reference_fas.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def test_all_reference_values_to_ten_digits(reference):
    r = reference
    assert len(r["Mw"]) == 3456
    parameters = {
        "stress_drop": r["dsigma_bar"],
        "spreading": r["eta"],
        "quality": r["Q"],
        "kappa0": r["kappa0_s"],
    }
    with jax.enable_x64(True):
        amplitude = np.asarray(fourier_amplitude(r["Mw"], r["R_km"], r["frequency_hz"], **parameters))
        corner = np.asarray(corner_frequency(r["Mw"], r["dsigma_bar"]))
    np.testing.assert_allclose(amplitude, r["fas_cm_s"], rtol=1e-10)
    np.testing.assert_allclose(corner, r["fc_hz"], rtol=1e-10)


def test_the_documented_value():
    with jax.enable_x64(True):
        assert float(fourier_amplitude(6.0, 30.0, 1.0, **TYPICAL)) == pytest.approx(6.58646, rel=1e-6)
        assert float(corner_frequency(6.0, 100.0)) == pytest.approx(0.355575, rel=1e-6)


def test_single_precision_neither_overflows_nor_loses_the_spectrum():
    with jax.enable_x64(False):
        assert float(fourier_amplitude(8.0, 30.0, 1.0, **TYPICAL)) > 0
        assert float(fourier_amplitude(6.0, 30.0, 1.0, **TYPICAL)) == pytest.approx(6.58646, rel=1e-4)


def test_the_medium_scales_the_level():
    with jax.enable_x64(True):
        deep = fourier_amplitude(6.0, 30.0, 1.0, **TYPICAL, medium=Medium(free_surface=1.0))
        assert 2 * float(deep) == pytest.approx(6.58646, rel=1e-6)


@pytest.mark.parametrize("ends", [(1.0, 0.5, 20.0, 0.001), (1000.0, 2.0, 3000.0, 0.1), (1.0, 2.0, 20.0, 0.1)])
@pytest.mark.parametrize("point", [(4.0, 2.0, 0.1), (8.0, 500.0, 50.0), (5.5, 80.0, 5.0)])
def test_gradients_are_finite_at_the_bounds_and_agree_with_differences(ends, point):
    with jax.enable_x64(True):

        def log_amplitude(w):
            return boore.log_amplitude(boore.terms(*map(jnp.asarray, point)), *w)  # amplitudes themselves may underflow

        w = jnp.array(ends)
        gradient = np.asarray(jax.grad(log_amplitude)(w))
        steps = 1e-6 * w
        shifted = [float(log_amplitude(w.at[i].add(s)) - log_amplitude(w.at[i].add(-s))) for i, s in enumerate(steps)]
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(gradient * 2 * np.asarray(steps), shifted, rtol=1e-4, atol=1e-11)
