"""Truth for problems that have no other: means and sds by a long run of NUTS (NumPyro), kept in results/references.json."""

import json

import numpy as np
from benchmarks.leaderboard.one_fit import REFERENCES
from benchmarks.leaderboard.problems import MAKERS, load

_CHAINS, _WARM_UP, _KEPT = 4, 1500, 5000


def by_nuts(name: str) -> dict:
    """Means and sds of what a problem reports, with the errors of the means and the worst of the split R-hats."""
    import jax
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
    from numpyro.infer import MCMC, NUTS

    problem = load(name)
    chains = MCMC(
        NUTS(potential_fn=lambda u: -problem.log_density(u), target_accept_prob=0.9),
        num_warmup=_WARM_UP,
        num_samples=_KEPT,
        num_chains=_CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )
    about = np.random.default_rng([12, 7]).uniform(-0.2, 0.2, (_CHAINS, problem.dim))
    chains.run(jax.random.key(12), init_params=jax.numpy.asarray(problem.start + about))
    values = np.asarray(jax.vmap(jax.vmap(problem.reported))(chains.get_samples(group_by_chain=True)))
    together = values.reshape(-1, values.shape[-1])
    mean, sd = together.mean(axis=0), together.std(axis=0)
    return {
        "mean": [float(f"{value:.8g}") for value in mean],
        "sd": [float(f"{value:.8g}") for value in sd],
        "fewest_effective": float(np.min(effective_sample_size(values))),
        "worst_r_hat": float(np.max(split_gelman_rubin(values))),
    }


def make(names: tuple[str, ...]) -> None:
    """Those that are missing."""
    kept = json.loads(REFERENCES.read_text()) if REFERENCES.exists() else {}
    for name in names:
        if name in kept or load(name).truth is not None:
            continue
        kept[name] = by_nuts(name)
        print(
            f"{name}: R-hat {kept[name]['worst_r_hat']:.4f}, effective {kept[name]['fewest_effective']:.0f}", flush=True
        )
        REFERENCES.parent.mkdir(parents=True, exist_ok=True)
        REFERENCES.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    make(tuple(MAKERS))
