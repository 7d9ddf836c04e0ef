"""`import quenched` is light: no optional package, no array, no change of JAX's configuration."""

import json
import subprocess
import sys

import pytest

OPTIONAL = ["matplotlib", "sklearn", "pooch", "arviz", "arviz_base", "pandas", "dask", "torch", "numpyro", "pymc"]

SCRIPT = """
import json, sys
import jax
before = {name: str(value) for name, value in jax.config.values.items()}
import numpy as np
state = np.random.get_state()[1].tolist()
import quenched
after = {name: str(value) for name, value in jax.config.values.items()}
modules = sorted({name.partition(".")[0] for name in sys.modules})
report = {
    "modules": modules,
    "changed": [name for name in after if after[name] != before.get(name)],
    "global_random_state_untouched": state == np.random.get_state()[1].tolist(),
    "n_arrays": len(jax.live_arrays()),
}
fit = quenched.fit(lambda w: -0.5 * ((w - 1.0) ** 2).sum(), np.zeros(2), progress=False)
report["after_fit"] = [name for name in after if str(jax.config.values[name]) != before.get(name)]
report["plain_dtype"] = str(jax.numpy.ones(1).dtype)
report["mean_dtype"] = str(fit.mean.dtype)
report["random_after_fit"] = state == np.random.get_state()[1].tolist()
report["scipy"] = sorted(name for name in ("scipy.linalg", "scipy.sparse", "scipy.stats") if name in sys.modules)
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def report():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", OPTIONAL)
def test_no_optional_package_is_loaded(report, name):
    assert name not in report["modules"]


def test_a_small_fit_needs_no_part_of_scipy(report):
    """Importing them takes as long as importing all of ours, and as long as the fit."""
    assert report["scipy"] == []


def test_no_array_is_made(report):
    assert report["n_arrays"] == 0


def test_the_configuration_of_jax_is_left_alone(report):
    assert report["changed"] == []
    assert report["after_fit"] == []


def test_64_bits_end_with_the_fit(report):
    assert report["plain_dtype"] == "float32"
    assert report["mean_dtype"] == "float64"


def test_global_random_numbers_are_left_alone(report):
    assert report["global_random_state_untouched"]
    assert report["random_after_fit"]
