"""How much a fit costs beyond its gradients: warm time against evaluations times one bare batched gradient call.

Logistic regression with 100 weights and 1000 data. The cold time (first fit in this process, compilation included) is
printed beside it. Ratios are of medians over repetitions in one run.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

import quenched as qd

REPETITIONS = 7


def log_density(weights, data):
    features, labels = data
    scores = features @ weights
    return jnp.sum(labels * scores - jnp.logaddexp(0.0, scores)) - 0.5 * weights @ weights


def problem(n: int = 1000, dim: int = 100):
    rng = np.random.default_rng(1)
    features = rng.standard_normal((n, dim)) * 3.0 / np.sqrt(dim)
    labels = (rng.random(n) < 1.0 / (1.0 + np.exp(-features @ rng.standard_normal(dim)))).astype(float)
    return features, labels


def seconds(compute) -> float:
    began = time.perf_counter()
    compute()
    return time.perf_counter() - began


def main() -> None:
    data = problem()
    print("draws  cold s  warm s  bare ms  evaluations of the bound  batches of gradients  warm / (batches x bare)")
    for draws in (220, 400, 1000):
        fit = lambda: qd.fit(log_density, np.zeros(100), data=data, draws=draws, progress=False)  # noqa: B023
        cold = seconds(fit)
        result = fit()
        with jax.enable_x64(True):
            gradient = jax.jit(jax.vmap(jax.value_and_grad(log_density), in_axes=(0, None)))
            points, arrays = jnp.asarray(result.posterior.sample(draws)), tuple(map(jnp.asarray, data))
            bare_call = lambda: jax.block_until_ready(gradient(points, arrays))  # noqa: B023
            bare_call()
            # Interleaved, so that a busy moment of the machine meets both.
            pairs = [(seconds(fit), seconds(bare_call)) for _ in range(REPETITIONS)]
        warm, bare = (float(np.median(times)) for times in zip(*pairs, strict=True))
        batches = result.n_evaluations / draws
        print(
            f"{draws:5d}  {cold:6.2f}  {warm:6.3f}  {1e3 * bare:7.2f}  {result.n_objective_evaluations:24d}  "
            f"{batches:20.1f}  {warm / (batches * bare):.2f}"
        )


if __name__ == "__main__":
    main()
