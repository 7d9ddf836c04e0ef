"""A program that does not return is noticed, and leaves Python able to answer."""

import os
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched.execute import Wait, waiting


@jax.jit
def slow(x):
    """Something to wait for: a program on a result that is not there yet does not run in the thread that calls it."""
    return jax.lax.fori_loop(0, 40, lambda _, y: jnp.tanh(y @ y), x)


def held_up_by(event, begun=None):
    """A program that returns when the event is set, and says when it has begun."""

    def hold(x):
        if begun is not None:
            begun.set()
        event.wait()
        return np.asarray(x)

    held = jax.jit(lambda x: jax.pure_callback(hold, jax.ShapeDtypeStruct(x.shape, x.dtype), x))
    return lambda: held(slow(jnp.ones((600, 600), jnp.float32)))


def test_a_result_comes_through_as_it_is():
    wait = Wait("nothing much")
    assert wait({"a": np.ones(2), "b": 3.0})["b"] == 3.0
    np.testing.assert_array_equal(wait((slow(jnp.eye(300)), None))[0], slow(jnp.eye(300)))


def test_how_long_it_took_is_remembered():
    wait = Wait("a slow program")
    assert wait.patience == waiting.FIRST_PATIENCE
    wait(slow(jnp.ones((600, 600))))
    assert wait.longest is not None
    assert wait.patience == max(waiting.PATIENCE, 100.0 * wait.longest)
    assert not wait.quick  # so it is not looked at over and over, next time


def test_an_error_in_the_program_is_raised_where_its_result_is_used():
    def fail(x):
        raise ZeroDivisionError("in the callback")

    failing = jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), x.dtype), x[0, 0]))
    result = Wait("an error")(failing(slow(jnp.ones((600, 600), jnp.float32))))
    with pytest.raises(jax.errors.JaxRuntimeError, match="in the callback"):
        float(result)


several_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else False,
    reason="on one core JAX runs a program with a callback in the thread that calls it: there is nothing to wait for",
)


@several_cores
def test_a_stuck_program_is_reported_and_still_awaited(monkeypatch):
    monkeypatch.setattr(waiting, "FIRST_PATIENCE", 0.5)
    event = threading.Event()
    with pytest.warns(RuntimeWarning, match=r"computing the stuck one for .*\(jaxlib .* Ctrl-C") as told:  # noqa: PT031

        def release():
            while not told.list:
                time.sleep(0.1)
            event.set()

        threading.Thread(target=release, daemon=True).start()
        result = Wait("the stuck one")(held_up_by(event)())
    assert len(told) == 1
    assert result.shape == (600, 600)


INTERRUPTED = """
import os, signal, sys, threading, time

import jax.numpy as jnp

from quenched.execute import Wait, waiting
from test_waiting import held_up_by, slow

stuck = sys.argv[1] == "stuck"
waiting.FIRST_PATIENCE = 0.5 if stuck else 600.0
event, begun = threading.Event(), threading.Event()

def interrupt():
    begun.wait()
    time.sleep(2.0)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1.0)
    if not stuck:
        event.set()

threading.Thread(target=interrupt, daemon=True).start()
try:
    Wait("the stuck one")(held_up_by(event, begun)())
except KeyboardInterrupt as stop:
    print(type(stop).__name__)
if not stuck:  # JAX runs the programs of a thread one after the other
    print(float(Wait("another")(slow(jnp.zeros((200, 200))))[0, 0]))
"""


@several_cores
@pytest.mark.parametrize(("case", "raised", "code"), [("stuck", "StuckProgram", 1), ("slow", "KeyboardInterrupt", 0)])
def test_an_interrupt_is_answered_and_the_process_ends(case, raised, code, request):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, case],
        cwd=request.path.parent,
        timeout=300,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [raised, *(["0.0"] if case == "slow" else [])], done.stderr
    assert done.returncode == code, done.stderr
    assert ("probably stuck" in done.stderr) == (case == "stuck")
