"""The command as a user runs it: another process, in a folder of its own."""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def command() -> str:
    """The command that is installed beside this Python."""
    found = shutil.which("quenched", path=sysconfig.get_path("scripts"))
    assert found, "the command `quenched` is not installed: pip install --editable ."
    return found


@pytest.fixture
def run(command: str, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `quenched` with these arguments in `tmp_path`."""

    def call(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file into `tmp_path`."""

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return put
