"""A log density is traced once per shape, and again only when what it refers to has changed."""

from contextlib import contextmanager
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.fitting.alone import Alone
from tracing import Traces


def counted():
    """A new log density of correlated, skewed coordinates, and its counter."""
    traces = Traces()
    note = traces.logger

    def log_density(w, data):
        note.info("traced")
        return jnp.sum(data["y"] * (data["x"] @ w) - jnp.exp(data["x"] @ w)) - 0.5 * jnp.sum(w**2)

    return log_density, traces


def some_data(seed, n=12, dim=2):
    generator = np.random.default_rng(seed)
    return {"x": generator.standard_normal((n, dim)), "y": generator.poisson(2.0, n).astype(float)}


def run(log_density, data, **options):
    return qd.fit(log_density, np.zeros(data["x"].shape[1]), data=data, progress=False, **options)


def test_one_trace_for_a_whole_fit():
    """Start, Hessian, short fit, ascent, growth and check: all are made of one trace."""
    log_density, traces = counted()
    fit = run(log_density, some_data(0), tolerance=1e-4, max_draws=256)
    assert fit.n_rounds > 1  # it grew
    assert traces.n == 1


def test_new_data_of_the_same_shape_cause_no_new_trace():
    log_density, traces = counted()
    first, second = (run(log_density, some_data(seed)) for seed in (0, 1))
    assert traces.n == 1
    assert abs(first.bound - second.bound) > 1e-3


@contextmanager
def compilations():
    """Of programs, while it lasts."""
    found = []
    listen = lambda event, seconds, **_: found.append(event) if "backend_compile" in event else None
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_a_second_fit_compiles_nothing():
    """Of the same shape, with other data and another seed, also with more draws of the kind that it had."""
    log_density, _ = counted()
    with compilations() as first:
        run(log_density, some_data(0), draws=64)
        run(log_density, some_data(0), draws=1024)
    assert first
    with compilations() as second:
        run(log_density, some_data(1), draws=256, seed=3)
        run(log_density, some_data(1), draws=2048, seed=3)
    assert not second


def test_what_is_compiled_ahead_is_what_the_fit_asks_for(monkeypatch):
    """While a start is searched for, another thread compiles the rest: as many programs as without it, none of them twice."""
    with compilations() as ahead:
        together = run(counted()[0], some_data(0), draws=64)
    monkeypatch.setattr(Alone, "prepare", lambda *_: None)
    with compilations() as after:
        alone = run(counted()[0], some_data(0), draws=64)
    assert len(ahead) == len(after) > 3
    assert together.bound == alone.bound


def test_other_numbers_of_problems_compile_no_lanes_anew():
    """Nor do other draws."""
    log_density, traces = counted()
    many = lambda n, **options: qd.fit_many(
        log_density,
        np.zeros(2),
        jax.tree.map(lambda *leaves: np.stack(leaves), *map(some_data, range(n))),
        progress=False,
        **options,
    )
    fits = many(50, tolerance=1e-4, max_draws=128)
    assert fits[0].n_rounds > 1  # they grew
    names = []
    listen = lambda event, seconds, **of: names.append(of["fun_name"]) if "backend_compile" in event else None
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        many(100, seed=3)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert not [name for name in names if name.startswith("jit(_")]  # ours; others pick the data of some problems
    assert traces.n == 1


def test_data_of_another_shape_are_traced_anew():
    log_density, traces = counted()
    run(log_density, some_data(0), draws=16)
    run(log_density, some_data(0, n=13), draws=16)
    assert traces.n == 2
    run(log_density, some_data(0, dim=3), draws=16)
    assert traces.n == 3


def test_several_starts_another_seed_and_other_draws_share_the_trace():
    log_density, traces = counted()
    data = some_data(0)
    run(log_density, data, starts=3, draws=16)
    run(log_density, data, seed=5, draws=16)
    run(log_density, data, draws=qd.iid(50, 2), check=77)
    run(log_density, data, memory=10**7, draws=16)
    assert traces.n == 1


def test_methods_families_and_resuming_share_the_trace():
    log_density, traces = counted()
    data = some_data(0)
    first = run(log_density, data, draws=16)
    run(log_density, data, draws=16, family="diagonal")
    run(log_density, data, draws=16, family=qd.Blocks([1, 1]))
    run(log_density, data, draws=16, method=qd.Alternating(max_rounds=1))
    qd.fit(log_density, first, data=data, draws=16, progress=False)
    qd.laplace(log_density, np.zeros(2), data=data, progress=False)
    assert traces.n == 1


def test_single_precision_and_double_precision_data_share_the_trace():
    """Both are promoted before the log density sees them."""
    log_density, traces = counted()
    data = some_data(0)
    double = run(log_density, data, draws=16)
    single = run(log_density, jax.tree.map(lambda leaf: leaf.astype(np.float32), data), draws=16)
    assert traces.n == 1
    np.testing.assert_allclose(single.bound, double.bound, rtol=1e-5)


def test_regression_is_traced_once_for_new_data():
    traces = Traces()
    note = traces.logger

    def f(w, x):
        note.info("traced")
        return x @ w

    for seed in (0, 1):
        data = some_data(seed)
        qd.fit(qd.regression(f, data["x"], data["y"]), np.zeros(2), draws=16, progress=False)
    assert traces.n <= 2  # once for its shape, once for its values


def test_hyperparameters_of_the_same_shape_share_the_trace():
    traces = Traces()
    note = traces.logger

    def log_density(w, hyper):
        note.info("traced")
        return -0.5 * jnp.sum((w - hyper) ** 2) - 0.5 * (hyper - 1.0) ** 2

    for start in (0.0, 2.0):
        qd.fit(log_density, np.zeros(2), hyper=np.asarray(start), draws=16, progress=False)
    assert traces.n == 1


