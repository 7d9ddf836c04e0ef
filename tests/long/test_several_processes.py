"""Real processes on one machine, with gloo between them: the fit of one process, and what happens when one is lost."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import quenched as qd

DEVICES = Path(__file__).parents[1] / "devices"
LIMIT = 240.0  # seconds from a fault to our error: 30 of patience, and a machine that may be loaded ten times over


class Launched:
    """Processes that a launcher has started."""

    def __init__(self, n, scenario, out, **variables):
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        paths = [str(DEVICES), *sys.path]
        self.out, self.processes = out, []
        for rank in range(n):
            environment = {
                **os.environ,
                **variables,
                "PYTHONPATH": os.pathsep.join(paths),
                "JAX_PLATFORMS": "cpu",
                "XLA_FLAGS": "",
                # What srun sets, but for the address, which it would find from the list of nodes.
                "SLURM_JOB_ID": str(port),
                "SLURM_STEP_NODELIST": "localhost",
                "SLURM_NTASKS": str(n),
                "SLURM_PROCID": str(rank),
                "SLURM_LOCALID": str(rank),
                "JAX_COORDINATOR_ADDRESS": f"localhost:{port}",
            }
            command = [sys.executable, str(DEVICES / "process.py"), scenario, str(out)]
            log = (out / f"log-{rank}").open("w")
            self.processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))

    def wait(self, ranks=None, seconds=300.0):
        chosen = self.processes if ranks is None else [self.processes[rank] for rank in ranks]
        return [process.wait(timeout=seconds) for process in chosen]

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    def told(self, rank):
        return json.loads((self.out / f"rank-{rank}.json").read_text())

    def log(self, rank):
        return (self.out / f"log-{rank}").read_text()


@pytest.fixture
def launch(tmp_path):
    started = []

    def start(n, scenario, out=None, **variables):
        out = tmp_path if out is None else out
        out.mkdir(exist_ok=True)
        started.append(Launched(n, scenario, out, **variables))
        return started[-1]

    yield start
    for launched in started:
        launched.end()


@pytest.mark.parametrize(("n", "layout"), [(2, "draws"), (4, "both")])
def test_several_processes_find_what_one_does(launch, n, layout, monkeypatch):
    monkeypatch.syspath_prepend(DEVICES)
    import layouts

    launched = launch(n, "fit", LAYOUT=layout)
    assert launched.wait() == [0] * n, launched.log(0)
    found = [launched.told(rank) for rank in range(n)]
    assert all(one == found[0] for one in found)  # the same bits everywhere
    assert found[0]["settings"]["processes"] == n
    alone = layouts.told(layouts.fitted(None))
    np.testing.assert_allclose(found[0]["mean"], alone["mean"], rtol=1e-6)
    assert found[0]["bound"] == pytest.approx(alone["bound"], abs=1e-8)
    assert (found[0]["n_draws"], found[0]["n_evaluations"]) == (alone["n_draws"], alone["n_evaluations"])
    assert qd.load(launched.out / "checkpoint.npz").n_draws == alone["n_draws"]


def test_several_processes_share_many_fits(launch, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(DEVICES)
    import layouts

    launched = launch(2, "many")
    assert launched.wait() == [0, 0], launched.log(0)
    first, second = launched.told(0), launched.told(1)
    assert first == second
    np.testing.assert_allclose(first["mean"], layouts.many(None)["mean"], rtol=1e-6, atol=1e-9)
    assert len(list((tmp_path / "fits").iterdir())) == 3  # shares of 66 or 67, saved by the first process alone


def until(condition, launched, seconds=200.0):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        assert all(process.poll() is None for process in launched.processes), launched.log(0)
        time.sleep(0.1)


@pytest.mark.parametrize("fault", ["killed", "first killed", "stopped", "lag"])
def test_a_lost_process_ends_in_our_error_on_the_others(launch, fault, tmp_path):
    launched = launch(2, "slow")
    until((tmp_path / "checkpoint.npz").exists, launched)  # a round has ended, and the next is under way
    time.sleep(1.0)
    victim, other = (0, 1) if fault == "first killed" else (1, 0)
    if fault == "lag":
        (tmp_path / "lag").touch()
        until(lambda: not (tmp_path / "lag").exists(), launched)
    else:
        os.kill(launched.processes[victim].pid, signal.SIGSTOP if fault == "stopped" else signal.SIGKILL)
    began = time.monotonic()
    (code,) = launched.wait([other], LIMIT + 60.0)
    assert time.monotonic() - began < LIMIT
    if fault == "first killed":  # the coordinator: JAX ends the others itself
        assert code < 0
    else:
        assert code == 75, launched.log(other)
        assert "LostProcess" in launched.log(other)
    launched.end()
    if fault == "killed":  # on another number of processes, from where it was
        before = qd.load(tmp_path / "checkpoint.npz")
        for n in (4, 1):
            again = launch(n, "fit")
            assert again.wait() == [0] * n, again.log(0)
            assert again.told(0)["status"] == "converged"
            assert again.told(0)["n_draws"] >= before.n_draws
