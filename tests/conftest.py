"""For every test: no window, no network beyond this machine."""

import os
import socket

import pytest

os.environ["MPLBACKEND"] = "Agg"

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
