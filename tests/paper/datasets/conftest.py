"""Folders and servers for the tests of `quenched.paper.datasets`. Nothing here reaches beyond this machine."""

import hashlib
import http.server
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from quenched.paper.datasets.registry import RemoteFile

GIVEN_DATA = os.environ.get("QUENCHED_DATA")


@pytest.fixture
def data() -> Path:
    """The folder of the real files, for tests that read them."""
    if not GIVEN_DATA:
        pytest.skip("QUENCHED_DATA is not set: the real data files are not at hand")
    return Path(GIVEN_DATA)


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for each test, so that none reads or writes the user's."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("QUENCHED_CACHE", str(folder))
    return folder


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that QUENCHED_DATA names."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("QUENCHED_DATA", str(folder))
    return folder


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every address lies behind a proxy at a port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{probe.getsockname()[1]}"
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(variable, closed)


@dataclass
class Server:
    """A web server of this test: what it serves, how, and what it was asked for."""

    address: str
    pages: dict[str, bytes] = field(default_factory=dict)
    declared_length: int | None = None
    silent: bool = False
    asked: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def offer(self, path: str, content: bytes, *, instead: bytes | None = None) -> RemoteFile:
        """Serve `content`, or other bytes `instead`, and return the registry entry of `content`."""
        self.pages[f"/{path}"] = content if instead is None else instead
        return RemoteFile(
            path=path,
            address=f"{self.address}/{path}",
            sha256=hashlib.sha256(content).hexdigest(),
            size=len(content),
        )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A real web server on 127.0.0.1."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Server("")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(lambda: state)) as running:
        state.address = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield state
        state.stop.set()
        running.shutdown()
        thread.join()


def _handler(state_of: Callable[[], Server]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state = state_of()
            state.asked.append(self.path)
            if state.silent:
                state.stop.wait()
                return
            page = state.pages.get(self.path)
            if page is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(state.declared_length or len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
