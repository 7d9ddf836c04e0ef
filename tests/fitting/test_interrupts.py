"""Ctrl-C as a user presses it: a real signal, in a process that must end well whatever JAX is doing."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.fitting.run import Run
from quenched.interrupts import (
    interrupts_afterwards,
    interrupts_at_once,
    interrupts_held,
    interrupts_obeyed,
    interrupts_unobeyed,
    obey_interrupts,
)
from quenched.trust import lookout

# A thread presses Ctrl-C once: when a file is there, or when the main thread is in a function of this name.
PRESSED = """
import os, pathlib, signal, sys, threading, time, traceback

import jax.numpy as jnp
import numpy as np

import quenched as qd


def inside(name):
    frame = sys._current_frames().get(threading.main_thread().ident)
    while frame is not None and frame.f_code.co_name != name:
        frame = frame.f_back
    return frame is not None


def press(when):
    while not (pathlib.Path("traced").exists() if when == "compiling" else inside(when)):
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)


def log_density(w, data=None):
    x = w
    for k in range(3):  # enough to compile for seconds
        x = jnp.tanh(x + 0.1 * k * jnp.cos(x[::-1])) + w * jnp.exp(-(x**2))
    pathlib.Path("traced").touch()
    return -jnp.sum((w - (0.0 if data is None else data)) ** 4) - 0.5 * jnp.sum((x - 1.0) ** 2)


threading.Thread(target=press, args=sys.argv[1:2], daemon=True).start()
start = np.zeros(4)
try:
    if sys.argv[2] == "many":
        data = np.linspace(0.0, 1.0, 3000)[:, None]
        fit = qd.fit_many(log_density, start, data, draws=512, check=2, progress=False)
        print("interrupted" if "interrupted" in fit.status else "finished")
    else:
        check = 5_000_000 if sys.argv[1] == "check" else 100
        fit = qd.fit(log_density, start, draws=64, check=check, progress=False)
        print(fit.status, np.isfinite(fit.bound))
        if sys.argv[2] == "diagnosed":
            fit.diagnose(progress=False, replicates=1000)
except KeyboardInterrupt as error:
    raised = pathlib.Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    print("raised by", "us" if "quenched" in raised.parts else raised)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


@pytest.mark.parametrize(
    ("when", "what", "said"),
    [
        ("compiling", "one", "raised by us"),
        ("check", "one", "interrupted True"),
        ("drive", "many", "interrupted"),
        ("draw_error", "diagnosed", "converged True\nraised by us"),
    ],
)
def test_a_signal_is_obeyed_outside_of_jax(when, what, said, tmp_path):
    (tmp_path / "pressed.py").write_text(PRESSED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "pressed.py", when, what], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr[-2000:]


def press():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def heard():
    """A handler of the user's own."""
    numbers, before = [], signal.signal(signal.SIGINT, lambda number, frame: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGINT, before)


def test_a_signal_waits_for_the_next_piece_of_work():
    before = signal.getsignal(signal.SIGINT)
    with interrupts_held():
        with interrupts_held():
            press()
        with pytest.raises(KeyboardInterrupt):
            obey_interrupts()
    assert signal.getsignal(signal.SIGINT) is before
    obey_interrupts()  # nothing is left of it


def test_a_second_signal_does_not_wait():
    with interrupts_held():
        press()
        with pytest.raises(KeyboardInterrupt):
            press()
        obey_interrupts()


def test_a_signal_waits_until_all_is_kept():
    with interrupts_held():
        with interrupts_unobeyed():
            press()
            obey_interrupts()
            with interrupts_at_once():
                pass
        with pytest.raises(KeyboardInterrupt):
            obey_interrupts()


def test_a_second_signal_ends_even_that():
    with interrupts_held(), interrupts_unobeyed():
        press()
        with pytest.raises(KeyboardInterrupt):
            press()


def test_a_signal_that_was_obeyed_is_known_until_the_outermost_scope_ends():
    with interrupts_held():
        with interrupts_held():
            press()
            assert not interrupts_obeyed()
            with pytest.raises(KeyboardInterrupt):
                obey_interrupts()
        assert interrupts_obeyed()
    assert not interrupts_obeyed()
    with interrupts_held():
        assert not interrupts_obeyed()


def test_a_signal_that_stops_nothing_was_not_obeyed(heard):
    with interrupts_held():
        press()
        obey_interrupts()
        assert heard
        assert not interrupts_obeyed()


def test_a_signal_may_wait_until_all_is_done_and_is_not_forgotten():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts_afterwards():
        done.append(press())
    assert done
    with interrupts_held():
        with interrupts_afterwards():
            press()
        with pytest.raises(KeyboardInterrupt):
            obey_interrupts()


@pytest.mark.parametrize("noted", [True, False], ids=["a second one", "in a function on the host"])
def test_a_signal_among_garbage_is_not_lost(noted):
    """Python shows what a callback of its collector raises, and goes on."""
    collected = lambda phase, info: press() if phase == "start" else None
    with interrupts_held():
        if noted:
            press()
        with contextlib.nullcontext() if noted else interrupts_at_once():
            gc.callbacks.append(collected)
            gc.collect()
            gc.callbacks.remove(collected)
        with pytest.raises(KeyboardInterrupt):
            obey_interrupts()


def test_a_signal_does_not_wait_for_a_function_on_the_host():
    with interrupts_held():
        with pytest.raises(KeyboardInterrupt), interrupts_at_once():
            press()
        press()
        with pytest.raises(KeyboardInterrupt), interrupts_at_once():
            pytest.fail("it was waiting already")


