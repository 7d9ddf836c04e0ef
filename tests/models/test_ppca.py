"""PPCA in closed form against dense Gaussians, and against what it refuses."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA

from quenched.models import PPCA


def dense(model):
    loadings = model.components_.T
    return loadings @ loadings.T + model.noise_variance_ * np.eye(len(loadings))


def test_scores_are_those_of_the_dense_gaussian(rows):
    model = PPCA(2).fit(rows.clean)
    expected = multivariate_normal(model.mean_, dense(model)).logpdf(rows.new_clean)
    np.testing.assert_allclose(model.score_samples(rows.new_clean), expected, rtol=1e-9)
    assert model.score(rows.new_clean) == pytest.approx(expected.mean())
    assert model.log_likelihood_ == pytest.approx(model.score_samples(rows.clean).sum())


def test_transform_conditions_the_joint_gaussian(rows):
    model = PPCA(2).fit(rows.clean)
    expected = (rows.clean - model.mean_) @ np.linalg.inv(dense(model)) @ model.components_.T
    np.testing.assert_allclose(model.transform(rows.clean), expected, atol=1e-10)


@pytest.mark.parametrize("shape", [(40, 16), (9, 16)], ids=["N > d", "N < d"])
def test_no_neighbour_has_a_higher_likelihood(rows, shape):
    data = rows.clean[: shape[0]]
    best = PPCA(2).fit(data)
    random = np.random.default_rng(0)
    for _ in range(20):
        other = PPCA(2).fit(data)
        other.components_ = best.components_ + 0.01 * random.standard_normal(best.components_.shape)
        other.mean_ = best.mean_ + 0.01 * random.standard_normal(shape[1])
        other.noise_variance_ = best.noise_variance_ * np.exp(0.02 * random.standard_normal())
        assert other.score_samples(data).sum() < best.log_likelihood_


def test_the_plane_is_that_of_principal_components(rows):
    ours, theirs = PPCA(2).fit(rows.clean), PCA(2).fit(rows.clean)
    directions = ours.components_ / np.linalg.norm(ours.components_, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(directions @ theirs.components_.T), np.eye(2), atol=1e-10)
    n = len(rows.clean)
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_ * (n - 1) / n)


def test_more_columns_than_memory_could_square():
    data = np.random.default_rng(0).standard_normal((6, 200_000))
    model = PPCA(2).fit(data)
    assert model.transform(data).shape == (6, 2)
    assert np.isfinite(model.score_samples(data)).all()


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "two"])
def test_components_must_be_a_positive_whole_number(rows, number):
    with pytest.raises(ValueError, match="n_components"):
        PPCA(number).fit(rows.clean)


@pytest.mark.parametrize(("n_rows", "n_components"), [(40, 16), (5, 4)])
def test_components_must_leave_something_for_the_noise(rows, n_rows, n_components):
    with pytest.raises(ValueError, match=r"determine at most (15|3)"):
        PPCA(n_components).fit(rows.clean[:n_rows])


def test_rows_on_a_line_leave_nothing_for_a_second_component():
    line = np.arange(10.0)[:, None] * np.ones(4)
    with pytest.raises(ValueError, match="no variance for the noise"):
        PPCA(2).fit(line)
