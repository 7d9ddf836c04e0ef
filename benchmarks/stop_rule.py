"""Does the stop rule of `Streaming` keep its word: the nats it says are left, against those that are.

    python benchmarks/stop_rule.py [SEEDS] [ROWS]

Each problem is streamed without a polish under several seeds of draws and rows. What is left is the Kullback-Leibler divergence
from the streamed Gaussian to that of a frozen fit, whose own draws cost far less.
"""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np

import quenched as qd

DIM = 5
TOLERANCES = (0.05, 2.0)  # nats: on all rows at the end, and on a part of them


def regression(function, labels, design):
    prior = qd.each(lambda seen: -0.5 * jnp.sum(seen["w"] ** 2), sees={"w": qd.whole})
    return qd.sum_of(qd.each(function, labels, sees={"w": qd.dot(design)}), prior), {"w": np.zeros(DIM)}


def problems(n: int) -> dict:
    random = np.random.default_rng([16, 9])
    design = random.standard_normal((n, DIM)) * np.geomspace(0.3, 2.0, DIM)
    predictor = design @ np.linspace(-0.5, 0.5, DIM)
    labels = np.where(random.random(n) < 1.0 / (1.0 + np.exp(-predictor)), 1.0, -1.0)
    counts, wild = random.poisson(np.exp(0.3 * predictor)).astype(float), predictor + random.standard_t(4.0, n)
    return {
        "logistic": regression(lambda seen, y: jax.nn.log_sigmoid(y * seen["w"]), labels, design),
        "counts": regression(lambda seen, y: y * seen["w"] - jnp.exp(seen["w"]), counts, design),
        "Student": regression(lambda seen, y: -2.5 * jnp.log1p((y - seen["w"]) ** 2 / 4.0), wild, design),
        "no rows": (lambda w: -0.5 * jnp.sum((w - 1.0) ** 2) - 0.05 * jnp.sum(w**4), np.zeros(DIM)),
    }


def divergence(one, other) -> float:
    """KL from one Gaussian to another, in nats."""
    away = np.linalg.solve(np.linalg.cholesky(other.covariance), one.posterior.mean - other.posterior.mean)
    ratio = np.linalg.solve(other.covariance, one.covariance)
    return 0.5 * float(away @ away + np.trace(ratio) - len(away) - np.linalg.slogdet(ratio)[1])


def streamed(target, start, frozen, seed: int, tolerance: float = 0.05) -> tuple[float, float]:
    """Nats that the stop rule says are left, and nats that are."""
    options = {"family": "full", "draws": 64, "check": 64, "tolerance": tolerance, "progress": False}
    fit = qd.fit(target, start, method=qd.Streaming(polish=False), seed=seed, **options)
    return float(re.search(r"left about ([\d.e-]+) nats", fit.message).group(1)), divergence(fit, frozen)


def main():
    seeds, n = (int(text) for text in (*sys.argv[1:3], *("20", "8000")[len(sys.argv) - 1 :]))
    for name, (target, start) in problems(n).items():
        frozen = qd.fit(target, start, family="full", draws=2048, check=64, progress=False)
        for tolerance in TOLERANCES:
            found = [streamed(target, start, frozen, seed, tolerance) for seed in range(seeds)]
            said, left = np.array(found).T
            print(
                f"{name:9s} tolerance {tolerance:4.2f}: said {np.median(said):.2g} nats, left {np.median(left):.2g}; left / said: "
                f"mean {np.mean(left / said):.2f}, largest {np.max(left / said):.2f}; at most twice what was said in "
                f"{np.mean(left <= 2.0 * said):.0%}, below the tolerance in {np.mean(left <= tolerance):.0%} of {seeds}",
                flush=True,
            )


if __name__ == "__main__":
    main()
