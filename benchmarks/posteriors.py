"""The ten posteriordb posteriors with default settings: error of the mean in reference standard deviations, and work.

Needs QUENCHED_DATA (a folder that holds posteriordb/). Run from the root of the project.
"""

import sys
import time
from pathlib import Path

import jax
import numpy as np

import quenched as qd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import posteriordb


def transform(constraint):
    return qd.positive if constraint == "positive" else qd.interval(*constraint[1:])


def main() -> None:
    print(
        "posterior                                 draws  gradients  of bound  median error  worst error  cold s  warm s"
    )
    work, errors = [], []
    for name, posterior in posteriordb.load().items():
        transforms = {leaf: transform(constraint) for leaf, constraint in posterior.constraints.items()}
        times = []
        for _ in range(2):
            began = time.perf_counter()
            fit = qd.fit(
                posterior.log_density, posterior.start, data=posterior.data, transforms=transforms, progress=False
            )
            times.append(time.perf_counter() - began)
        natural = fit.sample(20_000, seed=7)
        with jax.enable_x64(True):
            reported = np.asarray(jax.vmap(lambda p: posterior.reported(p, posterior.data))(natural))  # noqa: B023
        error = np.abs(reported.mean(axis=0) - posterior.reference_mean) / posterior.reference_sd
        print(
            f"{name:40s} {fit.n_draws:6d} {fit.n_evaluations:10d} {fit.n_objective_evaluations:9d} "
            f"{np.median(error):13.3f} {error.max():12.3f} {times[0]:7.2f} {times[1]:7.2f}"
        )
        if name != "eight_schools-centered":
            work.append(fit.n_evaluations)
            errors.append(float(np.median(error)))
    print(
        f"\nmedian gradient evaluations {np.median(work):.0f}; {sum(e < 0.03 for e in errors)} of {len(errors)} below 0.03"
    )


if __name__ == "__main__":
    main()
