"""Many fits as a job array: every task fits its part and saves it, the last command joins the parts.

    sbatch --array=0-9 --wrap "python examples/job_array.py fit out"
    python examples/job_array.py join out

Slurm tells a task which it is (SLURM_ARRAY_TASK_ID) and how many there are (SLURM_ARRAY_TASK_COUNT); PBS, LSF and SGE have
names of their own for the first. A task that was killed is submitted again (`--array=7`): it goes on after the last
share it saved.
"""

import os
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import quenched as qd

RANDOM = np.random.default_rng([20, 1])
DESIGN = RANDOM.standard_normal((50, 3))  # 50 cells, three inputs
COUNTS = RANDOM.poisson(np.exp(DESIGN @ (0.4 * RANDOM.standard_normal((3, 200)))).T)  # of 200 genes


def log_density(weights, counts):
    predictor = DESIGN @ weights
    return jnp.sum(counts * predictor - jnp.exp(predictor)) - 0.5 * jnp.sum(weights**2)


def fit_part(task: int, tasks: int, out: Path) -> None:
    part = np.array_split(COUNTS, tasks)[task]
    fits = qd.fit_many(log_density, np.zeros(3), part, checkpoint=out / f"task-{task}", progress=False)
    fits.save(out / f"part-{task:05d}.npz")


def join(out: Path) -> qd.Fits:
    return qd.Fits.joined([qd.load(path) for path in sorted(out.glob("part-*.npz"))])


if __name__ == "__main__":
    action, out = sys.argv[1], Path(sys.argv[2])
    if action == "fit":
        fit_part(int(os.environ["SLURM_ARRAY_TASK_ID"]), int(os.environ["SLURM_ARRAY_TASK_COUNT"]), out)
    else:
        fits = join(out)
        fits.save(out / "fits.npz")
        print(fits)
