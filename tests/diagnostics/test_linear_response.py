"""Linear response by products taken together, against the same taken one by one; and what it says it costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import problems
import quenched as qd
from quenched.diagnostics.conjugate_gradients import solve, solve_all
from quenched.diagnostics.products import by_differences, by_expansions, plan
from registry import FAMILIES


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**31))
def test_every_right_hand_side_is_solved_whatever_their_number(size, n, width, seed):
    random = np.random.default_rng(seed)
    root = random.standard_normal((size, size))
    matrix = root @ root.T + np.eye(size)
    right = random.standard_normal((n, size)) * (random.random((n, 1)) > 0.2)
    heard = []
    found = solve_all(
        lambda rows: rows @ matrix, right, width=width, tolerance=1e-9, max_products=200, tell=heard.append
    )
    exact = np.linalg.solve(matrix, right.T).T
    np.testing.assert_allclose([one.vector for one in found], exact, atol=1e-6 * np.abs(exact).max(initial=1.0))
    np.testing.assert_allclose(
        [right[row] - one.vector @ matrix for row, one in enumerate(found)], [one.residual for one in found], atol=1e-6
    )
    assert all(one.converged and one.definite for one in found)
    assert heard[-1] == n


def test_a_direction_that_curves_upwards_ends_its_own_solution_alone():
    curvatures = np.array([1.0, -1.0, 2.0])
    found = solve_all(lambda rows: rows * curvatures, np.eye(3), width=3, tolerance=1e-6, max_products=9)
    assert [one.definite for one in found] == [True, False, True]
    assert [one.converged for one in found] == [True, False, True]
    assert not solve(lambda row: row * curvatures, np.eye(3)[1], tolerance=1e-6, max_products=9).definite


def skewed(w):
    return -jnp.sum(jnp.exp(w) - w) - 0.3 * jnp.sum((w[1:] - w[:-1]) ** 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_products_by_expansions_are_those_by_differences(family):
    fit = qd.fit(skewed, np.zeros(5), family=FAMILIES[family](5), draws=40, progress=False)
    curvature = fit.diagnose(progress=False, replicates=2, samples=100).linear_response._curvature
    rows = np.random.default_rng(1).standard_normal((3, curvature.size))
    with jax.enable_x64(True):
        together, apart = by_expansions(curvature, lambda index: None), by_differences(curvature)
        assert together is not None
        np.testing.assert_allclose(together(rows), apart(rows), rtol=1e-4, atol=1e-4)


def test_chosen_parameters_are_those_of_all():
    def log_density(p):
        return skewed(p["theta"]) - 0.5 * (jnp.log(p["tau"]) - p["theta"][0]) ** 2 - jnp.log(p["tau"])

    start, transforms = {"tau": 1.0, "theta": np.zeros(4)}, {"tau": qd.positive}
    fit = qd.fit(log_density, start, transforms=transforms, family="diagonal", progress=False)
    response = fit.diagnose(progress=False, replicates=2, samples=100).linear_response
    some = response.of(["tau", "theta[3]"])
    assert some.sd["tau"] == pytest.approx(response.sd["tau"], rel=1e-3)
    assert some.sd["theta[3]"] == pytest.approx(response.sd["theta"][3], rel=1e-3)
    assert some.mean["tau"] == pytest.approx(fit.mean["tau"], rel=1e-6)
    np.testing.assert_allclose(response.of("theta").sd, response.sd["theta"], rtol=1e-3)
    for name in ("sigma", "theta[4]", "theta[x]", "tau[0]"):
        with pytest.raises(ValueError, match=r"there is no such parameter; the fit has tau .*theta"):
            response.of(name)


@pytest.mark.parametrize("dim", [3, 30])
def test_the_cost_is_known_before(dim):
    problem = problems.logistic_problem(dim, 60)
    fit = problem.fit(family="diagonal")
    response = fit.diagnose(progress=False, replicates=2, samples=100).linear_response
    objective = response._curvature.objective
    before, promised = objective.n_evaluations, response.n_gradients
    _ = response.sd
    assert 0.2 * promised <= objective.n_evaluations - before <= promised
    before, promised = objective.n_evaluations, response.n_gradients_for(1)
    response.of(lambda w: w[0])
    assert objective.n_evaluations - before <= 2 * promised
    assert response.n_gradients_for(1) <= response.n_gradients


def test_second_derivatives_that_are_not_finite_are_done_without():
    def log_density(w):
        zero = w - jax.lax.stop_gradient(w)  # a power of it has a gradient there, and no second derivative
        return -0.5 * jnp.sum(w**2) - jnp.sum(jnp.abs(zero) ** 1.5)

    fit = qd.fit(log_density, np.ones(2), draws=8, progress=False)
    response = fit.diagnose(progress=False, replicates=2, samples=100).linear_response
    assert plan(response._curvature, 2).expand
    with jax.enable_x64(True):
        assert by_expansions(response._curvature, lambda index: None) is None
    np.testing.assert_allclose(response.sd, 1.0, rtol=1e-4)