def test_a_result_is_not_lost_to_a_signal_that_came_too_late():
    with interrupts_held():
        press()
    obey_interrupts()


def test_another_handler_is_told_of_every_signal(heard):
    with interrupts_held():
        press()
        assert not heard
    assert heard == [signal.SIGINT]
    with interrupts_held():
        press()
        obey_interrupts()
        assert len(heard) == 2
    assert len(heard) == 2


def test_only_the_main_thread_has_signals():
    seen = []

    def other():
        with interrupts_held():
            seen.append(signal.getsignal(signal.SIGINT))
        obey_interrupts()

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=other)
    with interrupts_held():
        press()
        thread.start()
        thread.join()
        with pytest.raises(KeyboardInterrupt):  # the other has not taken it
            obey_interrupts()
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen[1] is before


def test_a_fit_leaves_the_handler_as_it_was(heard):
    """Also when its function presses Ctrl-C while JAX traces it: a handler that does nothing stops nothing."""
    handler = signal.getsignal(signal.SIGINT)

    def log_density(w):
        press()
        return -0.5 * (w @ w)

    assert qd.fit(log_density, np.zeros(2), draws=8, progress=False).converged
    assert heard
    assert signal.getsignal(signal.SIGINT) is handler


class Pressed(qd.Joint):
    """Ctrl-C at the beginning of an ascent."""

    def run(self, *arguments):
        press()
        return super().run(*arguments)


def test_a_signal_in_an_ascent_keeps_what_was_reached():
    log_density = lambda w: -jnp.sum(w**4) - jnp.sum(jnp.exp(w))
    fit = qd.fit(log_density, np.zeros(3), draws=16, check=10, method=Pressed(), progress=False)
    assert fit.status == "interrupted"
    assert np.isfinite([fit.bound, fit.check_bound]).all()


def test_a_signal_while_jax_traces_is_raised_by_us():
    def log_density(w):
        press()
        return -0.5 * (w @ w)

    with pytest.raises(KeyboardInterrupt) as raised:
        qd.fit(log_density, np.zeros(2), draws=8, progress=False)
    assert raised.traceback[-1].path.name == "interrupts.py"


# Ctrl-C when a module of ours is imported for the first time, which is when a public name is first asked for.
IMPORTED = """
import os, signal, sys, traceback

import quenched as qd


class Presses:
    def find_spec(self, name, path=None, target=None):
        if name == "quenched.fitting.fit":
            os.kill(os.getpid(), signal.SIGINT)


sys.meta_path.insert(0, Presses())
try:
    qd.fit
except KeyboardInterrupt as error:
    print(traceback.extract_tb(error.__traceback__)[-1].filename.rpartition("/")[2], hasattr(sys.modules["quenched.fitting"], "fit"))
"""


def test_a_signal_leaves_no_module_half_imported():
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "interrupts.py True", done.stderr


def test_a_signal_while_a_target_is_looked_at_waits_for_the_end_of_that(monkeypatch):
    fit = qd.fit(lambda w: -0.5 * (w @ w), np.zeros(2), draws=8, progress=False)
    whole = lookout.look_further

    def pressed(*inputs):
        press()
        return whole(*inputs)

    monkeypatch.setattr(lookout, "look_further", pressed)
    with pytest.raises(KeyboardInterrupt) as raised:
        fit.verdict  # noqa: B018
    assert raised.traceback[-1].path.name == "interrupts.py"
    monkeypatch.undo()
    assert fit.verdict


def skewed(w):
    return jnp.sum(0.5 * w - jnp.exp(w))


def _pressed(monkeypatch, name, times):
    """A method of runs, in which Ctrl-C is pressed when it has been called so many times; and the families that were fitted."""
    fitted, whole = [], getattr(Run, name)

    def pressing(run, *arguments, **options):
        fitted.append(run.settings.family.name)
        if len(fitted) == times:
            press()
            obey_interrupts()
        return whole(run, *arguments, **options)

    monkeypatch.setattr(Run, name, pressing)
    return fitted


def test_a_signal_among_remarks_begins_no_other_family(monkeypatch):
    fitted = _pressed(monkeypatch, "remarks", 1)
    fit = qd.fit(skewed, np.zeros(2), family="auto", progress=False)
    assert fitted == ["full"]
    assert fit.converged
    assert "Interrupted before a warped posterior was found." in fit.message


def test_a_signal_in_a_second_family_keeps_the_first(monkeypatch):
    fitted = _pressed(monkeypatch, "fit", 2)
    fit = qd.fit(skewed, np.zeros(2), family="auto", progress=False)
    assert fitted == ["full", "warped"]
    assert fit.converged
    assert fit.settings["family"] == "full"
    assert "Interrupted before a warped posterior was found." in fit.message


class PressedLater(qd.Joint):
    """Ctrl-C in the middle of the ascent of a warped posterior, which then has reached something."""

    def run(self, objective, base, *arguments):
        if not base.origin.reference.affine:
            press()
        return super().run(objective, base, *arguments)


def test_a_signal_in_a_second_ascent_is_not_called_too_long():
    fit = qd.fit(skewed, np.zeros(2), family="auto", method=PressedLater(), progress=False)
    assert fit.converged
    assert fit.settings["family"] == "full"
    assert "Interrupted before a warped posterior was found." in fit.message
