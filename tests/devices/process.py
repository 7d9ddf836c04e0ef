"""One of several processes of a distributed fit: python process.py SCENARIO OUT, the rest told by the environment."""

import json
import os
import sys
import time
from pathlib import Path

import jax
import numpy as np

scenario, out = sys.argv[1], Path(sys.argv[2])
jax.distributed.initialize()  # Slurm's environment, or ours: JAX_COORDINATOR_ADDRESS and so on

import layouts  # noqa: E402

import quenched as qd  # noqa: E402
from quenched.execute.sharded import ShardedExecutor  # noqa: E402

rank = jax.process_index()


def slow_down():
    """Make a fit take long enough to be disturbed, between two programs; and let one process lag when it is told to."""
    run = ShardedExecutor.run

    def slowly(self, program, *kind):
        time.sleep(2.0 if (out / "checkpoint.npz").exists() else 0.0)
        if rank == 1 and self.sharding.longest.get(kind) and (out / "lag").exists():
            (out / "lag").unlink()
            time.sleep(40.0)
        return run(self, program, *kind)

    ShardedExecutor.run = slowly


def main():
    mesh = layouts.meshes(len(jax.devices()))[os.environ.get("LAYOUT", "draws")]
    checkpoint = out / "checkpoint.npz"
    start = qd.load(checkpoint) if checkpoint.exists() else {"w": np.zeros(layouts.DIM)}
    if scenario == "slow":
        slow_down()
    if scenario == "many":
        everybody = layouts.many(jax.make_mesh((len(jax.devices()),), ("draws",)), out / "fits")
        (out / f"rank-{rank}.json").write_text(json.dumps(everybody))
        return
    fit = layouts.fitted(mesh, start=start, checkpoint=checkpoint, max_seconds=1e6)
    (out / f"rank-{rank}.json").write_text(json.dumps(layouts.told(fit)))


if __name__ == "__main__":
    main()
