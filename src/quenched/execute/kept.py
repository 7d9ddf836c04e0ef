"""Compiled programs on disk, so that the next process need not compile them again. Off unless it is asked for.

JAX has such a cache too, but for everything that a process compiles, and it is switched on for all of it. This one holds
the programs of fits alone. A program is found again by its whole text, the versions and options it was compiled with, and
the processor; a file that cannot be read is compiled anew and replaced. Files are written under another name and moved,
so that several processes may share a folder. They hold machine code: a folder must be as trusted as the code itself.
"""

import hashlib
import os
import pickle
import platform
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jaxlib
from jax.experimental.serialize_executable import deserialize_and_load, serialize

from quenched.files import read_path, write_whole

VARIABLE = "QUENCHED_PROGRAMS"
_SUFFIX = ".program"
_chosen: Path | None = None


def keep_programs(folder: str | os.PathLike | None) -> None:
    """Keep compiled programs in a folder, for this process and all that use the same one; None ends it.

    The environment variable QUENCHED_PROGRAMS does the same for a process that does not call it. The second run of a
    script then compiles nothing that the first has compiled. Anyone who may write into the folder may run code in your
    name.

    Parameters
    ----------
    folder
        Made if it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     qd.keep_programs(folder)
    ...     fit = qd.fit(lambda w: -jnp.cosh(2.0 * w), 0.0)
    ...     qd.keep_programs(None)
    """
    global _chosen
    if folder is not None:
        folder = read_path("folder", folder).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"folder={str(folder)!r}: no folder can be made there: {error.strerror}.") from error
    _chosen = folder


def folder_of_programs() -> Path | None:
    """Where programs are kept; None if they are not."""
    named = os.environ.get(VARIABLE)
    return _chosen if _chosen is not None or not named else Path(named).expanduser()


def compile_or_load(program: Any, inputs: tuple, folder: Path, options: Any) -> Any:
    """A compiled program for some inputs, from the folder if it is there."""
    lowered = program.lower(*inputs)
    # The text leaves out arguments that are not used, but a program is called with them.
    called = f"{lowered.in_tree} {lowered.args_info} {lowered.out_tree}"
    path = folder / (_digest(lowered.as_text(), called, repr(options)) + _SUFFIX)
    # Whatever is wrong with a file, what it holds can be compiled again.
    with suppress(Exception):
        return deserialize_and_load(*pickle.loads(path.read_bytes()))
    compiled = lowered.compile()
    with suppress(OSError, ValueError, TypeError, pickle.PicklingError):  # a full disk, or what cannot be serialised
        content = pickle.dumps(serialize(compiled))
        write_whole(path, lambda file: file.write(content))
    return compiled


def _digest(*texts: str) -> str:
    parts = (*texts, _machine(), jax.__version__, jaxlib.__version__, str(jax.devices()))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


@lru_cache(maxsize=1)
def _machine() -> str:
    """What machine code depends on."""
    flags = ""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return " ".join(
        (platform.platform(), platform.machine(), platform.processor(), flags, os.environ.get("XLA_FLAGS", ""))
    )
