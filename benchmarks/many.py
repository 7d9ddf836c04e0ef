"""Many fits at once against a loop of warm fits: eight schools, with simulated effects.

Printed are the first call (compilation included), the next, the loop per fit (a sample of the problems, after a warm-up),
and their ratio, in wall time and in processor time; and by how much the answers differ from those of `fit`.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import cauchy, norm

import quenched as qd

ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
TRANSFORMS = {"tau": qd.positive}
SAMPLE = 20  # problems fitted one by one


def centred(parameters, data):
    mu, tau, theta = parameters["mu"], parameters["tau"], parameters["theta"]
    prior = norm.logpdf(mu, 0.0, 5.0) + cauchy.logpdf(tau, 0.0, 5.0) + jnp.sum(norm.logpdf(theta, mu, tau))
    return prior + jnp.sum(norm.logpdf(data["effect"], theta, data["error"]))


def not_centred(parameters, data):
    mu, tau, eta = parameters["mu"], parameters["tau"], parameters["theta"]
    prior = norm.logpdf(mu, 0.0, 5.0) + cauchy.logpdf(tau, 0.0, 5.0) + jnp.sum(norm.logpdf(eta))
    return prior + jnp.sum(norm.logpdf(data["effect"], mu + tau * eta, data["error"]))


def simulated(n: int):
    effects = np.random.default_rng(0).normal(5.0, np.sqrt(100.0 + ERRORS**2), (n, 8))
    return {"effect": effects, "error": np.tile(ERRORS, (n, 1))}


def clocked(compute: Callable) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    compute()
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    start = {"mu": 0.0, "tau": 1.0, "theta": np.zeros(8)}
    print("model        problems  first s  next s  ms each  loop ms each  ratio: wall  processor  largest difference")
    for log_density in (centred, not_centred):
        for n in (1, 10, 100, 1000):
            data = simulated(n)
            many = lambda: qd.fit_many(log_density, start, data, transforms=TRANSFORMS, progress=False)  # noqa: B023
            one = lambda i: qd.fit(
                log_density,  # noqa: B023
                start,
                data=jax.tree.map(lambda leaf: leaf[i], data),  # noqa: B023
                transforms=TRANSFORMS,
                progress=False,
            )
            first, _ = clocked(many)
            fits, sample = many(), range(min(n, SAMPLE))
            alone = [one(i) for i in sample]
            # In turns, so that a busy moment of the machine meets both.
            times = [(*clocked(many), *clocked(lambda: [one(i) for i in sample])) for _ in range(3)]  # noqa: B023
            wall, processor, loop_wall, loop_processor = np.median(times, axis=0)
            loop_wall, loop_processor = loop_wall / len(sample), loop_processor / len(sample)
            away = max(float(np.max(np.abs(_away(fits[i], alone[i])))) for i in sample)
            print(
                f"{log_density.__name__:<12} {n:8d}  {first:7.1f}  {wall:6.2f}  {1e3 * wall / n:7.2f}  {1e3 * loop_wall:12.1f}"
                f"  {loop_wall * n / wall:11.1f}  {loop_processor * n / processor:9.1f}  {away:.1e}",
                flush=True,
            )


def _away(fit: qd.Fit, other: qd.Fit) -> np.ndarray:
    """Differences of means and of standard deviations in posterior standard deviations, and of bounds in nats."""
    assert fit.n_draws == other.n_draws
    means = (fit.posterior.mean - other.posterior.mean) / np.sqrt(other.posterior.variance())
    spreads = np.sqrt(fit.posterior.variance() / other.posterior.variance()) - 1.0
    return np.concatenate([means, spreads, [fit.bound - other.bound]])


if __name__ == "__main__":
    main()
