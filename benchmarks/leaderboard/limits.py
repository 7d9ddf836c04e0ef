"""How far our fits are from what the machine allows, and how their cost grows.

`warm`: time of a warm fit against its gradients at the price of one bare batched gradient, and that gradient against the same
arithmetic as two matrix products. `cold`: what imports, tracing, lowering and compiling take of a first fit.
`scaling`: warm time and gradients against dimension, draws and data. Rows go to results/limits.csv.
"""

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.leaderboard.other_work import Others
from benchmarks.leaderboard.protocol import RESULTS, last_line, machine

FILE = RESULTS / "limits.csv"
COLUMNS = ["kind", "case", "x", "quantity", "value", "machine", "others"]
_REPETITIONS = 7
_IMPORTS = """
from time import perf_counter
began = perf_counter()
import jax
between = perf_counter()
import quenched
quenched.fit
print(between - began, perf_counter() - between)
"""
_PHASES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}


def log_density(weights, data):
    """Logistic regression, of which any dimension and number of data can be made."""
    import jax.numpy as jnp

    features, labels = data
    scores = features @ weights
    return jnp.sum(labels * scores - jnp.logaddexp(0.0, scores)) - 0.5 * weights @ weights


def simulated(dim: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([12, dim, n])
    features = rng.standard_normal((n, dim)) * 3.0 / np.sqrt(dim)
    chance = 1.0 / (1.0 + np.exp(-features @ rng.standard_normal(dim)))
    return features, (rng.random(n) < chance).astype(float)


def seconds(compute: Callable) -> float:
    began = time.perf_counter()
    compute()
    return time.perf_counter() - began


def warm_rows(draws: int, dim: int = 100, n: int = 1000) -> dict[str, float]:
    """Of one fit with a fixed number of draws. Measured in turns, so that a busy moment of the machine meets all."""
    import jax
    import jax.numpy as jnp

    import quenched as qd

    data = simulated(dim, n)
    fit = lambda: qd.fit(log_density, np.zeros(dim), data=data, draws=draws, progress=False)
    result = fit()
    with jax.enable_x64(True):
        gradient = jax.jit(jax.vmap(jax.value_and_grad(log_density), in_axes=(0, None)))
        products = jax.jit(lambda w, x: (w @ x.T) @ x)
        points, arrays = jnp.asarray(result.posterior.sample(draws)), tuple(map(jnp.asarray, data))
        bare = lambda: jax.block_until_ready(gradient(points, arrays))
        multiply = lambda: jax.block_until_ready(products(points, arrays[0]))
        calls = (fit, bare, multiply)
        for call in calls:
            call()
        times = [[seconds(call) for call in calls] for _ in range(_REPETITIONS)]
    warm, one, product = np.median(times, axis=0)
    batches = result.n_evaluations / draws
    return {
        "warm s": warm,
        "gradient ms": 1e3 * one,
        "batches": batches,
        "warm / (batches x gradient)": warm / (batches * one),
        "gradient / matrix products": one / product,
    }


def scaling_rows(dim: int, draws: int | None, n: int) -> dict[str, float]:
    import quenched as qd

    data = simulated(dim, n)
    fit = lambda: qd.fit(log_density, np.zeros(dim), data=data, draws=draws, progress=False)
    result = fit()
    return {"warm s": float(np.median([seconds(fit) for _ in range(3)])), "gradients": result.n_evaluations}


def cold_rows(name: str) -> None:
    """In a process of its own: prints where the time of the first fit went."""
    import jax
    from benchmarks.leaderboard.problems import load

    import quenched as qd

    phases = dict.fromkeys(_PHASES.values(), 0.0)
    imports = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=True).stdout
    spent = dict(zip(("import jax", "import quenched"), map(float, imports.split()), strict=True))

    problem = load(name)
    programs = 0

    def listen(event: str, duration: float, **_) -> None:
        nonlocal programs
        if event in _PHASES:
            phases[_PHASES[event]] += duration
            programs += _PHASES[event] == "compile"

    jax.monitoring.register_event_duration_secs_listener(listen)
    fit = lambda: qd.fit(problem.log_density, problem.start, progress=False)
    whole = seconds(fit)
    compiled = programs
    spent |= {**phases, "cold fit": whole}
    print(json.dumps({**spent, "programs": compiled, "next fit": seconds(fit)}))


def in_new_process(name: str) -> dict[str, float]:
    """What `cold_rows` prints there."""
    command = [sys.executable, "-m", "benchmarks.leaderboard.limits", name]
    double = {**os.environ, "JAX_ENABLE_X64": "1"}
    return last_line(subprocess.run(command, env=double, stdout=subprocess.PIPE, text=True, check=True).stdout)


def write(kind: str, case: str, x: float, measure: Callable[[], dict[str, float]]) -> None:
    """Measure, and add what was found to the file."""
    others = Others()
    found, cores = measure(), round(others.cores, 3)
    FILE.parent.mkdir(parents=True, exist_ok=True)
    new = not FILE.exists()
    with FILE.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for quantity, value in found.items():
            writer.writerow([kind, case, x, quantity, f"{value:.5g}", machine(), cores])
    print(kind, case, x, {name: float(f"{value:.3g}") for name, value in found.items()}, flush=True)


def main(full: bool) -> None:
    FILE.unlink(missing_ok=True)
    for name in ("eight schools", "skew top", "logistic 101"):
        write("cold", name, 0, partial(in_new_process, name))
    for draws in (220, 400, 1000):
        write("warm", "logistic, dim 100, N 1000", draws, partial(warm_rows, draws))
    for dim in (5, 10, 20, 50, 100, *((200, 400) if full else ())):
        write("scaling", "dim", dim, partial(scaling_rows, dim, None, 1000))
    for draws in (128, 256, 512, 1024, 2048, *((4096, 8192) if full else ())):
        write("scaling", "draws", draws, partial(scaling_rows, 20, draws, 1000))
    for n in (100, 300, 1000, 3000, 10_000, *((30_000, 100_000) if full else ())):
        write("scaling", "data", n, partial(scaling_rows, 20, 256, n))


def rows(path: Path = FILE) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    cold_rows(sys.argv[1])
