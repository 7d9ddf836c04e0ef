"""A compiled program is used again only where what its function sees is known to be unchanged."""

import os
import sys
import threading
import time
from collections import deque, namedtuple
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import quenched as qd
from quenched.objective.problem import _programs
from quenched.targets import fingerprint
from tracing import Traces

Y = 1.0
SETTINGS = ModuleType("settings")
SETTINGS.y = 1.0
WAYS, MORE_WAYS, CONSTANT, UNKNOWN = {}, {}, {}, {}


def way(registry):
    """A way to see y: returns a function of (w, ) whose mode is y, and what changes y from 1 to 5."""
    return lambda make: registry.setdefault(make.__name__.replace("_", " "), make)


def towards(y):
    return lambda w: -0.5 * jnp.sum((w - y()) ** 2)


class Model:
    """As an applied user would write it; reading the file is not part of the density."""

    def __init__(self, y=1.0):
        self.y = y
        self.path = Path("somewhere.csv")

    def log_density(self, w):
        return -0.5 * jnp.sum((w - self.y) ** 2)

    def predict(self, w, x):
        return x * w + self.y

    def load(self):
        return open(self.path).read()

    __call__ = log_density


# The fourteen ways of the attack, ten of which gave the old answer.


@way(WAYS)
def attribute_of_a_bound_method():
    model = Model()
    return model.log_density, lambda: setattr(model, "y", 5.0)


@way(WAYS)
def attribute_of_a_callable_object():
    model = Model()
    return model, lambda: setattr(model, "y", 5.0)


@way(WAYS)
def partial_of_a_method():
    model = Model()
    return partial(model.log_density), lambda: setattr(model, "y", 5.0)


@way(WAYS)
def module_attribute():
    SETTINGS.y = 1.0
    return lambda w: -0.5 * jnp.sum((w - SETTINGS.y) ** 2), lambda: setattr(SETTINGS, "y", 5.0)


@way(WAYS)
def data_frame():
    frame = pd.DataFrame({"y": [1.0], "name": ["a"]})
    return towards(lambda: frame["y"].to_numpy()[0]), lambda: frame.__setitem__("y", [5.0])


@way(WAYS)
def object_array():
    array = np.array([1.0, "name"], dtype=object)
    return towards(lambda: array[0]), lambda: array.__setitem__(0, 5.0)


@way(WAYS)
def set_changed_in_place():
    values = {1.0}
    return towards(lambda: max(values)), lambda: values.add(5.0)


@way(WAYS)
def environment_variable():
    os.environ["QUENCHED_TEST_Y"] = "1.0"
    return towards(lambda: float(os.environ["QUENCHED_TEST_Y"])), lambda: os.environ.update(QUENCHED_TEST_Y="5.0")


@way(WAYS)
def attribute_that_a_helper_reads():
    model = Model()
    helper = lambda w: w - model.y
    return lambda w: -0.5 * jnp.sum(helper(w) ** 2), lambda: setattr(model, "y", 5.0)


@way(WAYS)
def array_overwritten():
    array = np.ones(1)
    return towards(lambda: array[0]), lambda: array.fill(5.0)


@way(WAYS)
def list_changed_in_place():
    values = [1.0]
    return towards(lambda: values[0]), lambda: values.__setitem__(0, 5.0)


@way(WAYS)
def dict_changed_in_place():
    values = {"y": np.ones(1)}
    return towards(lambda: values["y"][0]), lambda: values.update(y=5.0 * np.ones(1))


@way(WAYS)
def global_replaced():
    globals()["Y"] = 1.0
    return lambda w: -0.5 * jnp.sum((w - Y) ** 2), lambda: globals().update(Y=5.0)


def mean_of(target):
    return np.asarray(qd.fit(target, np.zeros(1), draws=4, progress=False).mean).item()


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    monkeypatch.setenv("QUENCHED_TEST_Y", "1.0")


@pytest.mark.parametrize("name", WAYS)
def test_what_a_function_sees_has_changed(name):
    """A stale program would give the old answer without a word."""
    function, change = WAYS[name]()
    assert mean_of(function) == pytest.approx(1.0, abs=1e-6)
    change()
    assert mean_of(function) == pytest.approx(5.0, abs=1e-6)


def test_what_the_function_of_a_regression_sees_has_changed():
    """The fourteenth way."""
    model, x = Model(0.0), np.linspace(-1.0, 1.0, 20)
    y = 2.0 * x + 3.0 + 0.01 * np.sin(50.0 * x)
    fit = lambda: qd.fit(qd.regression(model.predict, x[:, None], y[:, None]), np.zeros(1), draws=4, progress=False)
    before = fit()
    model.y = 3.0
    after = fit()
    assert after.bound > before.bound + 10.0
    assert after.hyper["noise_precision"] > 1e3


