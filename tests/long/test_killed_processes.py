"""Processes that are ended from outside, for good: a download that is killed, and a fit that is given too little memory."""

import hashlib
import http.server
import os
import resource
import signal
import subprocess
import sys
import threading

import pytest

CONTENT = bytes(range(256)) * 8192  # two megabytes
DOWNLOAD = """
import sys
from quenched.paper.datasets.files import obtain
from quenched.paper.datasets.registry import RemoteFile

address, sha256, size = sys.argv[1:]
(path,) = obtain([RemoteFile("small/numbers.bin", address, sha256, int(size))])
print(path.stat().st_size)
"""


class Server(http.server.ThreadingHTTPServer):
    """Sends half of a file, says so, and then waits until it may send the rest."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.half, self.rest = threading.Event(), threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        try:
            self.wfile.write(CONTENT[: len(CONTENT) // 2])
            self.wfile.flush()
            self.server.half.set()
            self.server.rest.wait(120)
            self.wfile.write(CONTENT[len(CONTENT) // 2 :])
        except OSError:
            pass  # nobody listens any more

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with Server() as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield running
        running.rest.set()
        running.shutdown()


def test_a_download_that_is_killed_leaves_the_cache_sound(server, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "QUENCHED_DATA"}
    environment |= {"QUENCHED_CACHE": str(tmp_path), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    address = f"http://127.0.0.1:{server.server_port}/numbers.bin"
    command = [sys.executable, "-c", DOWNLOAD, address, hashlib.sha256(CONTENT).hexdigest(), str(len(CONTENT))]
    killed = subprocess.Popen(command, env=environment)
    assert server.half.wait(120)
    written = lambda: [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 0]
    waited = threading.Event()
    for _ in range(1200):  # until some of it is on the disk
        if written():
            break
        waited.wait(0.1)
    killed.send_signal(signal.SIGKILL)
    killed.wait(60)
    left = written()
    assert left, "it was killed before it had written anything"
    assert not any(path.name == "numbers.bin" for path in left)
    for path in tmp_path.rglob("tmp*"):
        os.utime(path, (0, 0))  # long ago
    server.rest.set()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == [str(len(CONTENT))], done.stderr
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["numbers.bin"]


PARENT = """
from pathlib import Path
from quenched.paper.experiments.tasks import Task, run_tasks

if __name__ == "__main__":
    sleep = lambda name: Task("toy", name, "long.experiments.toys:sleep", {"folder": "asleep", "name": name})
    run_tasks([sleep("one"), sleep("two")], Path("work"), 2)
"""


def test_workers_of_a_process_that_was_killed_end(tmp_path, request):
    (tmp_path / "parent.py").write_text(PARENT, encoding="utf-8")
    (tmp_path / "asleep").mkdir()
    path = os.pathsep.join(filter(None, (str(request.config.rootpath / "tests"), os.environ.get("PYTHONPATH"))))
    parent = subprocess.Popen([sys.executable, "parent.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
    asleep = lambda: [int(file.read_text()) for file in (tmp_path / "asleep").glob("*.pid")]
    until(lambda: len(asleep()) == 2)
    parent.send_signal(signal.SIGKILL)
    parent.wait(60)
    until(lambda: not any(os.path.exists(f"/proc/{process}") for process in asleep()))


def until(holds):
    waited = threading.Event()
    for _ in range(1200):
        if holds():
            return
        waited.wait(0.1)
    pytest.fail("it never came about")


STARVED = """
import resource, sys
import jax, jax.numpy as jnp, numpy as np
import quenched as qd

jnp.ones(3).block_until_ready()  # what JAX itself needs is there
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + int(sys.argv[1]), held + int(sys.argv[1])))
dim = int(sys.argv[2])
try:
    fit = qd.fit(lambda w: -0.5 * jnp.sum(w**2) - 0.1 * jnp.sum(jnp.cosh(w)), np.zeros(dim), progress=False)
    print("ended", fit.status)
except BaseException as error:
    print("ended", type(error).__name__, str(error)[:300])
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS") or not os.path.exists("/proc/self/statm"), reason="needs Linux")
@pytest.mark.parametrize("megabytes", [50, 150, 200, 250, 260, 280, 300, 400, 800])
def test_a_fit_with_too_little_memory_ends(megabytes):
    """With words, with a result, or by the system's hand; it does not wait for ever."""
    command = [sys.executable, "-c", STARVED, str(megabytes * 2**20), "800"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode == 0:
        assert done.stdout.startswith(("ended converged", "ended MemoryError memory: there is not enough")), done.stdout
    else:  # a library underneath has given up, and said so
        assert done.stderr, "it ended without a word"
