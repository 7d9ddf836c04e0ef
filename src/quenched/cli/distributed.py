"""`quenched fit --distributed`: one of several processes that srun, mpirun or Kubernetes have started.

The fit runs in a child of this process. When the process that coordinates all is lost, JAX ends the others on the spot, where
no Python can say a word: so somebody outside must.
"""

import os
import signal
import subprocess
import sys
from typing import Any

from quenched.cli.misuse import Misuse

_CHILD = "QUENCHED_DISTRIBUTED_CHILD"
_HEARTBEAT = 20  # seconds after which a process that has stopped counts as lost
_OWN_CODES = (0, 1, 2, 130)
LOST = 75


def supervised(arguments: list[str]) -> int | None:
    """Run the command in a child and return its exit code; None in the child itself."""
    if os.environ.get(_CHILD):
        return None
    command = [
        sys.executable,
        "-c",
        "import sys; from quenched.cli import main; sys.exit(main())",
        *arguments,
    ]
    child = subprocess.Popen(command, env={**os.environ, _CHILD: "1"})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: child.send_signal(number))
    code = child.wait()
    if code in _OWN_CODES:
        return code
    print(
        f"quenched: another process was lost, so that this one ended too (exit code {code}). Start all of them again with "
        "--resume, as many as there are now: the fit goes on after its last round.",
        file=sys.stderr,
    )
    return LOST


def mesh_of_all(row_shards: int) -> Any:
    """Join the other processes, and put the devices of all into one mesh."""
    import jax

    try:
        jax.distributed.initialize(heartbeat_timeout_seconds=_HEARTBEAT)
    except ValueError as error:
        raise Misuse(
            f"--distributed: no cluster was found ({error}) Start it with srun or mpirun, or set "
            "JAX_COORDINATOR_ADDRESS=host:port with SLURM_NTASKS and SLURM_PROCID."
        ) from error
    n = jax.device_count()
    if n % row_shards:
        raise Misuse(f"--row-shards {row_shards}: {n} devices cannot be divided into as many.")
    return jax.make_mesh((n // row_shards, row_shards), ("draws", "rows"))
