"""What every minimiser promises, in NumPy, under `jit` and under `vmap` alike."""

from itertools import islice, pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

import paper_formulas as paper
import registry
from quenched.optimise import LBFGS, ScaledConjugateGradients

every_minimiser = pytest.mark.parametrize("name", sorted(registry.MINIMISERS))
seeds = st.integers(0, 2**31)


def quadratic(seed, dim=4, condition=100.0):
    """A convex quadratic: matrix, minimiser."""
    generator = np.random.default_rng(seed)
    directions, _ = np.linalg.qr(generator.standard_normal((dim, dim)))
    matrix = (directions * np.geomspace(1.0, condition, dim)) @ directions.T
    return matrix, generator.standard_normal(dim)


def rosenbrock(x):
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


def rosenbrock_gradient(x):
    inner = x[1] - x[0] ** 2
    return np.array([-400.0 * x[0] * inner - 2.0 * (1.0 - x[0]), 200.0 * inner])


def barrier(x):
    """Not a number for x <= 0; least at x = 1."""
    return 50.0 * (x - jnp.log(x)).sum()


def in_numpy(function):
    value_and_grad = jax.jit(jax.value_and_grad(function))
    return lambda x: tuple(np.asarray(part) for part in value_and_grad(x))


def run(minimiser, value_and_gradient, start, tolerance=1e-8, most=2000):
    """Every state of a descent, on the host."""
    states = [minimiser.init(np.asarray(start, float))]
    while len(states) <= most:
        state = states[-1]
        if state.stalled or (state.started and np.max(np.abs(state.gradient)) <= tolerance):
            break
        states.append(minimiser.step(state, *value_and_gradient(state.trial)))
    return states


@every_minimiser
@registry.law
@given(seeds, st.sampled_from([1.0, 1e2, 1e4]), st.sampled_from([1, 2, 7]))
def test_convex_quadratics_are_solved(name, seed, condition, dim):
    matrix, solution = quadratic(seed, dim, condition)
    value_and_gradient = lambda x: (np.asarray(0.5 * (x - solution) @ matrix @ (x - solution)), matrix @ (x - solution))
    last = run(registry.MINIMISERS[name](), value_and_gradient, np.zeros(dim))[-1]
    np.testing.assert_allclose(last.position, solution, atol=1e-6)
    assert np.max(np.abs(last.gradient)) <= 1e-8


@every_minimiser
@pytest.mark.parametrize("start", [(-1.2, 1.0), (2.0, -3.0), (0.0, 0.0)])
def test_rosenbrock_is_solved(name, start):
    states = run(registry.MINIMISERS[name](), lambda x: (np.asarray(rosenbrock(x)), rosenbrock_gradient(x)), start)
    np.testing.assert_allclose(states[-1].position, 1.0, atol=1e-5)
    assert len(states) < 400


@every_minimiser
def test_accepted_values_never_rise(name):
    value_and_gradient = lambda x: (np.asarray(rosenbrock(x)), rosenbrock_gradient(x))
    states = run(registry.MINIMISERS[name](), value_and_gradient, (-1.2, 1.0))[1:]
    values = np.array([state.value for state in states])
    assert (np.diff(values) <= 1e-14 * np.abs(values[:-1])).all()
    for state in states:  # what it says of its position is true
        np.testing.assert_allclose(state.value, rosenbrock(state.position), rtol=1e-12)
        np.testing.assert_allclose(state.gradient, rosenbrock_gradient(state.position), rtol=1e-12)
    assert states[-1].n_steps == len({float(value) for value in values}) - 1


def walled(x):
    """Not a number below zero, and no sum of parts."""
    return barrier(x) + 5.0 * (x[0] - x[1]) ** 2


