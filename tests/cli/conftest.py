"""The command as a user runs it: another process, in a folder of its own."""

import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from quenched.cli import main


@pytest.fixture
def command() -> str:
    """The command that is installed beside this Python."""
    found = shutil.which("quenched", path=sysconfig.get_path("scripts"))
    assert found, "the command `quenched` is not installed: pip install --editable ."
    return found


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The same within this process, for what does not need another: exit code, output, complaints."""
    monkeypatch.chdir(tmp_path)

    def main_of(*arguments: object) -> tuple[int, str, str]:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return main_of


@pytest.fixture
def run(command: str, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `quenched` with these arguments in `tmp_path`."""

    def another(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return another


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file into `tmp_path`."""

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return put
