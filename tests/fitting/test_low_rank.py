"""A few directions of correlation: exact where the target has no more, and found without a Hessian."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.families import LowRankGaussian
from quenched.fitting.leading import lanczos

RANDOM = np.random.default_rng([4, 8])
DIM, RANK = 30, 3
SDS = np.exp(0.7 * RANDOM.standard_normal(DIM))
LOADINGS = 2.0 * SDS[:, None] * RANDOM.standard_normal((DIM, RANK))
COVARIANCE = np.diag(SDS**2) + LOADINGS @ LOADINGS.T
PRECISION, CENTRE = np.linalg.inv(COVARIANCE), RANDOM.standard_normal(DIM)
EVIDENCE = 0.5 * np.linalg.slogdet(2.0 * np.pi * COVARIANCE)[1]


def gaussian(w):
    return -0.5 * (w - CENTRE) @ PRECISION @ (w - CENTRE)


def test_diagonal_plus_low_rank_is_found_exactly_with_the_fewest_draws(tmp_path):
    fit = qd.fit(gaussian, np.zeros(DIM), family=qd.LowRank(RANK), draws=2 * DIM, progress=False)
    assert fit.settings["family"] == "low rank (3)"
    assert fit.bound == pytest.approx(EVIDENCE, abs=1e-8)
    np.testing.assert_allclose(fit.covariance, COVARIANCE, atol=1e-6)
    np.testing.assert_allclose(fit.posterior.mean, CENTRE, atol=1e-8)
    np.testing.assert_allclose(fit.posterior.marginal([2, 5]).covariance, COVARIANCE[np.ix_([2, 5], [2, 5])], atol=1e-6)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    np.testing.assert_array_equal(loaded.posterior.variance(), fit.posterior.variance())
    assert loaded.posterior.member.rank == RANK


def test_it_is_between_diagonal_and_full():
    """On a target that no few directions hold."""
    design = RANDOM.standard_normal((60, DIM)) + 2.0 * RANDOM.standard_normal((60, 1))
    log_density = lambda w: -jnp.sum(jnp.logaddexp(0.0, design @ w)) - 0.5 * w @ w
    families = ("diagonal", qd.LowRank(1), qd.LowRank(10), "full")
    options = {"draws": qd.matched(4 * DIM, DIM), "progress": False}
    bounds = [qd.fit(log_density, np.zeros(DIM), family=family, **options).bound for family in families]
    assert bounds == sorted(bounds)
    assert bounds[1] > bounds[0] + 0.5


def test_without_second_derivatives_it_starts_along_the_leading_directions():
    """A function on the host that has a gradient; the mode is not looked for where there are many parameters."""
    from quenched.draws import make
    from quenched.fitting.leading import along_curvature
    from quenched.objective import Objective, make_problem
    from quenched.targets import read_model
    from quenched.transforms import describe_space

    target = qd.from_value_and_grad(lambda w: (float(gaussian(w)), -PRECISION @ (w - CENTRE)))
    problem = make_problem(read_model(target, np.zeros(DIM)).target, describe_space(np.zeros(DIM))[0], None, None)
    family, draws = qd.LowRank(RANK), make("matched", 2 * DIM, DIM, 0)
    plain = family.isotropic(CENTRE, np.diag(PRECISION) ** -0.5, (DIM,))
    member, n_gradients = along_curvature(problem, family, plain, problem.hyper, seed=0)
    assert isinstance(member, LowRankGaussian)
    assert n_gradients <= 2 * (4 * RANK + 30)
    before, after = (Objective(problem, draws).bound(one, problem.hyper, profile=False)[0] for one in (plain, member))
    assert after > before + 0.8 * (EVIDENCE - before)


def test_lanczos_finds_both_ends():
    values = np.concatenate([[1e-3, 0.02], np.linspace(0.8, 1.2, 76), [30.0, 100.0]])
    basis = np.linalg.qr(np.random.default_rng(3).standard_normal((80, 80)))[0]
    matrix = (basis * values) @ basis.T
    found, vectors = lanczos(lambda vector: matrix @ vector, 80, 40, np.random.default_rng(0))
    np.testing.assert_allclose(found[[0, 1, -2, -1]], values[[0, 1, -2, -1]], rtol=1e-6)
    np.testing.assert_allclose(matrix @ vectors[:, 0], values[0] * vectors[:, 0], atol=1e-6)
    diagonal, _ = lanczos(lambda vector: vector, 5, 5, np.random.default_rng(0))  # used up at once
    np.testing.assert_allclose(diagonal, 1.0)


def test_very_many_parameters_are_of_low_rank_unless_told_otherwise():
    dim = 2100
    log_density = lambda w: -0.5 * jnp.sum(w**2) - 0.5 * jnp.sum(w) ** 2 / dim * 9.0
    fit = qd.fit(log_density, np.zeros(dim), draws=64, check=64, progress=False)
    assert fit.settings["family"] == "low rank (10)"
    assert "low rank (10)" in str(fit)
    assert "overrules" in fit.verdict
    np.testing.assert_allclose(fit.posterior.of(np.full(dim, dim**-0.5)).sd, 10.0**-0.5, rtol=1e-2)
    with pytest.raises(ValueError, match="rank=0"):
        qd.LowRank(0)


def test_a_density_without_any_curvature_is_refused_in_our_words():
    """Products with a Hessian that is zero lead nowhere, and from there on in other directions."""
    values, directions = lanczos(np.zeros_like, 5, 5, np.random.default_rng(0))
    np.testing.assert_array_equal(values, 0.0)
    np.testing.assert_allclose(directions.T @ directions, np.eye(5), atol=1e-12)
    with pytest.raises(qd.FitError, match="does not fall off"):
        qd.fit(lambda w: 0.0 * w[0], np.zeros(3), family=qd.LowRank(1), progress=False)


def test_a_stretch_that_has_underflown_is_no_number_and_no_exception():
    """As in compiled programs; a stream that runs away is then told so."""
    member = qd.LowRank(2).isotropic(np.zeros(4), np.ones(4), (4,))
    member = replace(member, log_stretch=np.array([0.0, -1000.0]))
    with np.errstate(all="ignore"):
        assert not np.isfinite(member.moved(member).tilt).all()
        assert np.isnan(member.standardise(np.ones((1, 4)))).any()
