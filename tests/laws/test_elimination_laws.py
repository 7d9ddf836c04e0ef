"""Sparse matrices by elimination: the same as dense ones, whatever the graph."""

import numpy as np
import pytest

from quenched.families import factor, kept_factor, make_pattern


def chain(n):
    link = np.arange(n - 1)
    every = np.arange(n)
    return n + 2, np.concatenate([link, every, every]), np.concatenate([link + 1, 0 * every + n, 0 * every + n + 1])


def lattice(k):
    places = np.arange(k * k).reshape(k, k)
    rows = np.concatenate([places[:-1].ravel(), places[:, :-1].ravel()])
    return k * k, rows, np.concatenate([places[1:].ravel(), places[:, 1:].ravel()])


def groups(n):
    return n + 3, np.repeat(np.arange(n), 3), n + np.tile(np.arange(3), n)


def crossed(n, m):
    random = np.random.default_rng(1)
    return n + m, np.repeat(np.arange(n), 6), n + random.integers(0, m, 6 * n)


GRAPHS = {
    "chain": chain(200),
    "lattice": lattice(15),
    "groups": groups(150),
    "crossed": crossed(200, 40),
    "dense": (30, *np.tril_indices(30)),
    "dense, in halves": (301, *np.tril_indices(301)),
    "nothing": (70, np.zeros(0, int), np.zeros(0, int)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_elimination_is_dense_algebra(name):
    dim, rows, columns = GRAPHS[name]
    random = np.random.default_rng(0)
    hubs = np.arange(dim - 2, dim) if name in ("chain", "groups") else ()
    pattern = make_pattern(dim, rows, columns, hubs)
    matrix = np.zeros((dim, dim))
    matrix[rows, columns] = random.standard_normal(len(rows))
    matrix = np.tril(matrix, -1) + np.triu(matrix, 1).T
    matrix = matrix + matrix.T
    matrix += np.diag(np.abs(matrix).sum(axis=1) + random.uniform(0.5, 1.0, dim))
    values = pattern.from_dense(matrix)
    np.testing.assert_allclose(pattern.to_matrix(values).toarray(), matrix)
    found = factor(pattern, values)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(found.log_determinant, np.linalg.slogdet(matrix)[1], rtol=1e-12)
    i, j = pattern.entries
    np.testing.assert_allclose(found.inverse[pattern.entry_places], inverse[i, j], atol=1e-12)
    np.testing.assert_allclose(found.variances, np.diag(inverse), atol=1e-12)
    vectors = random.standard_normal((dim, 3))
    np.testing.assert_allclose(found.solve(vectors), inverse @ vectors, atol=1e-12)
    np.testing.assert_allclose(pattern.multiply(values, vectors), matrix @ vectors, atol=1e-11)
    spread = found.spread(np.eye(dim))
    np.testing.assert_allclose(spread @ spread.T, inverse, atol=1e-12)
    np.testing.assert_allclose(found.unspread(found.spread(vectors)), vectors, atol=1e-10)
    values[pattern.diagonal[0]] = -1.0
    assert factor(pattern, values) is None


def test_half_of_an_inverse_has_the_variances_of_what_rows_see_and_a_factor_is_kept_by_its_numbers():
    random = np.random.default_rng(2)
    matrix, design = random.standard_normal((30, 30)), random.standard_normal((7, 30))
    matrix = matrix @ matrix.T + 30.0 * np.eye(30)
    pattern = make_pattern(30, *np.tril_indices(30))
    values = pattern.from_dense(matrix)
    found = kept_factor(pattern, values)
    half = found.half(design)
    np.testing.assert_allclose(np.sum(half**2, axis=0), np.diag(design @ np.linalg.inv(matrix) @ design.T), rtol=1e-12)
    assert kept_factor(pattern, values.copy()) is found
    assert kept_factor(pattern, 2.0 * values).log_determinant > found.log_determinant + 1.0
    assert kept_factor(pattern, -values) is None


def test_a_chain_and_groups_fill_in_little():
    assert make_pattern(*chain(2000), (2000, 2001)).n_entries < 6 * 2002
    assert make_pattern(*groups(2000), (2000, 2001, 2002)).n_entries < 5 * 2003
