"""Fresh draws and minibatches: which optimiser, and what averaging and the polish contribute.

    python benchmarks/streaming.py [ROWS] [INPUTS]

Logistic regression. For every optimiser: passes over the data (in gradients at all draws and all rows), nats below the
frozen answer before and after the polish, the largest error of a mean in posterior sds, and seconds.
"""

import re
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import quenched as qd
from quenched.fitting.streaming import OPTIMISERS


def problem(n: int, dim: int):
    random = np.random.default_rng([16, 5])
    design = random.standard_normal((n, dim)) * np.geomspace(0.3, 3.0, dim)
    truth = random.standard_normal(dim) / np.sqrt(dim)
    labels = np.where(random.random(n) < 1.0 / (1.0 + np.exp(-design @ truth)), 1.0, -1.0)
    return qd.sum_of(
        qd.each(lambda seen, y: jax.nn.log_sigmoid(y * seen["w"]), labels, sees={"w": qd.dot(design)}),
        qd.each(lambda seen: -0.5 * jnp.sum(seen["w"] ** 2), sees={"w": qd.whole}),
    )


def main():
    n, dim = (int(text) for text in (*sys.argv[1:3], *("20000", "20")[len(sys.argv) - 1 :]))
    target, start = problem(n, dim), {"w": np.zeros(dim)}
    options = {"draws": 4 * dim, "check": 64, "progress": False}
    began = time.perf_counter()
    frozen = qd.fit(target, start, **options)
    passes = frozen.n_evaluations / frozen.n_draws
    print(f"frozen         {passes:8.2f} passes, {time.perf_counter() - began:6.1f} s, bound {frozen.bound:.4f}")
    sd = np.sqrt(frozen.posterior.variance())
    for name, polish in (("sgd", True), *((name, False) for name in OPTIMISERS)):
        began = time.perf_counter()
        try:
            fit = qd.fit(target, start, method=qd.Streaming(optimiser=name, polish=polish), throw=False, **options)
        except Exception as error:
            print(f"{name:14s} failed: {type(error).__name__}: {str(error)[:80]}")
            continue
        told = re.search(r"in (\d+) steps, ([\d.]+) passes", fit.message)
        error = np.max(np.abs(fit.posterior.mean - frozen.posterior.mean) / sd)
        print(
            f"{name + ' + polish' * polish:14s} {told.group(2) if told else '?':>8s} passes, {time.perf_counter() - began:6.1f} s, "
            f"{frozen.bound - fit.bound:9.4f} nats below, means within {error:.3f} sds, {fit.status}, "
            f"{told.group(1) if told else '?'} steps, {fit.n_evaluations / fit.n_draws:.2f} passes in all",
            flush=True,
        )


if __name__ == "__main__":
    main()