# Others, by the fingerprint alone.


@way(MORE_WAYS)
def slots():
    class Slotted:
        __slots__ = ("y",)

        def __call__(self, w):
            return w - self.y

    model = Slotted()
    model.y = 1.0
    return model, lambda: setattr(model, "y", 5.0)


@way(MORE_WAYS)
def dataclass_inside_a_named_tuple():
    @dataclass
    class Inner:
        y: list = field(default_factory=lambda: [np.ones(2)])

    inner = Inner()
    outer = namedtuple("outer", "inner")(inner)
    return towards(lambda: outer.inner.y[0]), lambda: inner.y[0].fill(5.0)


@way(MORE_WAYS)
def class_attribute():
    class WithDefault:
        y = 1.0

        def __call__(self, w):
            return w - self.y

    return WithDefault(), lambda: setattr(WithDefault, "y", 5.0)


@way(MORE_WAYS)
def attribute_of_a_base_class():
    class Base:
        y = 1.0

    class Derived(Base):
        def __call__(self, w):
            return w - super().y

    return Derived(), lambda: setattr(Base, "y", 5.0)


@way(MORE_WAYS)
def global_that_a_property_reads():
    globals()["Y"] = 1.0

    class WithProperty:
        @property
        def y(self):
            return Y

        def __call__(self, w):
            return w - self.y

    return WithProperty(), lambda: globals().update(Y=5.0)


@way(MORE_WAYS)
def global_that_an_operator_reads():
    globals()["Y"] = 1.0

    class Kernel:
        def __matmul__(self, w):
            return Y * w

    kernel = Kernel()
    return lambda w: kernel @ w, lambda: globals().update(Y=5.0)


@way(MORE_WAYS)
def global_that_a_constructor_reads():
    globals()["Y"] = 1.0

    class Made:
        def __init__(self):
            self.y = Y

    return lambda w: w - Made().y, lambda: globals().update(Y=5.0)


@way(MORE_WAYS)
def method_that_an_installed_class_calls():
    globals()["Y"] = 1.0

    class Steps(deque):
        def __iter__(self):
            return iter([Y])

    steps = Steps()
    return lambda w: sum(steps) * w, lambda: globals().update(Y=5.0)


@way(MORE_WAYS)
def module_attribute_by_another_function():
    SETTINGS.y = 1.0
    read = lambda module: module.y
    return lambda w: w - read(SETTINGS), lambda: setattr(SETTINGS, "y", 5.0)


@way(MORE_WAYS)
def module_attribute_by_its_name():
    SETTINGS.y = 1.0
    return lambda w: w - getattr(SETTINGS, "y"), lambda: setattr(SETTINGS, "y", 5.0)  # noqa: B009


@way(MORE_WAYS)
def module_imported_inside_the_function():
    sys.modules["settings_of_a_test"] = SETTINGS
    SETTINGS.y = 1.0

    def function(w):
        import settings_of_a_test as settings

        return w - settings.y

    return function, lambda: setattr(SETTINGS, "y", 5.0)


@way(MORE_WAYS)
def attribute_of_a_function():
    def function(w):
        return w - function.y

    function.y = 1.0
    return function, lambda: setattr(function, "y", 5.0)


@way(MORE_WAYS)
def code_of_a_helper():
    def helper(w):
        return w

    return lambda w: helper(w), lambda: setattr(helper, "__code__", (lambda w: 2 * w).__code__)


@way(MORE_WAYS)
def function_behind_jax():
    values = [1.0]
    batched = jax.vmap(lambda w: w - values[0])
    return lambda w: jnp.sum(batched(w)), lambda: values.append(5.0)


@way(MORE_WAYS)
def function_behind_a_cache():
    values = [1.0]
    cached = lru_cache(lambda: values[0])
    return lambda w: w - cached(), lambda: values.append(5.0)


@way(MORE_WAYS)
def series():
    column = pd.Series([1.0, 2.0], index=["a", "b"])
    return towards(lambda: column["a"]), lambda: column.__setitem__("a", 5.0)


@way(MORE_WAYS)
def index_of_a_series():
    column = pd.Series([1.0, 5.0], index=["a", "b"])
    return towards(lambda: column["a"]), lambda: setattr(column, "index", ["b", "a"])


@way(MORE_WAYS)
def sparse_matrix():
    matrix = sparse.csr_array(np.eye(2))
    return lambda w: w - matrix.data, lambda: matrix.data.fill(5.0)


@way(MORE_WAYS)
def masked_array():
    array = np.ma.masked_array([1.0, 5.0], mask=[False, True])
    return towards(lambda: array.max()), lambda: array.mask.fill(False)


