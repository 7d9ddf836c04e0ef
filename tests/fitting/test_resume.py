"""Warm starts: from a fit, from a file, with other data, another family or another prior."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import problems
import quenched as qd


@pytest.fixture(scope="module")
def problem():
    return problems.PROBLEMS["logistic(5)"]


@pytest.fixture(scope="module")
def fit():
    return problems.fitted("logistic(5)")


TOP = qd.Joint(gradient_tolerance=1e-5)


def resume(problem, start, **options):
    return qd.fit(problem.log_density, start, **{"data": problem.data, "progress": False, **options})


def test_resuming_polishes_and_then_costs_next_to_nothing(problem, fit):
    """A first fit ends where its draws support no more; resuming goes on to the top, and once there stays."""
    polished = resume(problem, fit)
    assert fit.bound < polished.bound < fit.bound + 0.01 * fit.settings["tolerance"]
    fit, again = polished, resume(problem, polished)
    assert again.converged
    assert again.n_draws == fit.n_draws
    assert again.n_objective_evaluations <= 2
    assert again.n_evaluations <= 3 * fit.n_draws
    np.testing.assert_allclose(again.bound, fit.bound, rtol=1e-10)
    np.testing.assert_allclose(again.mean, fit.mean, atol=1e-5)


def test_the_same_seed_gives_the_same_bits_from_a_fit_and_from_its_file(problem, fit, tmp_path):
    direct, loaded = resume(problem, fit), resume(problem, qd.load(fit.save(tmp_path / "fit.npz")))
    np.testing.assert_array_equal(direct.covariance, loaded.covariance)
    assert (direct.bound, direct.check_bound) == (loaded.bound, loaded.check_bound)


def test_resuming_what_was_cut_short_ends_where_the_whole_would(problem):
    whole = problem.fit(draws=32, method=TOP)
    part = problem.fit(draws=32, method=qd.Joint(max_evaluations=2))
    assert part.status == "max_evaluations"
    assert "resume with start=fit" in part.verdict
    rest = resume(problem, part, draws=32)
    assert rest.converged
    np.testing.assert_allclose(rest.bound, whole.bound, atol=1e-8)
    np.testing.assert_allclose(rest.mean, whole.mean, atol=1e-4)


def test_other_data_start_warm(problem, fit):
    moved = {**problem.data, "features": problem.data["features"] + 0.01}
    cold, warm = problem.fit(data=moved, method=TOP), resume(problem, fit, data=moved)
    np.testing.assert_allclose(warm.bound, cold.bound, atol=1e-6)
    assert warm.n_evaluations < cold.n_evaluations


@pytest.mark.parametrize(("first", "second"), [("full", "diagonal"), ("diagonal", "full"), ("full", qd.Blocks([2, 3]))])
def test_another_family_starts_warm(problem, first, second):
    start = problem.fit(family=first, draws=32)
    cold, warm = problem.fit(family=second, draws=32, method=TOP), resume(problem, start, family=second, draws=32)
    assert warm.settings["family"] == (second if isinstance(second, str) else "blocks")
    np.testing.assert_allclose(warm.bound, cold.bound, atol=1e-6)


def test_constrained_parameters_keep_their_transforms():
    problem = problems.PROBLEMS["constrained"]
    fit = problems.fitted("constrained")
    again = resume(problem, fit)
    assert again.space == fit.space
    np.testing.assert_allclose(again.mean["parts"], fit.mean["parts"], atol=0.02 * np.min(fit.sd["parts"]))


def test_a_fixed_precision_asked_for_now_is_not_the_one_of_the_earlier_fit():
    """Along a path of priors every fit starts from the last, and none inherits its prior."""
    target = lambda precision: qd.with_gaussian_prior(normal, prior_precision=precision)
    first = qd.fit(target(1.0), np.zeros(2), data=np.array([2.0, 4.0]), progress=False)
    second = qd.fit(target(9.0), first, data=np.array([2.0, 4.0]), progress=False)
    assert second.hyper == {"prior_precision": 9.0}
    np.testing.assert_allclose(first.mean, [1.0, 2.0], atol=1e-6)
    np.testing.assert_allclose(second.mean, [0.2, 0.4], atol=1e-5)


def normal(w, data):
    return jnp.sum(norm.logpdf(data, w, 1.0))


def test_learned_hyperparameters_go_on_from_where_they_were():
    target = qd.with_gaussian_prior(lambda w, data, hyper: normal(w, data - hyper["shift"]))
    data = np.array([2.0, 4.0, -1.0])
    first = qd.fit(target, np.zeros(3), data=data, hyper={"shift": 0.0}, method=TOP, progress=False)
    again = qd.fit(target, first, data=data, progress=False)
    assert again.n_objective_evaluations <= 2
    np.testing.assert_allclose(again.hyper["prior_precision"], first.hyper["prior_precision"], rtol=1e-3)
    np.testing.assert_allclose(again.hyper["hyper"]["shift"], first.hyper["hyper"]["shift"], rtol=1e-3)


def test_plain_hyperparameters_go_on_from_where_they_were():
    log_density = lambda w, hyper: jnp.sum(norm.logpdf(w, hyper, 1.0)) - 0.5 * (hyper - 3.0) ** 2
    first = qd.fit(log_density, np.zeros(2), hyper=np.asarray(0.0), progress=False)
    np.testing.assert_allclose(first.hyper, 3.0, atol=1e-4)
    again = qd.fit(log_density, first, progress=False)
    assert again.n_objective_evaluations <= 2


def test_an_odd_number_of_independent_draws_can_be_resumed(problem):
    """The default of a resumed fit are as many matched draws, which come in pairs."""
    odd = problem.fit(draws=qd.iid(41, 5))
    again = resume(problem, odd)
    assert again.converged
    assert again.settings["draws"] == "matched"
    assert again.n_draws >= 42


def test_a_diagonal_fit_with_few_draws_can_be_resumed_in_full(problem):
    few = problem.fit(family="diagonal", draws=4)
    assert resume(problem, few, family="full", max_draws=10).n_draws == 10