@pytest.mark.parametrize("minimiser", [LBFGS(memory=2, first_step=30.0), ScaledConjugateGradients()])
def test_numpy_jit_and_vmap_take_the_same_path(minimiser):
    """The same trials, evaluation by evaluation; a batch is as good as one problem after another."""
    starts = np.array([[0.4, 0.3], [0.9, 1.4], [3.0, 2.0]])
    value_and_grad = jax.jit(jax.value_and_grad(walled))
    step = jax.jit(minimiser.step)
    batched = jax.jit(jax.vmap(minimiser.step))
    traced = [minimiser.init(jnp.asarray(start)) for start in starts]
    batch = jax.vmap(minimiser.init)(jnp.asarray(starts))
    hosts = [run(minimiser, in_numpy(walled), start, most=12) for start in starts]
    assert any((state.trial <= 0).any() for states in hosts for state in states)
    for turn in range(1, 12):
        batch = batched(batch, *jax.vmap(value_and_grad)(batch.trial))
        for index in range(3):
            traced[index] = step(traced[index], *value_and_grad(traced[index].trial))
            if turn >= len(hosts[index]):
                continue
            expected = hosts[index][turn]
            for found in (traced[index], jax.tree.map(lambda leaf, i=index: leaf[i], batch)):
                np.testing.assert_allclose(found.trial, expected.trial, rtol=1e-6, atol=1e-8)
                np.testing.assert_allclose(found.position, expected.position, rtol=1e-6, atol=1e-8)
                assert int(found.n_steps) == int(expected.n_steps)


@every_minimiser
def test_a_traced_loop_finds_the_minimum_of_a_batch(name):
    minimiser = {"L-BFGS": LBFGS(memory=2)}.get(name) or registry.MINIMISERS[name]()
    solutions = jnp.asarray(np.random.default_rng(0).standard_normal((3, 4)))
    matrix, _ = quadratic(0)

    def solve(solution):
        objective = lambda x: 0.5 * (x - solution) @ matrix @ (x - solution)
        small = lambda state: state.started & (jnp.max(jnp.abs(state.gradient)) <= 1e-9)
        unfinished = lambda carry: (carry[1] < 200) & ~small(carry[0]) & ~carry[0].stalled

        def advance(carry):
            return minimiser.step(carry[0], *jax.value_and_grad(objective)(carry[0].trial)), carry[1] + 1

        return jax.lax.while_loop(unfinished, advance, (minimiser.init(jnp.zeros(4)), jnp.asarray(0)))

    state, count = jax.jit(jax.vmap(solve))(solutions)
    np.testing.assert_allclose(state.position, solutions, atol=1e-8)
    assert (count < 100).all()
    alone, count_alone = solve(solutions[1])
    np.testing.assert_allclose(alone.position, state.position[1], atol=1e-10)
    assert int(count_alone) == int(count[1])


@pytest.mark.parametrize("minimiser", [LBFGS(first_step=100.0), ScaledConjugateGradients()])
def test_recovers_from_trials_that_are_not_finite(minimiser):
    """The first moves from x = 3 land where the function is NaN."""
    states = run(minimiser, in_numpy(barrier), [3.0, 2.0])
    assert any((state.trial <= 0).any() for state in states)
    np.testing.assert_allclose(states[-1].position, 1.0, atol=1e-6)
    assert all(np.isfinite(state.value) for state in states[1:])


def up_to_its_first_move(minimiser):
    """A state whose trial is a move from x = 3 on f = x²."""
    state = minimiser.init(np.array([3.0]))
    while state.n_steps == 0 and np.max(np.abs(state.trial - 3.0)) < 1e-2:
        state = minimiser.step(state, np.asarray(state.trial[0] ** 2), 2.0 * state.trial)
    return state


