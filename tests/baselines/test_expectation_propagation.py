"""Expectation propagation against others' (GPy 1.15.0), an exact Gaussian model, and quadrature in one dimension."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jax.scipy.stats import norm
from scipy.stats import multivariate_normal

import quenched as qd
from quenched.baselines import expectation_propagation


def probit(seen, label):
    return norm.logcdf(label * seen["w"])


def standard(seen):
    return norm.logpdf(seen["w"])


def noisy(seen, y):
    return norm.logpdf(y, seen["w"], 0.5)


def sequential(kernel, labels):
    """Means and sds by algorithm 3.5 of Rasmussen and Williams (2006), site after site with closed-form moments."""
    n, covariance, mean = len(labels), kernel.copy(), np.zeros(len(labels))
    tau, nu = np.zeros(n), np.zeros(n)
    for _ in range(60):
        for i in range(n):
            cavity = 1.0 / covariance[i, i] - tau[i]
            shift = mean[i] / covariance[i, i] - nu[i]
            centre, spread = shift / cavity, 1.0 / cavity
            z = labels[i] * centre / np.sqrt(1.0 + spread)
            ratio = scipy.stats.norm.pdf(z) / scipy.stats.norm.cdf(z)
            tilted_mean = centre + labels[i] * spread * ratio / np.sqrt(1.0 + spread)
            tilted = spread - spread**2 * ratio / (1.0 + spread) * (z + ratio)
            change = 1.0 / tilted - cavity - tau[i]
            tau[i], nu[i] = tau[i] + change, tilted_mean / tilted - shift
            column = covariance[:, i].copy()
            covariance -= change / (1.0 + change * column[i]) * np.outer(column, column)
            mean = covariance @ nu
    return mean, np.sqrt(np.diag(covariance))


def test_probit_gaussian_process_agrees_with_gpy_and_with_sites_in_turn():
    """GPClassification(RBF(variance=2.25, lengthscale=0.8)) of GPy 1.15.0 on these inputs, where its sites move by 1e-6."""
    inputs = np.linspace(-2.0, 2.0, 12)[:, None]
    labels = np.array([1.0, -1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1])
    kernel = 2.25 * np.exp(-0.5 * (inputs - inputs.T) ** 2 / 0.8**2) + 1e-8 * np.eye(12)
    root = np.linalg.cholesky(kernel)
    target = qd.sum_of(qd.each(probit, labels, sees={"w": qd.dot(root)}), qd.each(standard, sees={"w": qd.each_entry}))
    fit = expectation_propagation(target, {"w": np.zeros(12)}, progress=False)
    assert fit.converged
    assert fit.settings["log_evidence"] == pytest.approx(-7.538700823307372, abs=1e-7)
    means, sds = root @ fit.mean["w"], np.sqrt(np.diag(root @ fit.covariance @ root.T))
    np.testing.assert_allclose((means, sds), sequential(kernel, labels), atol=1e-7)
    np.testing.assert_allclose(means[[0, 3, 11]], [0.08786823, -1.67392308, -0.97112794], atol=1e-4)
    np.testing.assert_allclose(sds[[0, 3, 11]], [0.85504407, 0.85254679, 0.90737184], atol=1e-4)


def test_a_gaussian_model_is_exact():
    design = np.array([[1.0, 0.3], [0.2, -1.0], [0.5, 0.5]])
    y = np.array([0.4, -0.2, 1.1])
    target = qd.sum_of(qd.each(noisy, y, sees={"w": qd.dot(design)}), qd.each(standard, sees={"w": qd.each_entry}))
    fit = expectation_propagation(target, {"w": np.zeros(2)}, progress=False)
    exact = multivariate_normal(np.zeros(3), design @ design.T + 0.25 * np.eye(3)).logpdf(y)
    assert fit.settings["log_evidence"] == pytest.approx(exact, abs=1e-9)


def test_one_term_has_the_moments_of_the_integral():
    target = qd.sum_of(
        qd.each(lambda seen, y: -jnp.logaddexp(0.0, -y * seen["w"]), [4.0], sees={"w": [0]}),
        qd.each(standard, sees={"w": qd.each_entry}),
    )
    fit = expectation_propagation(target, {"w": np.zeros(1)}, progress=False)
    grid = np.linspace(-9.0, 9.0, 20_001)
    weights = np.exp(-0.5 * grid**2) / np.sqrt(2.0 * np.pi) / (1.0 + np.exp(-4.0 * grid))
    mass = np.trapezoid(weights, grid)
    mean = np.trapezoid(weights * grid, grid) / mass
    assert fit.settings["log_evidence"] == pytest.approx(np.log(mass), abs=1e-6)
    assert fit.mean["w"][0] == pytest.approx(mean, abs=1e-5)


def test_unknown_terms_are_refused():
    with pytest.raises(ValueError, match="needs known terms"):
        expectation_propagation(lambda w: -jnp.sum(w**2), np.zeros(2))


def test_corrected_marginals_are_nearer_to_quadrature():
    """Two weights, three probit cases: corrected one factor at a time (Cseke and Heskes 2011), against a grid."""
    design, labels = np.array([[2.0, 0.5], [1.5, -1.0], [0.5, 2.0]]), np.array([1.0, 1.0, -1.0])
    target = qd.sum_of(
        qd.each(probit, 3.0 * labels, sees={"w": qd.dot(design)}), qd.each(standard, sees={"w": qd.each_entry})
    )
    fit = expectation_propagation(target, {"w": np.zeros(2)}, correct=True, progress=False)
    side = np.linspace(-6.0, 6.0, 401)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    log_density = -0.5 * np.sum(grid**2, axis=-1) + np.sum(
        scipy.stats.norm.logcdf(3.0 * labels * (grid @ design.T)), axis=-1
    )
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = np.einsum("ij,ijk->k", weights, grid)
    sd = np.sqrt(np.einsum("ij,ijk->k", weights, (grid - mean) ** 2))
    skewness = np.einsum("ij,ijk->k", weights, ((grid - mean) / sd) ** 3)
    found = fit.settings["corrected"]
    assert found["name"] == ["w[0]", "w[1]"]
    np.testing.assert_allclose(found["mean"], mean, atol=0.02)
    assert np.abs(np.array(found["sd"]) - sd).max() < 0.2 * np.abs(fit.sd["w"] - sd).max()
    np.testing.assert_allclose(found["skewness"], skewness, atol=0.1)