# What a function refers to.

CENTRE = np.zeros(2)


def uses_a_global(w):
    return -0.5 * jnp.sum((w - CENTRE) ** 2)


def uses_a_global_inside_a_lambda(w):
    return -0.5 * jnp.sum(jax.vmap(lambda index: (w[index] - jnp.asarray(CENTRE)[index]) ** 2)(jnp.arange(2)))


def uses_a_global_in_a_nested_function(w):
    def away():
        return w - CENTRE

    return -0.5 * jnp.sum(away() ** 2)


def helper(w):
    return w - CENTRE


def uses_a_helper(w):
    return -0.5 * jnp.sum(helper(w) ** 2)


@pytest.mark.parametrize(
    "log_density",
    [uses_a_global, uses_a_global_inside_a_lambda, uses_a_global_in_a_nested_function, uses_a_helper],
)
@pytest.mark.parametrize("change", ["replaced", "overwritten"])
def test_a_changed_global_is_seen(log_density, change, monkeypatch):
    """Also through a nested function or a helper: a stale program would give the old answer without a word."""
    monkeypatch.setitem(globals(), "CENTRE", np.array([1.0, 2.0]))
    fit = lambda: qd.fit(log_density, np.zeros(2), draws=4, progress=False).mean
    np.testing.assert_allclose(fit(), [1.0, 2.0], atol=1e-6)
    if change == "replaced":
        monkeypatch.setitem(globals(), "CENTRE", np.array([3.0, 4.0]))
    else:
        CENTRE[:] = [3.0, 4.0]
    np.testing.assert_allclose(fit(), [3.0, 4.0], atol=1e-6)


def test_a_changed_closure_is_seen_and_an_unchanged_one_is_not_traced_again():
    traces, centre = Traces(), np.array([1.0, 2.0])
    note = traces.logger
    settings = {"scale": 1.0, "parts": [np.ones(1)]}

    def log_density(w):
        note.info("traced")
        return -0.5 * jnp.sum((w - centre) ** 2) * settings["scale"] * settings["parts"][0][0]

    fit = lambda: qd.fit(log_density, np.zeros(2), draws=4, progress=False)
    np.testing.assert_allclose(fit().mean, [1.0, 2.0], atol=1e-6)
    fit()
    assert traces.n == 1
    centre[:] = [5.0, 6.0]
    np.testing.assert_allclose(fit().mean, [5.0, 6.0], atol=1e-6)
    assert traces.n == 2
    settings["scale"] = 4.0
    np.testing.assert_allclose(fit().sd, 0.5, atol=1e-6)
    settings["parts"][0][:] = 4.0
    np.testing.assert_allclose(fit().sd, 0.25, atol=1e-6)
    centre = np.array([7.0, 8.0])
    np.testing.assert_allclose(fit().mean, [7.0, 8.0], atol=1e-6)


def test_a_default_argument_that_is_overwritten_is_seen():
    centre = np.array([1.0, 2.0])

    def log_density(w, *, centre=centre):
        return -0.5 * jnp.sum((w - centre) ** 2)

    fit = lambda: qd.fit(log_density, np.zeros(2), draws=4, progress=False).mean
    np.testing.assert_allclose(fit(), [1.0, 2.0], atol=1e-6)
    centre[:] = [3.0, 4.0]
    np.testing.assert_allclose(fit(), [3.0, 4.0], atol=1e-6)


def test_partial_functions_are_known_by_what_they_hold():
    """A new one with equal arguments is the same function; one whose array was overwritten is not."""
    traces, centre = Traces(), np.array([1.0, 2.0])
    note = traces.logger

    def base(w, centre):
        note.info("traced")
        return -0.5 * jnp.sum((w - centre) ** 2)

    fit = lambda: qd.fit(partial(base, centre=centre), np.zeros(2), draws=4, progress=False).mean
    fit()
    fit()
    assert traces.n == 1
    centre[:] = [3.0, 4.0]
    np.testing.assert_allclose(fit(), [3.0, 4.0], atol=1e-6)


def test_two_closures_of_one_function_are_told_apart():
    def make(centre):
        return lambda w: -0.5 * jnp.sum((w - centre) ** 2)

    for centre in (1.0, 2.0, 1.0):
        np.testing.assert_allclose(qd.fit(make(centre), np.zeros(2), draws=4, progress=False).mean, centre, atol=1e-6)


def test_objects_that_can_be_called_are_log_densities_too():
    """Whatever their attributes are called."""

    class Model:
        def __init__(self, f):
            self.f = f

        def __call__(self, w):
            return -0.5 * jnp.sum((w - self.f) ** 2)

        def method(self, w):
            return self(w)

    for model in (Model(1.0), Model(2.0)):
        for function in (model, model.method):
            fit = qd.fit(function, np.zeros(2), draws=4, progress=False)
            np.testing.assert_allclose(fit.mean, model.f, atol=1e-6)


def test_recursive_functions_have_a_fingerprint():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    fit = qd.fit(lambda w: -0.5 * jnp.sum(power(w, 2)), np.zeros(2), draws=4, progress=False)
    np.testing.assert_allclose(fit.sd, 1.0, atol=1e-6)


def test_transforms_are_part_of_what_is_compiled():
    log_density = lambda w: 4.0 * jnp.log(w) - 2.0 * w
    positive = qd.fit(log_density, 1.0, transforms=qd.positive, draws=16, progress=False)
    narrow = qd.fit(log_density, 1.0, transforms=qd.interval(0.0, 2.0), draws=16, progress=False)
    assert positive.mean > 2.0 > narrow.mean
