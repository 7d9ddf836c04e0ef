"""Evidence, linear response and resampling against what is known exactly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd
from registry import FAMILIES

# No sample of the posterior sees the neck of a funnel, or the other of two peaks, and so no weight can tell. Of eight
# schools, which are a funnel too, k-hat is below 0.7 in three of eight seeds, and the evidence ten of its errors too low.
UNSEEN = ("funnel", "eight_schools", "two_peaks")
KNOWN = [name for name, p in problems.PROBLEMS.items() if p.evidence is not None and p.dim <= 20 and name not in UNSEEN]


@pytest.mark.parametrize("name", KNOWN)
def test_the_evidence_is_within_its_error(name):
    diagnosis = problems.fitted(name).diagnose(progress=False)
    if diagnosis.khat <= 0.7:
        away = abs(diagnosis.evidence - problems.PROBLEMS[name].evidence)
        assert away <= 4.0 * diagnosis.evidence_error + 1e-6
        assert diagnosis.family_gap >= -4.0 * (diagnosis.evidence_error + diagnosis.fit.check_error) - 1e-6


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dim", [1, 7])
def test_linear_response_has_the_exact_covariance_of_a_gaussian_in_every_family(family, dim):
    problem = problems.gaussian(dim, 50.0)
    fit = problem.fit(family=FAMILIES[family](dim))
    response = fit.diagnose(progress=False).linear_response
    np.testing.assert_allclose(response.covariance, problem.covariance, atol=1e-4 * np.abs(problem.covariance).max())
    np.testing.assert_allclose(response.sd, np.sqrt(np.diag(problem.covariance)), rtol=1e-4)


def test_linear_response_of_a_function_agrees_with_all_parameters():
    problem = problems.logistic_problem(8, 60)
    response = problem.fit(family="diagonal").diagnose(progress=False).linear_response
    weights = np.linspace(-1.0, 1.0, 8)
    one = response.of(lambda w: {"sum": jnp.sum(weights * w), "first": w[0]})
    assert one.sd["sum"] == pytest.approx(np.sqrt(weights @ response.covariance @ weights), rel=1e-3)
    assert one.sd["first"] == pytest.approx(np.sqrt(response.covariance[0, 0]), rel=1e-3)
    assert one.mean["sum"] == pytest.approx(float(weights @ problem.fit(family="diagonal").mean), abs=1e-6)


def test_linear_response_is_in_natural_units():
    def log_normal(parameters):
        return -0.5 * (jnp.log(parameters["x"]) / 0.3) ** 2 - jnp.log(parameters["x"])

    fit = qd.fit(log_normal, {"x": 1.0}, transforms={"x": qd.positive}, progress=False)
    exact = np.sqrt(np.expm1(0.09) * np.exp(0.09))
    # Linear in the response: of order sd² below the exact value for a curved function.
    assert float(fit.diagnose(progress=False).linear_response.sd["x"]) == pytest.approx(exact, rel=0.05)


def test_resampling_moves_the_samples_to_the_target():
    problem = problems.logistic_problem(2)
    fit = problem.fit(family="diagonal")
    samples = fit.resample(4000, seed=1)
    sd = np.sqrt(np.diag(problem.covariance))
    assert np.all(np.abs(samples.mean(axis=0) - problem.mean) < 0.1 * sd)
    np.testing.assert_allclose(np.cov(samples.T), problem.covariance, atol=0.1 * sd.max() ** 2)
    assert np.array_equal(samples, fit.resample(4000, seed=1))
    assert not np.array_equal(samples, fit.resample(4000, seed=2))


def test_resampling_warns_when_the_weights_cannot_be_trusted():
    fit = problems.gaussian(12, 1e8).fit(family="diagonal")
    with pytest.warns(UserWarning, match="k-hat"):
        fit.resample(10)


def test_samples_outside_the_support_get_no_weight():
    def half_normal(w):
        return jnp.where(w[0] > -1.0, -0.5 * w[0] ** 2, -jnp.inf)

    fit = qd.fit(lambda w: -0.5 * w @ w, np.zeros(1), progress=False)
    cut_off = qd.fit(lambda w: -0.5 * w @ w, fit, progress=False)
    from quenched.diagnostics import weigh
    from quenched.objective import make_problem
    from quenched.targets import log_density

    with jax.enable_x64(True):
        problem = make_problem(log_density(half_normal), cut_off.space, None, None)
        weighed = weigh(problem, cut_off.posterior.member, problem.hyper, 2000, 0)
    outside = weighed.samples[:, 0] <= -1.0
    assert outside.any()
    assert np.all(weighed.weights.weights[outside] < 1e-12)
    assert weighed.weights.evidence == pytest.approx(np.log(np.sqrt(2.0 * np.pi) * 0.841345), abs=0.05)
