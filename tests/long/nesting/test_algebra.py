"""The algebra of bands and borders against dense matrices."""

import jax
import numpy as np
import pytest

from quenched.nesting.algebra import Dense
from quenched.nesting.bordered import bordered
from quenched.nesting.pattern import arrange

LANES = 3


def matrices(order, width, border):
    """Positive definite, with this band and border in this order."""
    random, dim = np.random.default_rng(2), len(order)
    band = dim - border
    i, j = np.indices((dim, dim))
    off = (np.abs(i - j) > width) & (i < band) & (j < band)
    found = []
    for _ in range(LANES):
        root = random.standard_normal((dim, dim))
        ordered = np.where(off, 0.0, root @ root.T)
        ordered += (1.0 - np.linalg.eigvalsh(ordered)[0]) * np.eye(dim)
        matrix = np.empty_like(ordered)
        matrix[np.ix_(order, order)] = ordered
        found.append(matrix)
    return np.array(found)


@pytest.mark.parametrize(("band", "width", "border"), [(7, 2, 3), (5, 0, 2), (6, 1, 0), (0, 0, 4), (3, 4, 2)])
def test_inverse_solution_and_factor_are_those_of_dense_matrices(band, width, border):
    order = np.random.default_rng(1).permutation(band + border)
    algebra, dense = bordered(order, width, border), matrices(order, width, border)
    rows, columns = np.nonzero(dense[0])
    entries = np.zeros((algebra.size, LANES))
    entries[algebra.places(rows, columns)] = dense[:, rows, columns].T
    np.testing.assert_allclose(algebra.to_dense(entries), dense)
    vector = np.random.default_rng(4).standard_normal((band + border, LANES))
    with jax.enable_x64(True):
        inverse = algebra.invert(entries)
        solution = np.asarray(algebra.solve(inverse, vector))
        logs, tilts = algebra.factors(entries)
        along, borders, corner = map(np.asarray, algebra.layout.cut(tilts))
    expected = np.linalg.inv(dense)
    np.testing.assert_allclose(
        np.asarray(inverse.covariance)[algebra.places(rows, columns)], expected[:, rows, columns].T, atol=1e-10
    )
    np.testing.assert_allclose(inverse.log_determinant, np.linalg.slogdet(dense)[1])
    np.testing.assert_allclose(solution, np.einsum("lij,jl->il", expected, vector), atol=1e-10)
    factor = np.zeros_like(dense)
    for i in range(band):
        factor[:, i, i] = 1.0
        near = min(width, band - 1 - i)
        factor[:, i + 1 : i + 1 + near, i] = along[:, i, :near]
        factor[:, band:, i] = borders[:, i]
    factor[:, band:, band:] = corner
    rebuilt = np.einsum("lij,lj,lkj->lik", factor, np.exp(-2.0 * logs), factor)
    np.testing.assert_allclose(rebuilt, dense[:, order][:, :, order], atol=1e-9)


def test_structure_is_found():
    states = np.stack([np.arange(99), np.arange(1, 100), np.full(99, 100)], axis=1)
    chain = arrange(101, [(states, np.ones(states.shape, bool))])
    assert (chain.layout.width, chain.layout.border) == (1, 1)
    crossed = np.stack([np.repeat(np.arange(40), 5), 40 + np.tile(np.arange(5), 40)], axis=1)
    effects = arrange(45, [(crossed, np.ones(crossed.shape, bool))])
    assert (effects.layout.width, effects.layout.border) == (0, 5)
    together = np.tile(np.arange(30), (4, 1))
    assert arrange(30, [(together, np.ones(together.shape, bool))]) == Dense(30)