@way(MORE_WAYS)
def kind_of_a_number():
    values = {"y": 1}
    return towards(lambda: values["y"]), lambda: values.update(y=True)


@way(MORE_WAYS)
def sign_of_zero():
    values = [0.0]
    return towards(lambda: 1.0 / values[0]), lambda: values.__setitem__(0, -0.0)


@way(MORE_WAYS)
def key_of_another_kind():
    values = {1: 1.0}
    return towards(lambda: values.get("1", 5.0)), lambda: values.update({"1": values.pop(1)})


@way(MORE_WAYS)
def method_of_a_dict():
    values = {"y": 1.0}
    get = values.get
    return towards(lambda: get("y")), lambda: values.update(y=5.0)


@way(MORE_WAYS)
def attribute_of_a_dict_of_its_own_kind():
    class Settings(dict):
        y = 0.0

    settings = Settings()
    settings.y = 1.0
    return towards(lambda: settings.y), lambda: setattr(settings, "y", 5.0)


@way(MORE_WAYS)
def view_of_a_dict():
    values = {"y": 1.0}
    view = MappingProxyType(values)
    return towards(lambda: view["y"]), lambda: values.update(y=5.0)


@way(MORE_WAYS)
def bytes_changed_in_place():
    buffer = bytearray([1])
    return towards(lambda: buffer[0]), lambda: buffer.__setitem__(0, 5)


@way(MORE_WAYS)
def numbers_in_a_queue():
    values = deque([1.0])
    return towards(lambda: values[-1]), lambda: values.append(5.0)


@way(MORE_WAYS)
def default_argument():
    function = lambda w, y=(1.0,): w - y[0]
    return function, lambda: setattr(function, "__defaults__", ((5.0,),))


@pytest.mark.parametrize("name", MORE_WAYS)
def test_the_fingerprint_changes_with_what_is_seen(name):
    function, change = MORE_WAYS[name]()
    before = fingerprint(function)
    assert before is not None
    assert fingerprint(function) == before
    change()
    assert fingerprint(function) != before


# What must not be traced again.


@way(CONSTANT)
def object_with_methods_that_are_not_called():
    return Model().log_density


@way(CONSTANT)
def arrays_of_jax():
    array = jnp.ones(3)
    return lambda w: array @ w


@way(CONSTANT)
def functions_of_installed_packages():
    from jax.scipy.special import expit
    from jax.scipy.stats import norm

    return lambda w: jnp.sum(norm.logpdf(w)) + jax.nn.relu(w) + expit(w) * np.exp(sys.float_info.min)


@way(CONSTANT)
def functions_behind_jax():
    array = np.ones(3)
    compiled = jax.jit(lambda w: w @ array)
    slope = jax.grad(compiled)
    return lambda w: compiled(w) + jnp.sum(slope(w)) + jax.checkpoint(compiled)(w)


@way(CONSTANT)
def equinox_modules():
    class Layer(eqx.Module):
        weight: jax.Array
        activation: object = eqx.field(static=True)

        def __call__(self, w):
            return self.activation(self.weight @ w)

    return Layer(jnp.ones(3), jnp.tanh)


@way(CONSTANT)
def pandas_and_scipy():
    frame = pd.DataFrame({"y": [1.0, np.nan], "name": ["a", None], "when": pd.to_datetime(["2020-01-01", None])})
    frame["kind"] = pd.Categorical(["u", "v"])
    frame["count"] = pd.array([1, None], dtype="Int64")
    matrix = sparse.csr_matrix(np.eye(2))
    return lambda w: frame["y"].to_numpy() @ (matrix @ w)


@way(CONSTANT)
def objects_that_refer_to_each_other():
    one, other = SimpleNamespace(y=1.0), SimpleNamespace(y=2.0)
    one.other, other.other = other, one
    return lambda w: w - one.other.y


@way(CONSTANT)
def deep_nesting():
    nested = [1.0]
    for _ in range(20_000):
        nested = [nested, None]
    return lambda w: w - len(nested)


@way(CONSTANT)
def recursive_functions():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    return lambda w: power(w, 3)


@way(CONSTANT)
def not_a_number():
    values = {"y": [float("nan")], "z": float("nan")}
    return lambda w: w - values["y"][0]


@way(CONSTANT)
def cached_attributes():
    class Lazy:
        @cached_property
        def y(self):
            return np.ones(3)

        def __call__(self, w):
            return w @ self.y

    lazy = Lazy()
    assert lazy.y.size  # once it is there, it stays
    return lazy


@pytest.mark.parametrize("name", CONSTANT)
def test_what_has_not_changed_has_the_same_fingerprint(name):
    function = CONSTANT[name]()
    before = fingerprint(function)
    assert before is not None
    assert fingerprint(function) == before
    assert hash(fingerprint(function)) == hash(before)


