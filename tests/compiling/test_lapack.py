"""No program makes a call of LAPACK that could wait for itself, and all compute what they did."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from matrices import FACTORISED, PLAIN, kernel, log_density
from quenched.compiling import compiled, in_small_calls, lapack
from quenched.execute import Effort, trace
from registry import law

NOTHING = np.zeros(0)


def rows(n, seed=0):
    return 0.3 * np.random.default_rng(seed).standard_normal((n, 3))


def largest(function, *arguments):
    """Operations of the largest call of LAPACK that takes more than one matrix."""
    calls = list(lapack._calls(jax.make_jaxpr(function)(*arguments).jaxpr))
    return max((lapack._batch(call) * lapack._operations(call) for call in calls if lapack._batch(call) > 1), default=0)


@pytest.mark.parametrize("name", [*FACTORISED, *PLAIN])
def test_calls_are_found(name):
    assert lapack.calls_lapack(log_density(name, 5), np.zeros(3)) == (name in FACTORISED)


def with_own_derivative(function):
    own = jax.custom_jvp(function)
    own.defjvp(lambda point, step: jax.jvp(function, point, step))
    return own


WRAPPINGS = {
    "jit": jax.jit,
    "map": lambda f: lambda w: jnp.sum(jax.lax.map(f, jnp.stack([w, 2 * w]))),
    "loop": lambda f: lambda w: jax.lax.fori_loop(0, 2, lambda i, total: total + f(w + i), 0.0),
    "branch": lambda f: lambda w: jax.lax.cond(w[0] > 0, f, lambda w: 2 * f(w), w),
    "custom derivative": with_own_derivative,
    "checkpoint": jax.checkpoint,
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_calls_are_found_and_made_small_wherever_they_are(wrapping):
    function = WRAPPINGS[wrapping](log_density("solve", 30))
    assert lapack.calls_lapack(function, np.zeros(3))
    batched, small = jax.vmap(function), compiled(jax.vmap(function))
    assert largest(batched, rows(64)) >= lapack._OPERATIONS
    assert largest(small, rows(64)) <= lapack._OPERATIONS
    expected = [jax.jit(function)(point) for point in rows(3)]
    np.testing.assert_allclose(small(rows(64))[:3], expected, rtol=1e-10)


@pytest.mark.parametrize("name", FACTORISED)
@law
@given(n=some.integers(2, 60), batch=some.integers(1, 70))
def test_no_gradient_makes_a_large_call(name, n, batch):
    gradients = jax.vmap(jax.value_and_grad(log_density(name, n)))
    assert largest(in_small_calls(gradients), rows(batch)) <= lapack._OPERATIONS


def test_batches_of_our_own_and_of_the_users_are_made_small_together():
    """A log density that maps over matrices, mapped over points, mapped over problems."""

    def log_density_of_groups(w, shift):
        return jnp.sum(jax.vmap(lambda s: jnp.linalg.slogdet(kernel(w + s + shift, 20))[1])(np.linspace(0, 1, 7)))

    many = jax.vmap(jax.vmap(jax.grad(log_density_of_groups), in_axes=(0, None)), in_axes=(None, 0))
    small, shifts = compiled(many), np.array([0.0, 0.5])
    assert largest(many, rows(6), shifts) >= lapack._OPERATIONS
    assert largest(small, rows(6), shifts) <= lapack._OPERATIONS
    expected = jax.jit(jax.grad(log_density_of_groups))(rows(6)[2], 0.5)
    np.testing.assert_allclose(small(rows(6), shifts)[1, 2], expected, rtol=1e-8)


def test_complex_matrices_and_vectors_of_bands():
    def transformed(w):
        matrix = kernel(w, 16) * jnp.exp(1j * w[0])
        diagonal = jnp.full(50, 3.0) + w[0]
        bands = jax.lax.linalg.tridiagonal_solve(diagonal * 0.1, diagonal, diagonal * 0.1, jnp.ones((50, 3)))
        return jnp.abs(jnp.linalg.inv(matrix)).sum() + bands.sum()

    small = compiled(jax.vmap(transformed))
    assert largest(small, rows(40)) <= lapack._OPERATIONS
    np.testing.assert_allclose(small(rows(40))[7], jax.jit(transformed)(rows(40)[7]), rtol=1e-10)


@pytest.mark.parametrize("name", ["cholesky", *PLAIN])
def test_what_is_small_stays_as_it_is(name):
    gradients = jax.vmap(jax.value_and_grad(log_density(name, 4)))
    assert str(jax.make_jaxpr(in_small_calls(gradients))(rows(32))) == str(jax.make_jaxpr(gradients)(rows(32)))


@pytest.mark.parametrize("name", FACTORISED)
def test_programs_agree_with_one_point_after_the_other(name):
    function = log_density(name, 25)
    programs, points = trace(function), rows(12)
    found = programs.evaluate(Effort.ALL, points, np.ones(12), None, NOTHING)
    one = jax.jit(jax.value_and_grad(function))
    values, gradients = zip(*(one(point) for point in points), strict=True)
    np.testing.assert_allclose(found.values, values, rtol=1e-10)
    np.testing.assert_allclose(found.gradients, np.array(gradients), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(programs.values(Effort.ALL, points, None, NOTHING), values, rtol=1e-10)


@pytest.mark.parametrize("name", ["solve", "eigenvalues"])
def test_second_derivatives_agree_with_those_of_jax(name):
    function, point = log_density(name, 25), rows(1)[0]
    hessian = trace(function).second_order(Effort.ALL, point, None, NOTHING, 3)[2]
    np.testing.assert_allclose(hessian, jax.jit(jax.hessian(function))(point), rtol=1e-6, atol=1e-8)


def test_programs_make_no_large_call():
    programs, points = trace(log_density("inverse", 40)), rows(32)
    inside = programs.inside  # which holds them weakly
    assert largest(inside.evaluate, points, np.ones(32), None, NOTHING) <= lapack._OPERATIONS
    assert largest(compiled(inside.evaluate), points, np.ones(32), None, NOTHING) <= lapack._OPERATIONS
    assert largest(compiled(inside.values), points, None, NOTHING) <= lapack._OPERATIONS
    second_order = lambda point: inside.second_order(point, None, NOTHING, 3)
    assert largest(compiled(second_order), points[0]) <= lapack._OPERATIONS


def test_points_that_only_fill_up_do_not_count_for_hyperparameters():
    function = lambda w, data, free: log_density("solve", 40)(w) * jnp.exp(free[0])
    points, counts, free = rows(8), np.array([1.0] * 5 + [0.0] * 3), np.array([0.2])
    assert lapack.points_together(jax.grad(function), points[0], None, free) < 8
    found = trace(function).evaluate(Effort.ALL, points, counts, None, free)
    expected = sum(jax.jit(jax.grad(function, argnums=2))(point, None, free) for point in points[:5])
    np.testing.assert_allclose(found.free_gradient, expected, rtol=1e-9)


def test_programs_that_hold_their_own_constants():
    """From JAX 0.12 on: there is no program inside of them that has none."""

    class Program:
        eqns, consts = (), ()
        jaxpr = property(lambda self: self)

        def replace(self, **changed):
            return changed

    assert lapack._rewritten(Program()) == {"eqns": []}
