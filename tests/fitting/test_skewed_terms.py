"""Sums of terms whose coordinates are skewed, each by a map of its own: nearer to the target, and given back where not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import quenched as qd
from quenched.draws import term_draws
from quenched.families import Sparse, SparseGaussian, StretchedGaussian
from quenched.fitting.progress import Watcher
from quenched.fitting.variational_newton import variational_newton
from quenched.projected import ProjectedBound
from quenched.results import rows_of

GROUPS = 320  # more than a dense warped posterior is tried for
GROUP = np.repeat(np.arange(GROUPS), 2)
COUNTS = np.random.default_rng([7, 7]).poisson(0.6, 2 * GROUPS).astype(float)
LEVELS = np.array([0.05, 0.5, 0.95])
COUPLED = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, -0.4], [0.0, -0.4, 1.0]])


def count(seen, row):
    return row * seen["u"] - jnp.exp(seen["u"])


def few_counts():
    prior = lambda seen: norm.logpdf(seen["u"], -0.5, 0.9)
    return qd.sum_of(qd.each(count, COUNTS, sees={"u": GROUP}), qd.each(prior, sees={"u": qd.each_entry}))


def truth():
    """Log evidence, means, sds and quantiles of the groups by quadrature."""
    grid = np.linspace(-8.0, 4.0, 3001)
    total = np.bincount(GROUP, COUNTS)[:, None]
    values = total * grid - 2.0 * np.exp(grid) - 0.5 * ((grid + 0.5) / 0.9) ** 2 - np.log(0.9 * np.sqrt(2.0 * np.pi))
    weights = np.exp(values) * (grid[1] - grid[0])
    evidence, weights = np.sum(np.log(weights.sum(axis=1))), weights / weights.sum(axis=1, keepdims=True)
    mean = weights @ grid
    sd = np.sqrt(weights @ grid**2 - mean**2)
    quantiles = np.array([np.interp(LEVELS, np.cumsum(row), grid) for row in weights]).T
    return evidence, mean, sd, quantiles


@pytest.fixture(scope="module")
def fit():
    return qd.fit(few_counts(), {"u": np.zeros(GROUPS)}, family="auto", progress=False)


def test_few_counts_have_skewed_posteriors_and_the_skewed_family_finds_them(fit):
    assert fit.converged
    assert fit.settings["family"] == "sparse warped"
    evidence, mean, sd, quantiles = truth()
    gaussian = qd.fit(few_counts(), {"u": np.zeros(GROUPS)}, progress=False)
    assert evidence - gaussian.bound > 2.0
    assert 0.0 < evidence - fit.bound < 0.1
    np.testing.assert_allclose(fit.mean["u"], mean, atol=0.002)
    np.testing.assert_allclose(fit.sd["u"], sd, rtol=0.002)
    assert np.abs(gaussian.sd["u"] / sd - 1.0).max() > 0.02
    found = np.array([[row[name] for name in ("5%", "50%", "95%")] for row in rows_of(fit)]).T
    assert np.abs((found - quantiles) / sd).max() < 0.02


def test_it_can_be_asked_as_any_other(fit, tmp_path):
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    np.testing.assert_array_equal(loaded.posterior.variance(), fit.posterior.variance())
    assert loaded.attach(few_counts()).origin is not None
    assert "u[0]" in str(fit.summary())
    mean, covariance = fit.posterior.marginal(["u[3]", "u[7]"])
    np.testing.assert_allclose(mean, fit.mean["u"][[3, 7]])
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), fit.sd["u"][[3, 7]])
    diagnosis = fit.diagnose(replicates=2, samples=200, progress=False)
    assert diagnosis.optimisation_error < 0.01
    response = diagnosis.linear_response.of(["u[3]"])
    assert response.sd[0] == pytest.approx(fit.sd["u"][3], rel=0.02)
    again = qd.fit(few_counts(), fit, progress=False)
    assert again.settings["family"] == "sparse warped"
    assert again.bound == pytest.approx(fit.bound, abs=1e-3)
    plain = qd.fit(few_counts(), fit, family="sparse", progress=False)
    assert isinstance(plain.posterior.member, SparseGaussian)


def coupled(*, gaussian=False):
    """Three numbers that meet in pairs, and two that are seen through a design."""
    design = np.array([[1.0, 0.5], [1.0, -1.0], [1.0, 2.0]])
    pairs = np.array([[0, 1], [1, 2]])

    def meet(seen):
        return -0.5 * (seen["u"][0] + 0.6 * seen["u"][1]) ** 2

    def row(seen, y):
        score = seen["u"] + seen["beta"]
        return -0.5 * (y - score) ** 2 if gaussian else y * score - jnp.exp(score)

    return qd.sum_of(
        qd.each(meet, sees={"u": (pairs[:, 0], pairs[:, 1])}),
        qd.each(row, np.array([1.0, 0.0, 2.0]), sees={"u": np.arange(3), "beta": qd.dot(design)}),
        qd.each(lambda seen: norm.logpdf(seen["beta"], 0.0, 0.7), sees={"beta": qd.each_entry}),
        qd.each(lambda seen: norm.logpdf(seen["u"], 0.0, 1.5), sees={"u": qd.each_entry}),
    )


START = {"beta": np.zeros(2), "u": np.zeros(3)}


def raised(bound, member, hyper):
    with Watcher(False, None) as watch:
        return variational_newton(bound, member, hyper, 1e-10, watch)


def test_a_gaussian_is_found_again_from_wherever_it_begins_and_given_back():
    fit = qd.fit(coupled(gaussian=True), START, family=qd.Sparse(warped=True), progress=False)
    assert "no better" in fit.message
    assert np.all(fit.posterior.member.skew == 0.0)
    with jax.enable_x64(True):
        bound = ProjectedBound(fit.origin.problem, term_draws(64, 0), skewed=True)
        away = StretchedGaussian(fit.posterior.member.gaussian, np.array([0.0, 0.0, 0.2, -0.1, 0.15]))
        top = raised(bound, away, fit.origin.hyper)
    assert top.first < fit.bound - 0.01
    np.testing.assert_allclose(top.posterior.skew, 0.0, atol=1e-5)
    assert top.bound == pytest.approx(fit.bound, abs=1e-8)


def test_a_stretched_gaussian_is_a_density_with_the_moments_it_says():
    member = Sparse(warped=True).member(np.array([0.5, -1.0, 2.0]), COUPLED, (3,))
    member = StretchedGaussian(member.gaussian, np.array([0.3, -0.2, 0.0]))
    z = np.random.default_rng(1).standard_normal((100_000, 3))
    points = member.transform(z)
    np.testing.assert_allclose(member.standardise(points[:50]), z[:50], atol=1e-8)
    np.testing.assert_allclose(points.mean(axis=0), member.mean, atol=0.02)
    np.testing.assert_allclose(np.cov(points.T), member.covariance, atol=0.04)
    np.testing.assert_allclose(np.diag(member.covariance), member.variance(), rtol=1e-10)
    np.testing.assert_allclose(member.covariance @ member.mean, member.covariance_times(member.mean[:, None])[:, 0])
    ends = member.margins(np.array([-1.0, 1.0]))
    np.testing.assert_allclose(np.quantile(points, norm.cdf(np.array([-1.0, 1.0])), axis=0), ends, atol=0.02)
    slopes = (member.transform(z[0] + 1e-5 * np.eye(3)) - member.transform(z[0] - 1e-5 * np.eye(3))) / 2e-5
    assert np.linalg.slogdet(slopes)[1] == pytest.approx(float(member.log_slope(z[:1])[0]), abs=1e-6)
    assert -np.mean(member.log_density(points[:20_000])) == pytest.approx(float(member.entropy()), abs=0.03)
    moved = member.shifted(np.ones(3))
    np.testing.assert_allclose(moved.transform(z[:5]), points[:5] + 1.0, atol=1e-12)


def test_auto_tries_skewed_posteriors_of_a_small_sum_too():
    """A sparse Gaussian takes few draws; what may be tried after it is not judged by those."""
    random = np.random.default_rng([5, 12])
    person, item = np.divmod(np.arange(120), 10)
    answers = (random.random(120) < 0.3 + 0.04 * item).astype(float)

    def answer(seen, row):
        score = jnp.exp(seen["slope"]) * (seen["ability"] - seen["difficulty"])
        return row * score - jnp.logaddexp(0.0, score)

    target = qd.sum_of(
        qd.each(answer, answers, sees={"ability": person, "difficulty": item, "slope": item}),
        qd.each(lambda seen: norm.logpdf(seen["ability"]), sees={"ability": qd.each_entry}),
        qd.each(lambda seen: norm.logpdf(seen["difficulty"]), sees={"difficulty": qd.each_entry}),
        qd.each(lambda seen: norm.logpdf(seen["slope"], 0.0, 0.5), sees={"slope": qd.each_entry}),
    )
    start = {"ability": np.zeros(12), "difficulty": np.zeros(10), "slope": np.zeros(10)}
    gaussian, fit = (qd.fit(target, start, family=family, progress=False) for family in (None, "auto"))
    assert fit.settings["family"] in ("sparse warped", "warped")
    assert fit.check_bound > gaussian.check_bound
    assert fit.n_evaluations > gaussian.n_evaluations
