"""Eight simulated devices in one process: the same fit whatever the layout, the same bits for the same one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import quenched as qd


@pytest.fixture(scope="module")
def found():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    script = Path(__file__).parent / "layouts.py"
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def close(one, other):
    sd = np.sqrt(np.diag(np.reshape(other["covariance"], (len(other["mean"]), -1))))
    np.testing.assert_allclose(one["mean"], other["mean"], atol=1e-6 * sd.min())
    np.testing.assert_allclose(one["covariance"], other["covariance"], rtol=1e-6, atol=1e-6 * sd.min() ** 2)
    assert one["bound"] == pytest.approx(other["bound"], abs=1e-8)
    assert one["check_bound"] == pytest.approx(other["check_bound"], abs=1e-8)
    assert (one["n_draws"], one["n_evaluations"]) == (other["n_draws"], other["n_evaluations"])


def test_every_layout_finds_the_same(found):
    assert found["one"]["status"] == "converged"
    for layout in ("draws", "both", "rows"):
        close(found[layout], found["one"])
        assert found[layout]["settings"]["processes"] == 1
    assert found["one"]["n_draws"] > 64  # the draws have grown, sharded too
    assert found["both"]["settings"]["mesh"] == {"draws": 4, "rows": 2}
    assert found["khat"] < 0.7


def test_the_same_layout_gives_the_same_bits(found):
    assert found["again"] == found["both"]


def test_rows_of_terms_are_sharded(found):
    close(found["sharded terms"], found["terms"])


def test_many_fits_are_shared_by_the_devices(found):
    shared, alone = found["sharded many"], found["many"]
    np.testing.assert_allclose(shared["mean"], alone["mean"], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(shared["bound"], alone["bound"], atol=1e-8)
    assert shared["mesh"] == {"draws": 8}


@pytest.mark.parametrize(
    ("target", "mesh", "word"),
    [
        (lambda w: -0.5 * (w**2).sum(), "eight", "jax.sharding.Mesh"),
        (lambda w: -0.5 * (w**2).sum(), jax.make_mesh((1, 1), ("a", "b")), "'draws' and 'rows'"),
        (qd.from_value_and_grad(lambda w: (0.0, w)), jax.make_mesh((1,), ("draws",)), "executor"),
    ],
)
def test_misuse_is_told(target, mesh, word):
    with pytest.raises(ValueError, match=f"mesh.*{word}"):
        qd.fit(target, np.zeros(2), mesh=mesh, progress=False)
