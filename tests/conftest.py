"""For every test: no window, no network beyond this machine, and programs that are compiled fast rather than well."""

import gc
import os
import socket
from pathlib import Path

import pytest

os.environ["MPLBACKEND"] = "Agg"
# Nearly all of the time of the tests is spent compiling programs that then run for milliseconds.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
)

_MOST_MAPS = (
    20_000  # pieces of memory that a process holds; Linux allows 65,530, and every compiled program takes a few
)
_HERE = ("127.0.0.1", "::1", "localhost")


@pytest.fixture(autouse=True)
def only_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to any other machine fails at once."""

    def guard(connect):
        def connect_here(self, address):
            if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _HERE:
                raise OSError(f"tests must not reach the network, but tried {address!r}")
            return connect(self, address)

        return connect_here

    monkeypatch.setattr(socket.socket, "connect", guard(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guard(socket.socket.connect_ex))


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    """Thousands of compiled programs in one process are more than Linux lets it hold: let go of them in time."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > _MOST_MAPS:
        import jax

        jax.clear_caches()
        gc.collect()
