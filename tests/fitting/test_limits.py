"""Limits are kept, whatever a fit is doing: by a clock that the function itself moves, so that nothing here is timed."""

import contextlib
import gc
import os
import subprocess
import sys
import weakref
from collections import namedtuple

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched import forks, threads
from quenched.compiling import program
from quenched.execute import address_space, deadline
from quenched.execute import living as living_
from quenched.execute.living import Living
from quenched.fitting import progress
from quenched.objective import problem


class Clock:
    def __init__(self):
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    monkeypatch.setattr(deadline, "time", made)
    return made


@pytest.mark.parametrize(
    "options",
    [{}, {"starts": 20}, {"check": 1000}, {"family": "diagonal"}, {"method": qd.Alternating()}, {"seconds": 60.0}],
    ids=str,
)
def test_time_is_up_within_one_call_and_a_second(options, clock):
    calls, limit = [], options.get("seconds", 5.0)

    def function(w):
        calls.append(clock.now)
        clock.now += 0.1
        return -float(np.sum(np.cosh(w))), -np.sinh(w)

    asked = {name: value for name, value in options.items() if name != "seconds"}
    fit = qd.fit(qd.from_value_and_grad(function), np.zeros(2), max_seconds=limit, progress=False, **asked)
    assert clock.now <= limit + 1.0 + 1e-9
    assert fit.status in ("max_seconds", "converged")
    assert limit < 60.0 or np.isfinite([fit.bound, fit.check_bound]).all()


@pytest.mark.parametrize("limit", [60.0, 80.0, 100.0, 140.0])
def test_time_may_be_up_before_the_first_check_draw(limit, clock):
    """One call takes longer than what is left for the check."""

    def function(w):
        clock.now += 1.0
        return -float(np.sum(np.cosh(w))), -np.sinh(w)

    fit = qd.fit(qd.from_value_and_grad(function), np.zeros(3), max_seconds=limit, progress=False)
    assert fit.status == "max_seconds"
    assert np.isfinite(fit.bound) or "not known" in fit.message
    assert clock.now <= limit + 2.0


def test_nothing_known_is_said(clock):
    def function(w):
        clock.now += 10.0
        return -float(w @ w), -2.0 * w

    fit = qd.fit(qd.from_value_and_grad(function), np.zeros(2), max_seconds=1.0, progress=False)
    assert fit.status == "max_seconds"
    assert "not known anywhere by then" in fit.message


# Memory.


def test_functions_that_come_back_are_kept_and_others_let_go():
    made = []
    living = Living(lambda key: made.append(key) or object(), lambda key: 1)
    first = living("first")
    assert living("first") is first
    for number in range(100):
        living(number)
    assert living("first") is first
    assert living.cache_info().currsize < 10
    before = len(made)
    living(3)  # it was let go, and is known
    for number in range(100, 150):
        living(number)
    living(3)
    assert made[before:].count(3) == 1


def test_functions_that_hold_much_are_let_go_at_once():
    living = Living(lambda key: object(), lambda key: 5_000_000)
    for number in range(10):
        living(number)
        assert living.cache_info().currsize == 1


def test_all_are_let_go_when_programs_are_too_many(monkeypatch):
    """Those that others have compiled do not count: they are there after all of ours have gone."""
    programs = [1000]
    monkeypatch.setattr(living_, "count_programs", lambda: programs[0])
    living = Living(lambda key: object(), lambda key: 1)
    first = living("first")
    assert living("first") is first
    living("second")  # as many of others' as there are, nobody knows better yet
    first = living("first")
    living("third")
    assert living("first") is first
    programs[0] += living_._MOST_PROGRAMS + 1
    living("fourth")
    assert living("first") is not first


def test_of_functions_that_come_back_and_hold_much_the_last_are_kept():
    """Programs hold it many times: of 10 MB each, two are kept."""
    living = Living(lambda key: object(), lambda key: 10_000_000)
    for number in (1, 2, 1, 3):
        made = [living(number) for _ in range(2)]
        assert made[0] is made[1]
    kept = living(1)
    assert living(1) is kept
    assert living.cache_info().currsize == 2
    assert living(3) is made[0]


def test_all_are_let_go_when_the_process_has_grown(monkeypatch):
    """Once, not at every look: what is left then is not theirs."""
    held = [1e9]
    monkeypatch.setattr(living_, "resident", lambda: held[0])
    monkeypatch.setattr(living_, "count_programs", lambda: 0)
    living = Living(lambda key: object(), lambda key: 1)
    first = living("first")
    held[0] += 0.9 * living_._MOST_BYTES
    living("second")
    assert living("first") is first
    held[0] += 0.2 * living_._MOST_BYTES
    living("third")
    again = living("first")
    assert again is not first
    living("fourth")
    assert living("first") is again


def test_programs_of_our_own_are_let_go_with_all_others():
    made = program(lambda x: x + 1.0)
    made(1.0)
    assert made._cache_size() == 1
    problem._programs.cache_clear()
    assert made._cache_size() == 0