@every_minimiser
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("value", "gradient"), [(-np.inf, 0.0), (np.nan, 0.0), (np.inf, 1.0), (1.0, np.nan), (1.0, np.inf), (1.0, -np.inf)]
)
def test_a_trial_that_is_not_finite_is_not_accepted(name, value, gradient):
    """Neither for its value nor for its gradient, even if the other is tempting; the next trial is nearer."""
    minimiser = registry.MINIMISERS[name]()
    before = up_to_its_first_move(minimiser)
    after = minimiser.step(before, np.asarray(value), np.array([gradient]))
    np.testing.assert_array_equal(after.position, 3.0)
    assert after.n_steps == before.n_steps
    assert np.isfinite(after.trial).all()
    assert abs(after.trial[0] - 3.0) < abs(before.trial[0] - 3.0)
    for _ in range(60):
        after = minimiser.step(after, np.asarray(after.trial[0] ** 2), 2.0 * after.trial)
        if abs(after.position[0]) < 1e-4:
            break
    np.testing.assert_allclose(after.position, 0.0, atol=1e-4)


@every_minimiser
def test_a_wrong_gradient_ends_in_a_stall(name):
    states = run(registry.MINIMISERS[name](), lambda x: (np.asarray(x @ x), -2.0 * x), [1.0, 2.0], most=500)
    assert states[-1].stalled
    np.testing.assert_array_equal(states[-1].position, [1.0, 2.0])


@every_minimiser
def test_a_start_that_is_not_finite_is_a_stall(name):
    minimiser = registry.MINIMISERS[name]()
    state = minimiser.step(minimiser.init(np.zeros(2)), np.asarray(np.inf), np.zeros(2))
    assert state.stalled


# Scaled conjugate gradients against Møller (1993).


def test_one_step_of_moller_by_hand():
    """f = x² + 2 y² from (1, 1): everything can be written down."""
    minimiser = ScaledConjugateGradients(probe=1e-4, initial_damping=0.5)
    f, gradient = lambda x: np.asarray(x[0] ** 2 + 2.0 * x[1] ** 2), lambda x: np.array([2.0, 4.0]) * x
    state = minimiser.init(np.array([1.0, 1.0]))
    state = minimiser.step(state, f(state.trial), gradient(state.trial))
    np.testing.assert_allclose(state.trial, [1.0 - 1e-4 * 2 / np.sqrt(20), 1.0 - 1e-4 * 4 / np.sqrt(20)])
    state = minimiser.step(state, f(state.trial), gradient(state.trial))
    # p = -(2, 4): |p|² = 20, pᵀHp = 2·4 + 4·16 = 72, damped 72 + 0.5·20 = 82, alpha = 20 / 82.
    np.testing.assert_allclose(state.curvature, 72.0, rtol=1e-9)
    np.testing.assert_allclose(state.trial, [1 - 2 * 20 / 82, 1 - 4 * 20 / 82], rtol=1e-9)
    new = state.trial
    state = minimiser.step(state, f(new), gradient(new))
    # Comparison 2·82·(3 - f(new)) / 20² >= 0.75, so the damping is quartered; beta = (r1·r1 - r1·r0) / 20.
    assert 2 * 82 * (3.0 - f(new)) / 400 >= 0.75
    np.testing.assert_allclose(state.damping, 0.125)
    residual, before = -gradient(new), np.array([-2.0, -4.0])
    beta = (residual @ residual - residual @ before) / 20.0
    np.testing.assert_allclose(state.direction, residual + beta * before, rtol=1e-8)
    assert state.n_steps == 1


@pytest.mark.parametrize("start", [(-1.2, 1.0), (0.5, 2.5), (3.0, -2.0)])
def test_the_path_of_moller_on_a_curved_valley(start):
    """Successes, failures, negative curvature and restarts: the same positions and damping, move by move."""
    n_moves = 30
    expected = list(islice(paper.moller(rosenbrock, rosenbrock_gradient, start, worst=-4.0), n_moves))
    value_and_gradient = lambda x: (np.asarray(rosenbrock(x)), rosenbrock_gradient(x))
    states = run(ScaledConjugateGradients(), value_and_gradient, start, tolerance=0.0, most=200)
    moves = [after for before, after in pairwise(states) if before.phase == 2][:n_moves]
    for state, attempt in zip(moves, expected, strict=True):
        np.testing.assert_allclose(state.position, attempt.position, rtol=1e-5, atol=1e-6)
        assert (state.phase == 1) == attempt.success  # a probe follows a success, another move a failure
    for state, attempt in zip(moves[:10], expected, strict=False):
        if attempt.success:
            np.testing.assert_allclose(state.damping, attempt.damping, rtol=1e-4)


