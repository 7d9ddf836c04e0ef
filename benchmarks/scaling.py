"""Time of one evaluation of the bound against draws, parameters, rows and devices, and a cost model fitted to it.

    python benchmarks/scaling.py                      # draws, parameters, rows
    python benchmarks/scaling.py simulate             # the schedule of a fit on many hosts, by the model

The model: seconds = fixed + flops · draws · rows · parameters / (devices · speed) + reduction(parameters, hosts).
"""

import sys
import time

import jax
import numpy as np

from quenched.draws import matched
from quenched.families import Full
from quenched.objective import Objective, make_problem
from quenched.targets import log_density
from quenched.transforms import describe_space


def seconds_of(draws: int, dim: int, rows: int, repeats: int = 5) -> float:
    random = np.random.default_rng([16, dim, rows])
    data = {"x": random.standard_normal((rows, dim)), "y": np.sign(random.standard_normal(rows))}
    target = log_density(lambda w, d: jax.nn.log_sigmoid(d["y"] * (d["x"] @ w)).sum() - 0.5 * (w**2).sum())
    with jax.enable_x64(True):
        space, point = describe_space(np.zeros(dim), None)
        problem = make_problem(target, space, data, None)
        objective = Objective(problem, matched(draws, dim))
        member = Full().isotropic(point, np.full(dim, 0.1), space.sizes)
        took = []
        for _ in range(repeats + 1):
            began = time.perf_counter()
            slope, _ = objective.slope_at(member, problem.hyper, profile=True)
            float(slope.bound)
            took.append(time.perf_counter() - began)
    return min(took[1:])


def measure() -> None:
    sizes = [
        (64, 20, 10_000),
        (128, 20, 10_000),
        (256, 20, 10_000),
        (128, 40, 10_000),
        (128, 20, 40_000),
        (128, 60, 40_000),
    ]
    work, took = [], []
    for draws, dim, rows in sizes:
        seconds = seconds_of(draws, dim, rows)
        work.append(draws * dim * rows)
        took.append(seconds)
        print(f"{draws:4d} draws {dim:3d} parameters {rows:6d} rows: {1e3 * seconds:8.2f} ms", flush=True)
    (speed, fixed), *_ = np.linalg.lstsq(np.stack([work, np.ones(len(work))], axis=1), np.array(took), rcond=None)
    print(f"seconds = {fixed:.2g} + {speed:.3g} * draws * parameters * rows (two cores)")


def simulate(rows: float = 1e9, dim: int = 100, draws: int = 256, hosts: int = 64, evaluations: int = 20) -> None:
    """Evaluations one after the other, each as long as its slowest host, and the ring that adds their gradients."""
    random = np.random.default_rng([16, 64])
    per_product, latency, bandwidth = float(sys.argv[2]), 50e-6, 1.25e9  # seconds; of a 10 Gb/s network
    numbers = 1 + 2 * dim + dim * (dim - 1) // 2
    ring = 2 * (hosts - 1) * (latency + 8 * numbers / hosts / bandwidth)
    alone = per_product * draws * dim * rows / hosts
    slowest = alone * np.max(random.lognormal(0.0, 0.05, (evaluations, hosts)), axis=1)
    print(f"{rows:.0e} rows, {dim} parameters, {draws} draws on {hosts} hosts: {alone:.1f} s of work per evaluation,")
    print(f"slowest host {slowest.mean():.1f} s, ring of {8 * numbers / 1e3:.0f} kB {1e3 * ring:.1f} ms, ")
    print(
        f"{evaluations} evaluations {slowest.sum() + evaluations * ring:.0f} s; data {8 * rows * dim / hosts / 1e9:.1f} GB per host"
    )


if __name__ == "__main__":
    simulate() if sys.argv[1:2] == ["simulate"] else measure()
