"""Compiled programs on disk: the next process finds them, whatever has happened to the files."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
import jax, jax.monitoring
import numpy as np
import quenched as qd

seconds = []
note = lambda event, duration, **_: seconds.append(duration) if "backend_compile" in event else None
jax.monitoring.register_event_duration_secs_listener(note)
before = {name: str(value) for name, value in jax.config.values.items()}
if len(sys.argv) > 1:
    qd.keep_programs(sys.argv[1])
fit = qd.fit(lambda w: -0.5 * (w**2).sum() - 0.1 * (w**4).sum(), np.ones(2), progress=False)
assert before == {name: str(value) for name, value in jax.config.values.items()}
print(len(seconds), fit.bound.hex())
"""


def run(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {name: str(value) for name, value in environment.items()},
    )
    compiled, bound = done.stdout.split()
    return int(compiled), bound


def test_the_second_process_compiles_less_and_broken_files_do_no_harm(tmp_path):
    folder = tmp_path / "programs"
    first, bound = run(folder)
    files = sorted(folder.iterdir())
    assert len(files) >= 3
    again, same = run(QUENCHED_PROGRAMS=folder)
    assert again <= first - len(files)
    assert same == bound
    files[0].write_bytes(b"")
    files[1].write_bytes(files[1].read_bytes()[:100])
    files[2].write_bytes(b"\\x80\\x04N.")
    broken, same = run(folder)
    assert broken == again + 3
    assert same == bound
    assert run(QUENCHED_PROGRAMS=folder) == (again, bound)  # mended


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    import quenched as qd

    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="no folder can be made there"):
        qd.keep_programs(tmp_path / "file" / "folder")
    with pytest.raises(ValueError, match="folder=3: give the path"):
        qd.keep_programs(3)
