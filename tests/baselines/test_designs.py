"""Designs and skew normals of nested Laplace against integrals that are known."""

import numpy as np
import pytest
import scipy.stats

from quenched.baselines.designs import composite, corners, grid, rotated
from quenched.baselines.skew_normal import mixed, parameters
from quenched.nesting import ThirdOrder


def gaussian(m):
    """Mean, covariance and log density with an integral of exp(1.5)."""
    random = np.random.default_rng(m)
    mean, root = random.standard_normal(m), random.standard_normal((m, m)) + 2.0 * np.eye(m)
    law = scipy.stats.multivariate_normal(mean, root @ root.T)
    return mean, root @ root.T, lambda points: np.atleast_1d(law.logpdf(points)) + 1.5


@pytest.mark.parametrize(("make", "m"), [(composite, 1), (composite, 3), (composite, 6), (grid, 1), (grid, 2)])
def test_a_gaussian_is_integrated(make, m):
    mean, covariance, log_densities = gaussian(m)
    found = make(rotated(mean, covariance, float(log_densities(mean[None])[0])), log_densities)
    exactly = {"abs": 1e-9} if make is composite else {"abs": 5e-3}
    assert found.log_evidence == pytest.approx(1.5, **exactly)
    np.testing.assert_allclose(found.weights @ found.points, mean, atol=1e-3)
    away = found.points - found.weights @ found.points
    np.testing.assert_allclose((found.weights[:, None] * away).T @ away, covariance, rtol=5e-3, atol=5e-3)
    np.testing.assert_allclose(
        [float(found.log_density(point)) for point in found.points[:4]], log_densities(found.points[:4]), atol=1e-4
    )


def test_half_axes_are_stretched():
    """The logarithm of a gamma variable has a longer lower tail."""
    law, top = scipy.stats.loggamma(4.0), np.log(4.0)
    log_densities = lambda points: law.logpdf(points[:, 0])
    axes = rotated(np.array([top]), np.array([[0.25]]), float(law.logpdf(top)))
    by_grid, by_composite = grid(axes, log_densities), composite(axes, log_densities)
    assert by_grid.log_evidence == pytest.approx(0.0, abs=2e-3)
    assert by_composite.log_evidence == pytest.approx(0.0, abs=0.03)
    assert by_composite.halves[0, 0] > 1.0 > by_composite.halves[0, 1]
    for found, near in ((by_grid, 2e-3), (by_composite, 0.05)):
        assert found.weights @ found.points[:, 0] == pytest.approx(law.mean(), abs=near)
    at = np.linspace(law.ppf(1e-3), law.ppf(1.0 - 1e-3), 7)
    np.testing.assert_allclose([float(by_grid.log_density(np.array([x]))) for x in at], law.logpdf(at), atol=0.02)


def test_corners_are_few_and_of_resolution_five():
    assert [len(corners(m)) for m in (2, 4, 5, 6, 8)] == [4, 16, 16, 32, 64]
    columns = corners(8)
    pairs = np.stack([columns[:, i] * columns[:, j] for i in range(8) for j in range(i)], axis=1)
    everything = np.concatenate([np.ones((64, 1)), columns, pairs], axis=1)
    np.testing.assert_array_equal(everything.T @ everything, 64.0 * np.eye(everything.shape[1]))


def test_too_large_a_grid_is_refused():
    mean, covariance, log_densities = gaussian(4)
    with pytest.raises(ValueError, match='use design="composite"'):
        grid(rotated(mean, covariance, float(log_densities(mean[None])[0])), log_densities)


def test_skew_normals_have_the_moments_that_were_asked_for():
    for skewness in (-0.9, 0.0, 0.3):
        location, scale, slant = (float(part) for part in parameters(np.float64(skewness)))
        moments = scipy.stats.skewnorm(slant, location, scale).stats("mvs")
        np.testing.assert_allclose([float(part) for part in moments], [0.0, 1.0, skewness], atol=1e-10)


def test_a_mixture_has_the_moments_of_its_samples():
    means, sds, skewness, weights = np.array([[0.0, 1.0]]), np.array([[1.0, 0.5]]), np.array([[0.5, -0.8]]), [0.3, 0.7]
    mean, sd, skew, *quantiles = (float(part[0]) for part in mixed(ThirdOrder(means, sds, skewness), np.array(weights)))
    location, scale, slant = parameters(skewness[0])
    parts = [
        means[0, k] + sds[0, k] * scipy.stats.skewnorm(slant[k], location[k], scale[k]).rvs(n, random_state=k)
        for k, n in enumerate((300_000, 700_000))
    ]
    samples = np.concatenate(parts)
    assert (mean, sd, skew) == pytest.approx((samples.mean(), samples.std(), scipy.stats.skew(samples)), abs=0.01)
    np.testing.assert_allclose(quantiles, np.quantile(samples, [0.05, 0.5, 0.95]), atol=0.01)
