"""Errors due to the draws: none where the draws are exact, of the right size where they are not."""

import jax
import numpy as np
import pytest

import problems
import quenched as qd
from quenched.draws import kinds, replicates
from registry import on_host


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


@pytest.mark.parametrize("kind", kinds)
def test_replicates_are_independent_and_their_union_has_all_raw_points(kind):
    draws = qd.draws.make(kind, 16, 3, 5)
    sets, together = replicates(draws, 4, seed=7)
    assert [s.n for s in sets] == [16] * 4
    assert together.n == 64
    assert len({s.points.tobytes() for s in sets} | {draws.points.tobytes()}) == 5
    again, _ = replicates(draws, 4, seed=7)
    assert all(np.array_equal(a.points, b.points) for a, b in zip(sets, again, strict=True))
    if kind == "iid":
        assert np.array_equal(together.points, np.concatenate([s.points for s in sets]))
    if kind == "matched":
        np.testing.assert_allclose(together.points.T @ together.points / 64, np.eye(3), atol=1e-12)


def test_matched_draws_have_no_error_on_a_gaussian():
    diagnosis = problems.gaussian(6, 100.0).fit().diagnose(progress=False)
    sd = flat(diagnosis.fit.sd)
    assert np.all(flat(diagnosis.mean_error) < 1e-6 * sd)
    assert np.all(flat(diagnosis.sd_error) < 1e-6 * sd)
    assert diagnosis.bound_error < 1e-8
    assert diagnosis.optimisation_error < 1e-10


@pytest.mark.parametrize("n", [16, 64])
def test_intervals_cover_the_answer_of_many_draws(n):
    problem = problems.logistic_problem(8, 60)
    truth = problem.fit(draws=8192, seed=99)
    covered = []
    for seed in range(12):
        diagnosis = problem.fit(draws=n, seed=seed).diagnose(progress=False)
        t, fit = diagnosis.t_quantile, diagnosis.fit
        covered += [*(np.abs(flat(fit.mean) - flat(truth.mean)) <= t * flat(diagnosis.mean_error))]
        covered += [*(np.abs(flat(fit.sd) - flat(truth.sd)) <= t * flat(diagnosis.sd_error))]
    assert 0.85 < np.mean(covered) < 0.999


def test_iid_draws_have_larger_errors_than_matched_ones():
    problem = problems.logistic_problem(8, 60)
    by_kind = {
        kind: np.median(flat(problem.fit(draws=qd.draws.make(kind, 64, 8, 3)).diagnose(progress=False).mean_error))
        for kind in ("iid", "matched")
    }
    assert by_kind["iid"] > 5.0 * by_kind["matched"]


def test_hyperparameters_have_errors_too():
    generator = np.random.default_rng(0)
    inputs = np.linspace(-1.0, 1.0, 30)
    outputs = np.sin(2.0 * inputs) + 0.1 * generator.standard_normal(30)

    def curve(w, x):
        return w[0] + w[1] * x + jax.numpy.tanh(w[2] * x)

    fit = qd.fit(qd.regression(curve, inputs, outputs), np.full(3, 0.5), progress=False)
    errors = fit.diagnose(progress=False).hyper_error
    assert set(errors) == set(fit.hyper) == {"prior_precision", "noise_precision"}
    assert all(0.0 < float(errors[name]) < fit.hyper[name] for name in errors)


def test_a_function_on_the_host_is_diagnosed_alike():
    problem = problems.logistic_problem(2)
    traced = problem.fit().diagnose(progress=False)
    target = on_host(problem.log_density)
    host = qd.fit(target, problem.start, data=problem.data, progress=False).diagnose(progress=False)
    np.testing.assert_allclose(flat(host.mean_error), flat(traced.mean_error), rtol=1e-3)
    assert host.khat == pytest.approx(traced.khat, abs=1e-6)
    np.testing.assert_allclose(host.linear_response.covariance, traced.linear_response.covariance, rtol=1e-5)
