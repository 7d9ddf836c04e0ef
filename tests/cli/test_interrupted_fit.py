"""A fit that is stopped from outside leaves what it reached."""

import os
import signal
import subprocess
import sys
import time

import pytest

import quenched as qd
from quenched.interrupts import obey_interrupts
from quenched.trust.further import look_further

# The first round needs too few draws, so a second follows. When the checkpoint of the first is there, the model says
# so by a file and sleeps until the signal comes.
MODEL = """
import pathlib
import time

import numpy as np

import quenched as qd

start = np.zeros(12)
slept = False


def value_and_gradient(p):
    global slept
    if not slept and pathlib.Path("out/model.npz").exists():
        slept = True
        pathlib.Path("second round").touch()
        time.sleep(120)
    return float(-np.sum(p**4) - np.sum(p)), -4.0 * p**3 - 1.0


log_density = qd.from_value_and_grad(value_and_gradient)
"""


@pytest.fixture
def second_round(command, write, tmp_path):
    """The running command, in its second round."""
    write("model.py", MODEL)
    arguments = [command, "fit", "model.py", "--tolerance", "0.001"]
    with subprocess.Popen(
        arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not (tmp_path / "second round").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        yield process
        process.kill()


def test_an_interrupt_keeps_what_was_reached(second_round, run, tmp_path):
    second_round.send_signal(signal.SIGINT)
    printed, complaints = second_round.communicate()
    assert second_round.returncode == 130, complaints
    fit = qd.load(tmp_path / "out" / "model.npz")
    assert fit.status == "interrupted"
    assert fit.n_rounds == 1  # the second had reached nothing yet
    assert fit.n_draws == fit.history[-1].n_draws
    assert "Interrupted; what was reached is kept." in printed
    assert "Not converged" in (tmp_path / "out" / "model.html").read_text(encoding="utf-8")
    (tmp_path / "model.py").write_text(MODEL.replace("slept = False", "slept = True"), encoding="utf-8")
    assert run("fit", "model.py", "--resume", "--quiet").returncode == 0
    assert qd.load(tmp_path / "out" / "model.npz").converged


def test_a_kill_leaves_the_last_round(second_round, tmp_path):
    second_round.kill()
    second_round.communicate()
    fit = qd.load(tmp_path / "out" / "model.npz")
    assert fit.n_rounds == 1
    assert fit.bound > fit.check_bound


# Ctrl-C while JAX traces, and so before it compiles; or in the middle of the diagnosis.
PRESSED = """
import os
import signal
import sys

import jax.numpy as jnp
import numpy as np

start = np.zeros(2)


def log_density(w):
    {press}
    return -0.5 * jnp.sum(w**2)
"""


def test_an_interrupt_while_jax_compiles_ends_without_a_traceback(run, write):
    write("model.py", PRESSED.format(press="os.kill(os.getpid(), signal.SIGINT)"))
    done = run("fit", "model.py")
    assert done.returncode == 130
    assert done.stderr.strip() == "quenched: interrupted before anything was reached"


def test_an_interrupted_diagnosis_keeps_the_fit(call, write, tmp_path, monkeypatch):
    def interrupted(fit, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("quenched.diagnostics.diagnose", interrupted)
    write("model.py", PRESSED.format(press="pass"))
    code, printed, _ = call("fit", "model.py")
    assert code == 130
    assert "Converged" in printed
    assert qd.load(tmp_path / "out" / "model.npz").converged


@pytest.mark.parametrize("diagnosis", [[], ["--no-diagnosis"]], ids=["diagnosed", "not diagnosed"])
def test_an_interrupt_while_the_target_is_looked_at_keeps_the_fit(diagnosis, call, write, tmp_path, monkeypatch):
    def pressed(*inputs):
        os.kill(os.getpid(), signal.SIGINT)
        return look_further(*inputs)

    monkeypatch.setattr("quenched.trust.lookout.look_further", pressed)
    write("model.py", PRESSED.format(press="pass"))
    code, printed, _ = call("fit", "model.py", "--family", "full", *diagnosis)
    assert code == 130
    assert "Converged" in printed
    assert qd.load(tmp_path / "out" / "model.npz").converged
    assert (tmp_path / "out" / "model.html").exists()


def test_an_interrupt_that_costs_but_a_remark_ends_the_command_too(call, write, tmp_path, monkeypatch):
    """The fit is all there and has converged; nobody wants to wait for a diagnosis."""

    def pressed(run, fit):
        os.kill(os.getpid(), signal.SIGINT)
        obey_interrupts()

    def diagnosed(fit, **options):
        pytest.fail("a diagnosis, after Ctrl-C")

    monkeypatch.setattr("quenched.fitting.run.Run.remarks", pressed)
    monkeypatch.setattr("quenched.diagnostics.diagnose", diagnosed)
    write("model.py", PRESSED.format(press="pass"))
    code, printed, _ = call("fit", "model.py")
    assert code == 130
    assert "Converged" in printed
    assert qd.load(tmp_path / "out" / "model.npz").converged


def test_a_second_interrupt_does_not_deny_what_is_saved(call, write, tmp_path, monkeypatch):
    def pressed(*inputs, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("quenched.report.write_report", pressed)
    write("model.py", PRESSED.format(press="pass"))
    code, _, complaints = call("fit", "model.py", "--no-diagnosis")
    assert code == 130
    assert "interrupted; out/model.npz holds what was saved last" in complaints
    assert qd.load(tmp_path / "out" / "model.npz").converged


# Ctrl-C, once or twice, when a module is imported for the first time; the arguments are the module, how often, and the command's.
IMPORTED = """
import os
import signal
import sys


class Presses:
    times = int(sys.argv.pop(2))

    def find_spec(self, name, path=None, target=None):
        if name == module:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
            self.times = 0


module = sys.argv.pop(1)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Presses())
from quenched.cli import main

sys.exit(main())
"""


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("module", ["argparse", "numpy", "jax", "quenched.fitting"])
def test_an_interrupt_while_modules_are_imported_ends_without_a_traceback(module, times, write, tmp_path):
    write("model.py", PRESSED.format(press="pass"))
    done = _interrupted(module, times, tmp_path)
    assert done.returncode == 130
    assert done.stderr.strip() == "quenched: interrupted before anything was reached"


def test_an_interrupt_while_the_report_is_made_keeps_it(write, tmp_path):
    write("model.py", PRESSED.format(press="pass"))
    done = _interrupted("quenched.report", 1, tmp_path)
    assert done.returncode == 130
    assert done.stderr == ""
    assert qd.load(tmp_path / "out" / "model.npz").converged
    assert (tmp_path / "out" / "model.html").exists()


def _interrupted(module, times, folder):
    command = [sys.executable, "-c", IMPORTED, module, str(times), "fit", "model.py", "--no-diagnosis", "--quiet"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
