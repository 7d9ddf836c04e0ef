"""The warped family against the full Gaussian on the posteriors of posteriordb.

Prints, for each: the check bound of the full Gaussian and what the warp adds to it (both on the same fresh draws), the
worst error of a standard deviation against the reference draws (natural units), and the evaluations of the bound. For the
skewed posteriors also the worst error on the real line, where the posteriors live, against Hamiltonian Monte Carlo.

    QUENCHED_DATA=... python benchmarks/warped.py [part of a name ...] [--seed 0]
"""

import argparse
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import quenched as qd
from quenched.objective import Problem, log_ratios, make_problem
from quenched.posterior import to_natural
from quenched.targets import log_density

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import posteriordb

SKEWED = ("garch", "lotka", "schools", "gp_pois")
CHECKS = 20_000
CHAINS, STEPS, LEAPS = 64, 1000, 10


def transform(constraint):
    return qd.positive if constraint == "positive" else qd.interval(*constraint[1:])


def worst(sds, reference) -> float:
    return float(np.max(np.abs(sds / reference - 1.0)))


def natural_error(fit: qd.Fit, posterior) -> float:
    points = to_natural(fit.space, fit.posterior.transform(qd.matched(8192, fit.posterior.dim, 7).points))
    reported = jax.vmap(lambda parameters: posterior.reported(parameters, posterior.data))(points)
    return worst(np.asarray(reported).std(axis=0), posterior.reference_sd)


def hamiltonian_sds(problem: Problem, fit: qd.Fit) -> np.ndarray:
    """Standard deviations on the real line from many short-step chains in the coordinates of the full Gaussian."""
    mean, scale = fit.posterior.mean, fit.posterior.scale
    rise = jax.value_and_grad(lambda x: problem.function(mean + scale @ x, problem.data, problem.hyper.free))

    def step(here, key):
        momentum_key, accept_key, length_key = jax.random.split(key, 3)
        momentum = jax.random.normal(momentum_key, mean.shape)
        length = jnp.exp(jax.random.uniform(length_key, minval=np.log(0.05), maxval=np.log(0.4)))

        def leap(_, state):
            x, momentum, _, gradient = state
            momentum = momentum + 0.5 * length * gradient
            x = x + length * momentum
            value, gradient = rise(x)
            return x, momentum + 0.5 * length * gradient, value, gradient

        x, value, gradient = here
        there = jax.lax.fori_loop(0, LEAPS, leap, (x, momentum, value, gradient))
        change = there[2] - value - 0.5 * (there[1] @ there[1] - momentum @ momentum)
        accepted = jnp.log(jax.random.uniform(accept_key)) < change
        here = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), (there[0], there[2], there[3]), here)
        return here, here[0]

    def chain(key):
        x = 0.5 * jax.random.normal(key, mean.shape)
        return jax.lax.scan(step, (x, *rise(x)), jax.random.split(key, STEPS))[1]

    samples = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), CHAINS))[:, STEPS // 4 :]
    return np.asarray(samples.reshape(-1, len(mean)) @ scale.T).std(axis=0)


def compare(name: str, seed: int) -> str:
    posterior = posteriordb.load_one(name)
    transforms = {leaf: transform(constraint) for leaf, constraint in posterior.constraints.items()}
    options = {"data": posterior.data, "transforms": transforms, "seed": seed, "progress": False}
    full, warped = (
        qd.fit(posterior.log_density, posterior.start, family=family, **options) for family in ("full", "warped")
    )
    with jax.enable_x64(True):
        problem = make_problem(log_density(posterior.log_density), full.space, posterior.data, None)
        z = np.random.default_rng([seed, 5]).standard_normal((CHECKS, full.posterior.dim))
        ratios = [log_ratios(problem, fit.posterior.member, problem.hyper, z) for fit in (full, warped)]
        gain = ratios[1] - ratios[0]
        natural = [natural_error(fit, posterior) for fit in (full, warped)]
        real = ""
        if any(part in name for part in SKEWED):
            reference = hamiltonian_sds(problem, full)
            real = " → ".join(f"{worst(np.sqrt(fit.posterior.variance()), reference):.3f}" for fit in (full, warped))
    error = np.std(gain) / np.sqrt(CHECKS)
    return (
        f"| {name.split('-', 1)[1]} | {np.mean(ratios[0]):.3f} | {np.mean(gain):+.4f} ± {error:.4f} | "
        f"{natural[0]:.3f} → {natural[1]:.3f} | {real} | {full.n_objective_evaluations} | "
        f"{warped.n_objective_evaluations} | {warped.n_draws} | {warped.status} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name in posteriordb.NAMES:
        if not arguments.parts or any(part in name for part in arguments.parts):
            print(compare(name, arguments.seed), flush=True)


if __name__ == "__main__":
    main()
