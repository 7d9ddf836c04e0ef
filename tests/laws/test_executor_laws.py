"""Every executor answers the same questions alike: values and gradients at a chunk, values alone, the Hessian."""

import numpy as np
import pytest

import problems
import quenched as qd
import registry
from quenched.objective import make_problem
from quenched.targets import log_density
from quenched.transforms import describe_space

NAMES = ["logistic(5)", "constrained"]


def executor_of(target, problem, chunk):
    space, _ = describe_space(problem.start, problem.transforms)
    made = make_problem(target, space, problem.data, None)
    executor = made.executor(chunk)
    executor.chunk = chunk
    return executor, made.data


@pytest.fixture(params=NAMES)
def both(request):
    """The traced executor, the host executor, and points for them."""
    problem = problems.PROBLEMS[request.param]
    traced, data = executor_of(log_density(problem.log_density), problem, 4)
    host, _ = executor_of(registry.on_host(problem.log_density), problem, 4)
    points = 0.3 * np.random.default_rng(0).standard_normal((4, problem.dim))
    return traced, host, points, data


def test_values_and_gradients_agree(both):
    traced, host, points, data = both
    counts, free = np.ones(4), np.zeros(0)
    one, other = (executor.evaluate(points, counts, data, free) for executor in (traced, host))
    np.testing.assert_allclose(other.values, one.values, rtol=1e-10)
    np.testing.assert_allclose(other.gradients, one.gradients, rtol=1e-8, atol=1e-10)
    for executor in (traced, host):
        np.testing.assert_allclose(executor.values(points, data, free), one.values, rtol=1e-10)


def test_gradients_are_those_of_the_values(both):
    traced, _, points, data = both
    gradients = traced.evaluate(points, np.ones(4), data, np.zeros(0)).gradients
    for index in range(points.shape[1]):
        step = np.zeros(points.shape[1])
        step[index] = 1e-6
        up, down = (np.asarray(traced.values(points + sign * step, data, np.zeros(0))) for sign in (1.0, -1.0))
        np.testing.assert_allclose(gradients[:, index], (up - down) / 2e-6, rtol=1e-5, atol=1e-6)


def test_hessians_agree(both):
    traced, host, points, data = both
    spread = np.ones(points.shape[1])
    value, gradient, hessian = traced.second_order(points[0], spread, data, np.zeros(0))
    other = host.second_order(points[0], spread, data, np.zeros(0))
    np.testing.assert_allclose(other[0], value, rtol=1e-10)
    np.testing.assert_allclose(other[1], gradient, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(other[2], hessian, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-10)


def test_points_that_only_fill_up_are_not_evaluated_on_the_host():
    calls = []

    def function(w):
        calls.append(w)
        return 0.0, np.zeros(2)

    problem = problems.PROBLEMS["logistic(2)"]
    space, _ = describe_space(problem.start, None)
    executor = make_problem(qd.from_value_and_grad(function), space, None, None).executor(4)
    executor.evaluate(np.ones((4, 2)), np.array([1.0, 1.0, 0.0, 0.0]), None, np.zeros(0))
    assert len(calls) == 2
