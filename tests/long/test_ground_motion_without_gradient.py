"""The ground-motion model as a simulator: the same posterior without its gradient."""

import jax
import numpy as np
import pytest

import quenched as qd
from quenched.science import GroundMotion, fourier_amplitude


def simulate():
    rng = np.random.default_rng([3, 14])
    stress, magnitude = np.array([40.0, 90.0, 200.0]), np.array([4.8, 5.6, 6.3])
    grid = np.meshgrid(np.arange(3), [15.0, 45.0, 90.0, 140.0], np.geomspace(0.2, 25.0, 25), indexing="ij")
    event, distance, frequency = (part.ravel() for part in grid)
    parameters = {"spreading": 1.1, "quality": 250.0, "kappa0": 0.03, "stress_drop": stress[event]}
    with jax.enable_x64(True):
        amplitude = np.asarray(fourier_amplitude(magnitude[event], distance, frequency, **parameters))
    noisy = amplitude * np.exp(0.2 * rng.standard_normal(len(event)))
    return {"event": event, "Mw": magnitude[event], "R": distance, "f": frequency, "fas": noisy}


def without_gradient(log_density, start, *, data, **options):
    compiled, data = jax.jit(log_density), jax.tree.map(np.asarray, data)

    def simulator(parameters):
        with jax.enable_x64(True):
            return float(compiled(parameters, data))

    return qd.fit(qd.from_value(simulator), start, **options)


def test_the_posterior_without_the_gradient_is_the_one_with_it():
    table = simulate()
    known, found = (GroundMotion().fit(table, using=using, progress=False).fit_ for using in (qd.fit, without_gradient))
    sd = np.sqrt(known.posterior.variance())
    assert (np.abs(found.posterior.mean - known.posterior.mean) / sd).max() < 0.05
    np.testing.assert_allclose(np.sqrt(found.posterior.variance()), sd, rtol=0.05)
    assert found.bound == pytest.approx(known.bound, abs=1e-3)
    assert 3_000 < found.settings["calls"] < 20_000