def test_negative_curvature_is_damped_into_a_descent():
    """f = -x² has curvature -2 along every direction; Møller turns the step into one of length mu / (-delta + ...)."""
    minimiser = ScaledConjugateGradients(initial_damping=0.5)
    state = minimiser.init(np.array([1.0]))
    state = minimiser.step(state, np.asarray(-1.0), np.array([-2.0]))
    state = minimiser.step(state, np.asarray(-(state.trial[0] ** 2)), -2.0 * state.trial)
    # p = 2, |p|² = 4, pᵀHp = -8, delta = -8 + 2 = -6, new damping 2 (0.5 + 6 / 4) = 4, delta = 6 + 2 = 8.
    np.testing.assert_allclose(state.damping, 4.0, rtol=1e-6)
    np.testing.assert_allclose(state.model_curvature, 8.0, rtol=1e-6)
    np.testing.assert_allclose(state.trial, 1.0 + 2.0 * 4.0 / 8.0, rtol=1e-6)


def test_a_probe_off_the_domain_tells_nothing():
    minimiser = ScaledConjugateGradients(initial_damping=0.25)
    state = minimiser.init(np.array([1.0, 0.0]))
    state = minimiser.step(state, np.asarray(2.0), np.array([3.0, 0.0]))
    state = minimiser.step(state, np.asarray(np.nan), np.array([np.nan, np.nan]))
    np.testing.assert_allclose(state.trial, [1.0 - 3.0 / 0.25, 0.0])


# L-BFGS alone.


@pytest.mark.parametrize("condition", [3.0, 100.0])
def test_lbfgs_needs_no_more_evaluations_than_scipy(condition):
    matrix, solution = quadratic(1, dim=30, condition=condition)
    value_and_gradient = lambda x: (np.asarray(0.5 * (x - solution) @ matrix @ (x - solution)), matrix @ (x - solution))
    ours = len(run(LBFGS(memory=10), value_and_gradient, np.zeros(30), tolerance=1e-6)) - 1
    options = {"maxcor": 10, "gtol": 1e-6, "ftol": 0.0}
    theirs = optimize.minimize(value_and_gradient, np.zeros(30), jac=True, method="L-BFGS-B", options=options).nfev
    assert ours <= 1.2 * theirs


def test_lbfgs_beside_the_optimum_is_not_fooled_by_rounding():
    """Values agree to the last digits there; the slopes still lead to a gradient of 1e-9."""
    matrix, solution = quadratic(2, dim=5)
    value_and_gradient = lambda x: (
        np.asarray(1e6 + 0.5 * (x - solution) @ matrix @ (x - solution)),
        matrix @ (x - solution),
    )
    last = run(LBFGS(), value_and_gradient, solution + 1e-4, tolerance=1e-9)[-1]
    assert np.max(np.abs(last.gradient)) <= 1e-9


def test_the_first_step_has_the_length_it_was_given():
    minimiser = LBFGS(first_step=0.1)
    state = minimiser.step(minimiser.init(np.zeros(2)), np.asarray(5.0), np.array([30.0, 40.0]))
    np.testing.assert_allclose(np.linalg.norm(state.trial), 0.1)
    gentle = minimiser.step(minimiser.init(np.zeros(2)), np.asarray(5.0), np.array([0.003, 0.004]))
    np.testing.assert_allclose(gentle.trial, [-0.003, -0.004])
