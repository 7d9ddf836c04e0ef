"""Sobol points: the sequence that everyone knows, scrambled so that means are unbiased, in any number of dimensions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import registry
from quenched.draws import CHECK_BLOCK, Purpose, check_draws, generator
from quenched.draws.sobol import _BITS, MOST_COORDINATES, _points, normal_quantile, sobol_normals

seeds = st.integers(0, 2**31)


@pytest.mark.parametrize("dim", [1, 2, 40, MOST_COORDINATES])
def test_without_a_scramble_they_are_those_of_scipy(dim):
    ours = _points(256, np.zeros((1, dim, _BITS + 1), np.uint32))[0] / 2.0**_BITS
    np.testing.assert_array_equal(ours, stats.qmc.Sobol(dim, scramble=False, bits=_BITS).random_base2(8))


@registry.law
@given(st.integers(1, 12), st.integers(0, 7), seeds)
def test_every_power_of_two_of_them_is_spread_evenly(dim, power, seed):
    """Along each coordinate one point in each of 2^k equal parts, whatever the scramble."""
    n = 2**power
    uniform = special.ndtr(sobol_normals(n, dim, np.random.default_rng(seed))[0])
    np.testing.assert_array_equal(np.sort(np.floor(uniform * n), axis=0), np.repeat(np.arange(n)[:, None], dim, axis=1))


@registry.law
@given(st.integers(1, 300), st.integers(1, 5), seeds)
def test_fewer_are_the_first_of_more(n, copies, seed):
    made = lambda n: sobol_normals(n, 3, np.random.default_rng(seed), copies)
    np.testing.assert_array_equal(made(n), made(n + 17)[:, :n])


def test_there_may_be_any_number_of_coordinates():
    points = sobol_normals(64, MOST_COORDINATES + 500, np.random.default_rng(0))[0]
    assert points.shape == (64, MOST_COORDINATES + 500)
    np.testing.assert_array_equal(points[:9], sobol_normals(9, points.shape[1], np.random.default_rng(0))[0])
    assert abs(points[:, MOST_COORDINATES:].std() - 1.0) < 0.02


def test_quantiles_are_exact():
    p = (np.arange(0, 2**32, 999_983) + 0.5) / 2.0**32
    np.testing.assert_allclose(normal_quantile(p), special.ndtri(p), rtol=1e-13, atol=1e-15)


def test_blocks_of_check_draws_are_unbiased_and_independent():
    """Of a mean that even spread does not make exact: the errors of blocks do not go together, and vary little."""
    blocks = check_draws(4000 * CHECK_BLOCK, 2, generator(1, Purpose.CHECK)).reshape(4000, CHECK_BLOCK, 2)
    means = np.exp(blocks[..., 0] * blocks[..., 1] / 2.0).mean(axis=1)
    truth = 1.0 / np.sqrt(1.0 - 0.25)
    error = means.std() / np.sqrt(len(means))
    assert abs(means.mean() - truth) < 4.0 * error
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.06
    independent = np.random.default_rng(1).standard_normal(blocks.shape)
    assert means.std() < 0.7 * np.exp(independent[..., 0] * independent[..., 1] / 2.0).mean(axis=1).std()


def test_more_check_draws_go_on_where_the_first_ended():
    random = generator(3, Purpose.CHECK)
    parts = [check_draws(n, 3, random) for n in (2 * CHECK_BLOCK, CHECK_BLOCK, 30)]
    np.testing.assert_array_equal(
        np.concatenate(parts), check_draws(3 * CHECK_BLOCK + 30, 3, generator(3, Purpose.CHECK))
    )
