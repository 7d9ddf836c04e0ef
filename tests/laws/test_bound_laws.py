"""What a fit promises whatever the target: laws of the bound."""

import hashlib
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import problems
import quenched as qd
import registry

seeds = st.integers(0, 2**31)


# Laws over data: one function each, so that all examples share one trace.


def shifted(parameters, data):
    inner, shift = data
    return problems.logistic(parameters, inner) + shift


def relabelled_gaussian(w, data):
    inner, order = data
    return problems.gaussian_log_density(w[order], inner)


def relabelled_logistic(w, data):
    inner, order = data
    return problems.logistic(w[order], inner)


@registry.law
@given(seeds, st.sampled_from([2, 5]), st.floats(0, 8))
def test_matched_draws_give_the_exact_posterior_of_a_gaussian(seed, dim, exponent):
    problem = problems.gaussian(dim, 10.0**exponent, seed)
    fit = problem.fit(draws=2 * dim, seed=seed)
    scale = np.sqrt(np.diag(problem.covariance))
    np.testing.assert_allclose(fit.mean, problem.mean, atol=1e-6 * scale.max(), rtol=1e-6)
    np.testing.assert_allclose(fit.covariance, problem.covariance, atol=1e-6 * problem.covariance.max())
    np.testing.assert_allclose(fit.bound, problem.evidence, rtol=1e-6, atol=1e-6)


@registry.law
@given(st.floats(-1e4, 1e4))
def test_shifting_the_log_density_shifts_the_bound(shift):
    problem = problems.PROBLEMS["logistic(2)"]
    plain, moved = (
        qd.fit(shifted, problem.start, data=(problem.data, amount), draws=32, progress=False) for amount in (0.0, shift)
    )
    np.testing.assert_allclose(moved.bound - plain.bound, shift, atol=1e-6)
    np.testing.assert_allclose(moved.check_bound - plain.check_bound, shift, atol=1e-2)
    np.testing.assert_allclose(moved.mean, plain.mean, atol=1e-3)
    np.testing.assert_allclose(moved.covariance, plain.covariance, atol=1e-3)


@registry.law
@given(st.permutations(range(5)), seeds)
def test_relabelling_parameters_permutes_a_gaussian_posterior(order, seed):
    problem, order = problems.gaussian(5, 1e4, seed), np.array(order)
    fit = qd.fit(relabelled_gaussian, np.zeros(5), data=(problem.data, order), draws=10, progress=False)
    np.testing.assert_allclose(fit.mean[order], problem.mean, atol=1e-6)
    np.testing.assert_allclose(fit.covariance[np.ix_(order, order)], problem.covariance, atol=1e-6)
    np.testing.assert_allclose(fit.bound, problem.evidence, atol=1e-6)


@registry.law
@given(st.permutations(range(5)))
def test_relabelling_parameters_and_draws_permutes_any_diagonal_posterior(order):
    problem, order = problems.PROBLEMS["logistic(5)"], np.array(order)
    draws = qd.matched(64, 5, seed=4)
    moved = qd.Draws("matched", draws.points[:, np.argsort(order)], 4)
    options = {"family": "diagonal", "progress": False}
    plain = qd.fit(relabelled_logistic, np.zeros(5), data=(problem.data, np.arange(5)), draws=draws, **options)
    fit = qd.fit(relabelled_logistic, np.zeros(5), data=(problem.data, order), draws=moved, **options)
    np.testing.assert_allclose(fit.mean[order], plain.mean, atol=1e-5)
    np.testing.assert_allclose(fit.sd[order], plain.sd, atol=1e-5)
    np.testing.assert_allclose(fit.bound, plain.bound, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "family"), [("logistic(2)", "full"), ("poisson", "diagonal"), ("funnel", "full"), ("funnel", "diagonal")]
)
def test_the_bound_never_falls_between_rounds(name, family):
    problem = problems.PROBLEMS[name]
    method = qd.Alternating(max_rounds=8, steps=3)
    fit = problem.fit(draws=32, family=family, method=method, check=2)
    assert fit.n_rounds > 3
    assert (np.diff(fit.history.bound) >= -1e-10).all()
    assert fit.history.bound[-1] == fit.bound


@pytest.mark.parametrize("name", problems.WITH_EVIDENCE)
def test_the_check_bound_stays_below_the_evidence(name):
    fit, problem = problems.fitted(name), problems.PROBLEMS[name]
    assert fit.converged
    assert fit.check_bound <= problem.evidence + 4.0 * fit.check_error + 1e-9
    assert fit.check_bound >= problem.evidence - 2.5  # and is not empty talk


@pytest.mark.parametrize("name", ["logistic(2)", "poisson"])
def test_posteriors_close_to_gaussian_are_found_closely(name):
    """Against the exact moments by quadrature."""
    fit, problem = problems.fitted(name), problems.PROBLEMS[name]
    sds = np.sqrt(np.diag(problem.covariance))
    assert np.max(np.abs(fit.mean - problem.mean) / sds) < 0.05
    np.testing.assert_allclose(fit.sd, sds, rtol=0.1)
    assert problem.evidence - fit.check_bound < 0.05


