"""A limit on memory: chunks that fit, and a refusal when nothing does."""

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.objective import Chunks, objective

N, DIM = 5000, 3


def log_density(w, data):
    return -0.5 * jnp.sum((data["y"] - jnp.tanh(data["x"] @ w)) ** 2) - 0.5 * jnp.sum(w**2)


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    x = generator.standard_normal((N, DIM))
    return {"x": x, "y": np.tanh(x @ np.ones(DIM)) + generator.standard_normal(N)}


@pytest.fixture
def compiled(monkeypatch):
    """The size of a chunk in every program of the bound, with what that needs besides its inputs and outputs."""
    programs = []
    program = objective._slope

    def noted(effort, *inputs):
        compiled = program._compiled(effort).lower(*inputs).compile()
        chunks = next(one for one in inputs if isinstance(one, Chunks))
        programs.append((chunks.counts.shape[1], compiled.memory_analysis().temp_size_in_bytes))
        return program(effort, *inputs)

    monkeypatch.setattr(objective, "_slope", noted)
    return programs


def test_chunks_stay_below_the_limit(data, compiled):
    limit = 2_000_000
    method = qd.Joint(max_evaluations=1)
    fit = qd.fit(log_density, np.zeros(DIM), data=data, draws=400, memory=limit, check=2, method=method, progress=False)
    sizes, needed = zip(*compiled, strict=True)
    assert max(sizes) < 64  # all 400 at once would need tens of megabytes
    assert max(needed) <= limit
    assert fit.n_draws == 400


def test_less_memory_means_smaller_chunks(data, compiled):
    largest = []
    for limit in (1_000_000, 4_000_000):
        compiled.clear()
        options = {"memory": limit, "check": 2, "method": qd.Joint(max_evaluations=1), "progress": False}
        qd.fit(log_density, np.zeros(DIM), data=data, draws=400, **options)
        largest.append(max(size for size, _ in compiled))
    assert 1 <= largest[0] < largest[1]


@pytest.mark.parametrize(("memory", "left"), [(50_000, r"\d.*"), (1, "0")])
def test_a_limit_that_nothing_fits_is_refused_with_the_numbers(data, memory, left):
    with pytest.raises(ValueError, match=rf"memory: one draw needs up to .* bytes .* and {left} are left; allow more"):
        qd.fit(log_density, np.zeros(DIM), data=data, memory=memory, progress=False)


def test_growth_respects_the_limit(data):
    """Draws that would not fit are not grown."""
    few = {name: value[:20] for name, value in data.items()}
    options = {"data": few, "tolerance": 1e-9, "check": 200, "max_draws": 1024, "progress": False}
    assert qd.fit(log_density, np.zeros(DIM), **options).n_draws == 1024
    assert 64 <= qd.fit(log_density, np.zeros(DIM), memory=100_000, **options).n_draws <= 256