def test_methods_and_objects_are_traced_once():
    """By identity or by equal content: an object made anew from the same numbers is the same log density."""
    traces = Traces()
    note = traces.logger

    class Noting(Model):
        def log_density(self, w):
            note.info("traced")
            return -0.5 * jnp.sum((w - self.y) ** 2)

    model = Noting(np.ones(1))
    for function in (model.log_density, model.log_density, partial(model.log_density), Noting(np.ones(1)).log_density):
        assert mean_of(function) == pytest.approx(1.0, abs=1e-6)
    assert traces.n == 2  # once for the methods, once for the partial
    model.y = 5.0 * np.ones(1)
    assert mean_of(model.log_density) == pytest.approx(5.0, abs=1e-6)
    assert traces.n == 3


def test_cached_properties_are_computed_before_they_are_traced():
    """What JAX makes of them in a trace would be of no use to the next one, and what NumPy makes would be new to it."""
    traces = Traces()
    note = traces.logger

    class Lazy:
        def __init__(self):
            self.y = np.ones(1)

        @cached_property
        def by_numpy(self):
            return 1.0 * self.y

        @cached_property
        def by_jax(self):
            return 1.0 * jnp.asarray(self.y)

        @cached_property
        def never(self):
            raise ZeroDivisionError

        def log_density(self, w):
            note.info("traced")
            return -0.5 * jnp.sum((w - 0.5 * (self.by_numpy + self.by_jax)) ** 2) + (self.never if len(w) > 1 else 0.0)

    lazy = Lazy()
    for _ in range(2):
        assert mean_of(lazy.log_density) == pytest.approx(1.0, abs=1e-6)
    assert traces.n == 1
    lazy.y = 5.0 * np.ones(1)
    del lazy.by_numpy, lazy.by_jax
    assert mean_of(lazy.log_density) == pytest.approx(5.0, abs=1e-6)


def test_what_was_kept_from_a_trace_is_named():
    class Keeping:
        kept = None

        def log_density(self, w):
            self.kept = jnp.sum(w) if self.kept is None else self.kept
            return -0.5 * jnp.sum(w**2) + 0.0 * self.kept

    keeping = Keeping()
    mean_of(keeping.log_density)
    with pytest.raises(ValueError, match=r"log_density: it uses a number that was kept"):
        mean_of(keeping.log_density)


# What is not known.


@way(UNKNOWN)
def files():
    return lambda w: open("somewhere").read()


@way(UNKNOWN)
def files_by_their_path():
    path = Path("somewhere")
    return lambda w: path.read_text()


@way(UNKNOWN)
def files_of_numbers():
    return lambda w: np.loadtxt("somewhere") @ w


@way(UNKNOWN)
def tables_in_files():
    return lambda w: pd.read_csv("somewhere")["y"].to_numpy() @ w


@way(UNKNOWN)
def the_environment():
    from os import environ

    return lambda w: float(environ["QUENCHED_TEST_Y"]) * w


@way(UNKNOWN)
def the_environment_inside_the_function():
    def function(w):
        import os

        return float(os.getenv("QUENCHED_TEST_Y")) * w

    return function


@way(UNKNOWN)
def the_clock():
    return lambda w: time.time() * w


@way(UNKNOWN)
def random_numbers():
    return lambda w: np.random.normal() * w  # noqa: NPY002


@way(UNKNOWN)
def a_random_generator():
    random = np.random.default_rng(0)
    return lambda w: random.normal() * w


@way(UNKNOWN)
def iterators():
    numbers = iter([1.0, 5.0])
    return lambda w: next(numbers) * w


@way(UNKNOWN)
def generators():
    numbers = (number for number in (1.0, 5.0))
    return lambda w: next(numbers) * w


@way(UNKNOWN)
def locks():
    lock = threading.Lock()
    return lambda w: lock.locked() * w


@way(UNKNOWN)
def whatever_eval_reads():
    return lambda w: eval("Y") * w


@way(UNKNOWN)
def more_than_can_be_followed():
    many = [[index] for index in range(200_000)]
    return lambda w: len(many) * w


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_may_change_unseen_has_no_fingerprint(name):
    assert fingerprint(UNKNOWN[name]()) is None


def test_a_program_that_may_be_stale_is_not_kept():
    """It is traced for one fit alone: once, and once more for the next."""
    traces = Traces()
    note = traces.logger

    def log_density(w):
        note.info("traced")
        return -0.5 * jnp.sum((w - float(os.environ["QUENCHED_TEST_Y"])) ** 2)

    before = _programs.cache_info().currsize
    for n in (1, 2):
        mean_of(log_density)
        assert traces.n == n
    assert _programs.cache_info().currsize == before