def test_means_and_deviations_are_in_natural_units():
    """Gamma(5, 2), 4 Beta(4, 3) - 1, Dirichlet(3, 4, 5), two order statistics: their exact moments are known."""
    fit = problems.fitted("constrained")
    np.testing.assert_allclose(fit.mean["rate"], 2.5, rtol=0.03)
    np.testing.assert_allclose(fit.sd["rate"], np.sqrt(5) / 2, rtol=0.1)
    np.testing.assert_allclose(fit.mean["share"], 4 * 4 / 7 - 1, rtol=0.03)
    np.testing.assert_allclose(fit.mean["parts"], np.array([3, 4, 5]) / 12, rtol=0.03)
    np.testing.assert_allclose(fit.mean["parts"].sum(), 1.0, rtol=1e-12)
    np.testing.assert_allclose(fit.mean["knots"], np.array([-1, 1]) / np.sqrt(np.pi), rtol=0.07)
    samples = fit.sample(20_000, seed=1)
    for name, mean in fit.mean.items():
        np.testing.assert_allclose(samples[name].mean(axis=0), mean, atol=0.03)
        np.testing.assert_allclose(samples[name].std(axis=0), fit.sd[name], atol=0.03)
    rates = samples["rate"]
    assert rates.shape == (20_000,)
    assert (rates > 0).all()


@pytest.mark.parametrize("name", ["gaussian(3, 1000)", "logistic(5)", "funnel"])
def test_traced_chunked_and_host_agree(name, monkeypatch):
    """The draws at once, cut into chunks that fit a memory limit, and one by one in NumPy: one answer."""
    problem = problems.PROBLEMS[name]
    options = {"data": problem.data, "transforms": problem.transforms, "draws": 24, "progress": False}
    sizes = []
    remember_sizes(monkeypatch, sizes)
    monkeypatch.setattr("quenched.execute.execution.points_that_fit", lambda *arguments: 5)  # whenever there is a limit
    fits = {}
    for executor, prepare in registry.EXECUTORS.items():
        target, extra = prepare(problem.log_density)
        sizes.clear()
        fits[executor] = qd.fit(target, problem.start, **options, **extra)
        if executor == "chunked":
            assert set(sizes) == {5}
        elif executor == "host":
            assert not sizes
    for other in ("chunked", "host"):
        np.testing.assert_allclose(fits[other].bound, fits["traced"].bound, rtol=1e-9, atol=1e-8)
        np.testing.assert_allclose(fits[other].check_bound, fits["traced"].check_bound, atol=1e-4)
        sds = np.sqrt(fits["traced"].posterior.variance())
        away = (fits[other].posterior.mean - fits["traced"].posterior.mean) / sds
        np.testing.assert_allclose(away, 0.0, atol=1e-4)
        np.testing.assert_allclose(fits[other].covariance / np.outer(sds, sds), scaled(fits["traced"]), atol=1e-4)


def gamma(parameters, data):
    return data["shape"] * jnp.log(parameters["rate"]) - parameters["rate"]


def test_host_functions_are_transformed_as_traced_ones_are():
    """Their gradients are in natural units; the library adds the log-Jacobian and its slope."""
    data = {"shape": np.asarray(4.0)}
    options = {"data": data, "transforms": {"rate": qd.positive}, "draws": 16, "progress": False}
    traced, host = (qd.fit(target, {"rate": 1.0}, **options) for target in (gamma, registry.on_host(gamma)))
    np.testing.assert_allclose(host.bound, traced.bound, rtol=1e-9)
    np.testing.assert_allclose(host.mean["rate"], traced.mean["rate"], rtol=1e-5)
    assert traced.check_bound <= np.log(24.0) + 4.0 * traced.check_error  # Γ(5)


def scaled(fit):
    sds = np.sqrt(fit.posterior.variance())
    return fit.covariance / np.outer(sds, sds)


def remember_sizes(monkeypatch, sizes):
    """Note how many points every program of the bound evaluates side by side."""
    from quenched.objective import Chunks, objective

    program = objective._slope

    def noted(*inputs):
        sizes.extend(one.counts.shape[1] for one in inputs if isinstance(one, Chunks))
        return program(*inputs)

    monkeypatch.setattr(objective, "_slope", noted)


# The same bits.


def bits(fit):
    parts = [fit.posterior.mean, fit.posterior.scale, np.array([fit.bound, fit.check_bound, fit.check_error])]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


@pytest.mark.parametrize("name", ["logistic(5)", "constrained", "eight_schools"])
def test_same_seed_same_bits(name):
    problem = problems.PROBLEMS[name]
    assert bits(problem.fit()) == bits(problems.fitted(name))
    assert bits(problem.fit(seed=1)) != bits(problems.fitted(name))


def test_same_bits_in_another_process():
    script = (
        "import problems; from test_bound_laws import bits; print(bits(problems.PROBLEMS['logistic(5)'].fit(starts=2)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [bits(problems.PROBLEMS["logistic(5)"].fit(starts=2))]