def fit_a_closure() -> weakref.ref:
    data = np.full(1000, 2.0)
    log_density = lambda w: -0.5 * jnp.sum((w - data[:2]) ** 2) - jnp.sum(jnp.cosh(w))
    qd.fit(log_density, np.zeros(2), draws=8, check=64, progress=False)
    return weakref.ref(data)


def test_a_closure_is_freed_with_its_data():
    gone = fit_a_closure()
    problem._programs.cache_clear()
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(("left", "refused"), [(10 * 2**20, True), (2**40, False)])
def test_a_limit_on_address_space_is_looked_at_before_linear_algebra_can_wait_for_it(monkeypatch, left, refused):
    monkeypatch.setattr(address_space, "_taken", False)
    monkeypatch.setattr(address_space, "_space_left", lambda: left)
    taken = []
    monkeypatch.setattr(address_space, "_take", taken.append)
    words = pytest.raises(
        MemoryError, match=r"memory: there is not enough of it: the limit.* leaves 10 MB.*fewer cores"
    )
    for _ in range(2):
        with words if refused else contextlib.nullcontext():
            qd.fit(lambda w: -0.5 * w**2, 0.0, draws=8, check=64, progress=False)
    assert len(taken) == (0 if refused else 1)


# Processes and threads.


def test_a_process_that_was_forked_after_a_fit_says_so_at_once(monkeypatch):
    monkeypatch.setattr(forks, "_first", os.getpid() + 1)
    with pytest.raises(ValueError, match=r"fork: this process was forked after a fit.*spawn"):
        qd.fit(lambda w: -(w**2), 0.0, progress=False)


def test_so_does_what_a_fit_is_asked_for_afterwards(monkeypatch):
    fit = qd.fit(lambda p: -0.5 * jnp.log(p) ** 2, 1.0, transforms=qd.positive, draws=8, check=64, progress=False)
    monkeypatch.setattr(forks, "_first", os.getpid() + 1)
    with pytest.raises(ValueError, match=r"fork: this process was forked after a fit"):
        fit.sample(3, seed=0)


def test_blas_is_as_before_whoever_leaves_last(monkeypatch):
    settings = []

    class Controller:
        def limit(self, **options):
            settings.append("one")
            return self

        def restore_original_limits(self):
            settings.append("before")

    monkeypatch.setattr(threads, "_controller", lambda with_scipy: Controller())
    first, second = threads.quiet_blas(False), threads.quiet_blas(False)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert settings == ["one"]
    second.__exit__(None, None, None)
    assert settings == ["one", "before"]


def test_a_library_that_comes_in_the_middle_of_a_fit_is_quiet_too(monkeypatch):
    """SciPy has a BLAS of its own, which is loaded when it is first asked for."""
    settings = []

    class Controller:
        def __init__(self, with_scipy):
            self.with_scipy = with_scipy

        def limit(self, **options):
            settings.append(("one", self.with_scipy))
            return self

        def restore_original_limits(self):
            settings.append(("before", self.with_scipy))

    monkeypatch.setattr(threads, "_controller", Controller)
    monkeypatch.delitem(sys.modules, "scipy.linalg", raising=False)
    with threads.quiet_blas(False):
        threads.in_one_thread(lambda: settings.append("factored"))()
        assert settings == [("one", False), ("one", True), "factored"]
    assert settings[3:] == [("before", True), ("before", False)]


FIRST_FIT = """
import sys
import jax.numpy as jnp, numpy as np
import quenched as qd
from threadpoolctl import threadpool_info

seen = set()


def look():
    seen.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")


def log_density(w):
    covariance = jnp.eye(3) + jnp.exp(w)
    return -0.5 * jnp.sum(w**2) - jnp.sum(jnp.log(jnp.diag(jnp.linalg.cholesky(covariance))))


assert "scipy.linalg" not in sys.modules
from quenched.fitting import rounds

check = rounds.check
rounds.check = lambda *given, **options: (look(), check(*given, **options))[1]
qd.fit(log_density, 0.0, draws=8, check=64, progress=False)
assert "scipy.linalg" in sys.modules
print(*seen)
"""


def test_the_first_fit_that_needs_lapack_has_one_thread_for_it():
    """JAX loads it while it compiles: in the middle of the fit."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_FIT], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.split() == ["1"], done.stderr


Pair = namedtuple("Pair", "slope level")


@pytest.mark.parametrize(
    "start",
    [Pair(0.0, np.zeros(2)), {("a", 1): 0.0, ("b", 2): 1.0}, {1: 0.0, 2: np.zeros(2)}, {b"k": 0.0}, {np.int64(3): 0.0}],
    ids=["named tuple", "tuples", "numbers", "bytes", "numpy numbers"],
)
def test_containers_come_back_as_they_were(start, tmp_path):
    import jax

    fit = qd.fit(lambda p: -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(p)), start, draws=8, progress=False)
    loaded = qd.load(fit.save(tmp_path / "fit.npz"))
    assert type(loaded.mean) is type(start)
    assert jax.tree.structure(loaded.mean) == jax.tree.structure(fit.mean)
