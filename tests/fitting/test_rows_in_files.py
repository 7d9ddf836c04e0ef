"""Rows that are in a file: the fit of rows in memory, and no more of them in memory than a block."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.execute import blocks
from quenched.targets.terms.in_files import mapped

RANDOM = np.random.default_rng([16, 9])
N, DIM = 5000, 4
DESIGN = RANDOM.standard_normal((N, DIM)).astype(np.float32)
LABELS = np.where(RANDOM.random(N) < 1.0 / (1.0 + np.exp(-DESIGN @ np.linspace(-1.0, 1.0, DIM))), 1.0, -1.0)
OPTIONS = {"draws": 16, "check": 32, "progress": False}


def target(design, labels):
    return qd.sum_of(
        qd.each(lambda seen, y: jax.nn.log_sigmoid(y * seen["w"]), labels, sees={"w": qd.dot(design)}),
        qd.each(lambda seen: -0.5 * jnp.sum(seen["w"] ** 2), sees={"w": qd.whole}),
    )


@pytest.fixture
def in_file(tmp_path):
    written = np.memmap(tmp_path / "design", np.float32, "w+", shape=DESIGN.shape)
    written[:] = DESIGN
    return np.memmap(tmp_path / "design", np.float32, "r", shape=DESIGN.shape)


def test_the_fit_of_rows_in_memory(in_file, monkeypatch):
    monkeypatch.setattr(blocks, "_MOST", 1500)  # rows: so that there are several blocks, the last of another size
    start = {"w": np.zeros(DIM)}
    fit = qd.fit(target(in_file, LABELS), start, **OPTIONS)
    own = qd.fit(target(DESIGN, LABELS), start, family="full", **OPTIONS)
    assert fit.settings["rows"] == "in blocks"
    np.testing.assert_allclose(fit.bound, own.bound, atol=1e-6)
    np.testing.assert_allclose(fit.mean["w"], own.mean["w"], atol=1e-5)
    np.testing.assert_allclose(fit.covariance, own.covariance, rtol=1e-3)


def test_iterators_are_written_to_a_file(monkeypatch):
    design = qd.dot(DESIGN[first : first + 1000] for first in range(0, N, 1000)).design
    assert mapped(design) is not None
    np.testing.assert_array_equal(design, DESIGN)
    with pytest.raises(ValueError, match=r"after 10 rows came one of shape \(5, 3\)"):
        qd.dot(block for block in (np.zeros((10, 4)), np.zeros((5, 3))))
    with pytest.raises(ValueError, match="no rows"):
        qd.dot(iter(()))


def test_rows_in_a_file_are_checked(in_file, tmp_path):
    wrong = np.memmap(tmp_path / "design", np.float32, "r+", shape=DESIGN.shape)
    wrong[17, 2] = np.nan
    with pytest.raises(ValueError, match="1 entries that are not finite"):
        qd.dot(in_file)
