"""Random streams: one for every seed and purpose, and none that a person's own seed could give."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import quenched as qd
import registry
from quenched.draws import Purpose, generator, stream

seeds = st.integers(0, 2**31)


def of_a_person(seed, n):
    """Normal numbers that a person gets from the same seed."""
    yield np.random.default_rng(seed).standard_normal(n)
    yield np.random.RandomState(seed % 2**32).standard_normal(n)
    yield np.random.Generator(np.random.MT19937(seed)).standard_normal(n)
    yield np.asarray(jax.random.normal(jax.random.key(seed), (n,)))
    for k in range(20):
        yield np.random.default_rng([seed, k]).standard_normal(n)
        yield np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,))).standard_normal(n)


@pytest.mark.parametrize("purpose", Purpose)
@registry.law
@given(seeds)
def test_no_stream_is_one_of_numpys(purpose, seed):
    ours = generator(seed, purpose).standard_normal(8)
    derived = qd.iid(8, 1, stream(seed, purpose)).points[:, 0]
    for theirs in of_a_person(seed, 8):
        for mine in (ours, derived):
            assert not np.isclose(np.abs(mine)[:, None], np.abs(theirs)[None], rtol=1e-6).any()


@pytest.mark.parametrize("kind", sorted(registry.DRAWS))
@registry.law
@given(seeds, st.integers(1, 5))
def test_draws_are_not_the_numbers_of_the_same_seed(kind, seed, dim):
    """Whatever is done to them: mirrored and whitened draws would still be nearly the rows of a design."""
    points = registry.DRAWS[kind](256, dim, seed).points[:128].ravel()
    rows = np.random.default_rng(seed).standard_normal((128, dim)).ravel()
    assert abs(np.corrcoef(points, rows)[0, 1]) < 5.0 / np.sqrt(len(rows))
    if kind == "sobol":
        theirs = stats.qmc.Sobol(dim, scramble=True, rng=np.random.default_rng(seed)).random(128)
        assert not np.allclose(stats.norm.cdf(registry.DRAWS[kind](128, dim, seed).points), theirs, atol=1e-6)


def test_every_seed_and_purpose_has_its_own_stream():
    first = {tuple(generator(seed, purpose).random(2)) for seed, purpose in product(range(20), Purpose)}
    assert len(first) == 20 * len(Purpose)
    derived = {stream(seed, purpose, index) for seed, purpose, index in product(range(20), Purpose, range(3))}
    assert len(derived) == 60 * len(Purpose)
    assert min(derived) > 20


@registry.law
@given(seeds, st.sampled_from(Purpose), st.integers(0, 9))
def test_a_stream_is_the_same_every_time(seed, purpose, index):
    assert generator(seed, purpose).random() == generator(np.int64(seed), purpose).random()
    assert 0 <= stream(seed, purpose, index) == stream(np.int64(seed), purpose, index) < 2**63


@pytest.mark.parametrize("seed", [None, -1, 1.0, True, "0"])
def test_a_seed_is_a_whole_number(seed):
    """None would be another stream on every call."""
    for make in (generator, stream):
        with pytest.raises(ValueError, match=rf"seed={seed!r}: a whole number of at least 0"):
            make(seed, Purpose.SAMPLES)


def test_data_simulated_with_the_seed_of_the_fit_do_not_flatter_it():
    """The draws are not the rows of the design, so the bound is as near its check as with any other seed."""
    random = np.random.default_rng(0)
    design = random.standard_normal((100, 40))
    labels = (random.random(100) < 1.0 / (1.0 + np.exp(-design.sum(axis=1) / 3.0))).astype(float)

    def log_density(w, data):
        x, y = data
        return jnp.sum(y * (x @ w) - jnp.logaddexp(0.0, x @ w)) - 0.5 * jnp.sum(w**2)

    def gap(seed):
        fit = qd.fit(log_density, np.zeros(40), data=(design, labels), seed=seed, draws=200, check=4000, progress=False)
        return fit.gap

    others = [gap(seed) for seed in range(1, 6)]
    assert abs(gap(0) - np.mean(others)) < 5.0 * np.std(others, ddof=1)
