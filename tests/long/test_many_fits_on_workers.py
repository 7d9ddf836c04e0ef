"""One count regression per gene, 14,200 of them, on worker processes one of which is killed; and as a job array."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import quenched as qd
import simulators

EXAMPLE = Path(__file__).parents[2] / "examples" / "job_array.py"


def test_14200_genes_with_a_worker_killed_half_way(tmp_path):
    data = simulators.many_counts(14_200)
    runs = {}
    for name in ("killed", "whole"):
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            folder, done = tmp_path / name, threading.Event()
            if name == "killed":
                killer = threading.Thread(target=_kill_half_way, args=(pool, folder, 28, done))
                killer.start()
            runs[name] = qd.fit_many(
                simulators.counts, np.zeros(4), data, executor=pool, checkpoint=folder, progress=False
            )
    killer.join()
    assert done is not None
    killed, whole = runs["killed"], runs["whole"]
    assert killed.settings["lost"] > 0
    assert whole.settings["lost"] == 0
    for name, column in whole.table().items():
        np.testing.assert_array_equal(column, killed.table()[name], err_msg=name)
    assert whole.converged.mean() > 0.999


def _kill_half_way(pool, folder, files, done):
    while len(list(folder.glob("*.npz"))) < files:
        time.sleep(0.1)
    os.kill(next(iter(pool._processes)), signal.SIGKILL)
    done.set()


def test_the_recipe_for_job_arrays_runs(tmp_path):
    for task in range(2):
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "2"}
        subprocess.run([sys.executable, str(EXAMPLE), "fit", str(tmp_path)], env=environment, check=True, timeout=300)
    joining = [sys.executable, str(EXAMPLE), "join", str(tmp_path)]
    done = subprocess.run(joining, check=True, capture_output=True, text=True)
    assert "200 of 200 fits converged" in done.stdout
    assert len(qd.load(tmp_path / "fits.npz")) == 200
