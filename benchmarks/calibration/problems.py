"""Posteriors whose truth is known: ten of posteriordb and six of our own.

Truth is a formula where there is one, the reference draws of posteriordb, or a long run of NUTS (NumPyro).
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jax.scipy.stats import norm

import quenched as qd

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import posteriordb


@dataclass(frozen=True, eq=False)
class Problem:
    """A target, the quantities that are judged, and their true means and standard deviations."""

    name: str
    log_density: Callable[..., Any]
    start: Any
    data: Any = None
    transforms: Any = None
    reported: Callable[[Any], Any] = lambda parameters: parameters  # in natural units, to a vector
    truth: tuple[np.ndarray, np.ndarray] | None = None  # None: by NUTS
    options: dict[str, Any] = field(default_factory=dict)

    def fit(self, **options: Any) -> qd.Fit:
        settings = {"transforms": self.transforms, "data": self.data, "progress": False, "throw": False}
        return qd.fit(self.log_density, self.start, **settings, **self.options, **options)

    def moments(self, samples: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of what is reported, from samples in natural units."""
        with jax.enable_x64(True):
            values = np.asarray(jax.vmap(lambda p: jnp.ravel(jnp.asarray(self.reported(p))))(samples))
        return values.mean(axis=0), values.std(axis=0)


def funnel(w):
    return norm.logpdf(w[0], 0.0, 1.5) + jnp.sum(norm.logpdf(w[1:], 0.0, jnp.exp(0.5 * w[0])))


def banana(w):
    return norm.logpdf(w[0]) + norm.logpdf(w[1], 0.5 * (w[0] ** 2 - 1.0), 0.5)


def correlated(w, data):
    return -0.5 * w @ data @ w


def mixture(w):
    parts = [jnp.log(0.7) + norm.logpdf(w[0], -2.0, 1.0), jnp.log(0.3) + norm.logpdf(w[0], 2.0, 1.0)]
    return logsumexp(jnp.stack(parts))


def poisson_groups(parameters, data):
    """Counts in groups, with a random effect for each: non-centred."""
    rate = (
        parameters["intercept"] + parameters["slope"] * data["x"] + parameters["tau"] * parameters["z"][data["group"]]
    )
    prior = norm.logpdf(parameters["intercept"]) + norm.logpdf(parameters["slope"]) + norm.logpdf(parameters["tau"])
    likelihood = jnp.sum(data["y"] * rate - jnp.exp(rate) - gammaln(data["y"] + 1.0))
    return prior + jnp.sum(norm.logpdf(parameters["z"])) + likelihood


def network(parameters, data):
    """One hidden layer of three."""
    prior = sum(jnp.sum(norm.logpdf(leaf)) for leaf in jax.tree.leaves(parameters))
    return prior + jnp.sum(norm.logpdf(data["y"], predict(parameters, data["x"]), 0.2))


def predict(parameters, x):
    hidden = jnp.tanh(x[:, None] * parameters["into"] + parameters["bias"])
    return hidden @ parameters["out"]


def own() -> list[Problem]:
    generator = np.random.default_rng(0)
    root = generator.standard_normal((100, 100)) / 10.0 + np.eye(100)
    covariance = root @ root.T
    group = np.repeat(np.arange(20), 5)
    x = generator.standard_normal(100)
    rate = 0.5 + 0.4 * x + 0.6 * generator.standard_normal(20)[group]
    counts = {"x": x, "group": group, "y": generator.poisson(np.exp(rate)).astype(float)}
    grid = np.linspace(-2.0, 2.0, 25)
    curve = {"x": grid, "y": np.sin(1.5 * grid) + 0.2 * generator.standard_normal(25)}
    layers = {"into": np.array([0.5, 1.0, -1.0]), "bias": np.zeros(3), "out": np.array([0.5, 0.5, -0.5])}
    wide = float(np.exp(1.5**2 / 4.0))
    return [
        Problem("funnel", funnel, np.zeros(6), truth=(np.zeros(6), np.array([1.5, *[wide] * 5]))),
        Problem("banana", banana, np.zeros(2), truth=(np.zeros(2), np.array([1.0, np.sqrt(0.5 + 0.25)]))),
        Problem(
            "correlated Gaussian, 100",
            correlated,
            np.zeros(100),
            data=np.linalg.inv(covariance),
            truth=(np.zeros(100), np.sqrt(np.diag(covariance))),
        ),
        Problem("mixture", mixture, np.zeros(1), truth=(np.array([-0.8]), np.sqrt([1.0 + 0.7 * 0.3 * 4.0**2]))),
        Problem(
            "Poisson mixed model",
            poisson_groups,
            {"intercept": 0.0, "slope": 0.0, "tau": 0.5, "z": np.zeros(20)},
            data=counts,
            transforms={"tau": qd.positive},
            reported=lambda p: jnp.concatenate([jnp.stack([p["intercept"], p["slope"], p["tau"]]), p["tau"] * p["z"]]),
        ),
        Problem(
            "neural network, predictions",
            network,
            layers,
            data=curve,
            reported=lambda p: predict(p, np.linspace(-2.5, 2.5, 9)),
        ),
    ]


def from_posteriordb() -> list[Problem]:
    chosen = []
    for name, posterior in posteriordb.load().items():
        if name == "eight_schools-centered":
            continue
        transforms = {
            leaf: qd.positive if constraint == "positive" else qd.interval(*constraint[1:])
            for leaf, constraint in posterior.constraints.items()
        }
        chosen.append(
            Problem(
                name.split("-")[-1],
                posterior.log_density,
                posterior.start,
                data=posterior.data,
                transforms=transforms,
                reported=lambda p, posterior=posterior: posterior.reported(p, posterior.data),
                truth=(posterior.reference_mean, posterior.reference_sd),
            )
        )
    return chosen


def by_nuts(problem: Problem, n: int = 8000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Truth by a long run, on the real line of the fit's own problem."""
    from numpyro.infer import MCMC, NUTS

    from quenched.posterior import to_natural

    origin = problem.fit().origin
    with jax.enable_x64(True):
        potential = lambda w: -origin.problem.function(w, origin.problem.data, origin.hyper.free)
        chain = MCMC(NUTS(potential_fn=potential), num_warmup=2000, num_samples=n, num_chains=4, progress_bar=False)
        begin = jnp.zeros((4, origin.problem.dim)) + 0.1 * np.random.default_rng(seed).standard_normal((4, 1))
        chain.run(jax.random.key(seed), init_params=begin)
        return problem.moments(to_natural(origin.problem.space, np.asarray(chain.get_samples())))
