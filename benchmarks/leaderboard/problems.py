"""The posteriors that all methods are given, as log densities on the real line.

Every method gets the same function of one vector, the log-Jacobian of constrained parameters included, and the same start.
What is judged (`reported`) is in natural units.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.special import gammaln, log_ndtr
from jax.scipy.stats import norm

import quenched as qd
from quenched.paper.experiments.printed import SKEW_VECTORS
from quenched.science import inversion
from quenched.science.boore import Medium
from quenched.science.spectra import read_spectra
from quenched.science.spectra_csv import read_spectra_csv
from quenched.transforms import describe_space

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import posteriordb

NETWORK_NOISE = 0.2
Truth = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Problem:
    """A log density on the real line, and what is known of it."""

    name: str
    log_density: Callable[[Any], Any]
    start: np.ndarray
    reported: Callable[[Any], Any]  # one vector to the quantities that are judged
    truth: Truth | None = None  # their means and sds; None: by a long run of NUTS
    evidence: float | None = None

    @property
    def dim(self) -> int:
        return len(self.start)


def on_real_line(
    name: str, log_density, start, data, transforms=None, reported=None, truth=None, evidence=None
) -> Problem:
    """A problem in natural units, brought to the real line by the library's own transforms."""
    space, vector = describe_space(start, transforms)

    def flat(u):
        return log_density(space.to_natural(u), data) + space.log_jacobian(u)

    def judged(u):
        natural = space.to_natural(u)
        return jnp.ravel(reported(natural, data)) if reported else ravel_pytree(natural)[0]

    # What the space works out for itself when it is first used is then known: no fit finds it changed.
    jax.eval_shape(flat, vector)
    return Problem(name, flat, vector, judged, truth, evidence)


# The ten of posteriordb, and eight schools in its centred form.


def from_posteriordb(full_name: str) -> Problem:
    posterior = posteriordb.load_one(full_name)
    transforms = {
        leaf: qd.positive if constraint == "positive" else qd.interval(*constraint[1:])
        for leaf, constraint in posterior.constraints.items()
    }
    return on_real_line(
        full_name,
        posterior.log_density,
        posterior.start,
        posterior.data,
        transforms,
        posterior.reported,
        (posterior.reference_mean, posterior.reference_sd),
    )


# Logistic regression on radial basis functions (Banana).


def logistic(w, data):
    scores = data["features"] @ w
    prior = jnp.sum(norm.logpdf(w, 0.0, data["sd"]))
    return prior + jnp.sum(data["labels"] * scores - jnp.logaddexp(0.0, scores))


def banana(centres: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels."""
    folder = Path(os.environ["QUENCHED_DATA"]) / "banana"
    inputs = np.loadtxt(folder / "banana_train_data_1.asc")
    labels = (np.loadtxt(folder / "banana_train_labels_1.asc") > 0).astype(float)
    squares = np.sum((inputs[:, None] - inputs[None, :centres]) ** 2, axis=-1)
    features = np.concatenate([np.exp(-0.5 * squares / 0.5**2), np.ones((len(inputs), 1))], axis=1)
    return features, labels


def radial_basis(centres: int) -> Problem:
    features, labels = banana(centres)
    data = {"features": features, "labels": labels, "sd": np.asarray(2.0)}
    return on_real_line("", logistic, np.zeros(centres + 1), data)


# Gaussians that are correlated: every full-rank method can be exact.


def gaussian(w, data):
    away = w - data["mean"]
    return -0.5 * away @ (data["precision"] @ away)


def correlated_gaussian(dim: int) -> Problem:
    generator = np.random.default_rng([12, dim])
    root = generator.standard_normal((dim, dim)) / np.sqrt(dim) + np.eye(dim)
    covariance, mean = root @ root.T, generator.standard_normal(dim)
    evidence = 0.5 * dim * np.log(2.0 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
    data = {"mean": mean, "precision": np.linalg.inv(covariance)}
    truth = (mean, np.sqrt(np.diag(covariance)))
    return on_real_line("", gaussian, np.zeros(dim), data, truth=truth, evidence=float(evidence))


# A Poisson mixed model, a small neural network, ground motion.


def poisson_groups(parameters, data):
    """Counts in groups, with a random effect for each: non-centred."""
    effects = parameters["tau"] * parameters["z"][data["group"]]
    rate = parameters["intercept"] + parameters["slope"] * data["x"] + effects
    prior = sum(norm.logpdf(parameters[name]) for name in ("intercept", "slope", "tau"))
    likelihood = jnp.sum(data["y"] * rate - jnp.exp(rate) - gammaln(data["y"] + 1.0))
    return prior + jnp.sum(norm.logpdf(parameters["z"])) + likelihood


def poisson_reported(p, data):
    return jnp.concatenate([jnp.stack([p["intercept"], p["slope"], p["tau"]]), p["tau"] * p["z"]])


def counts(groups: int = 20, each: int = 5) -> dict[str, np.ndarray]:
    generator = np.random.default_rng([12, 1])
    group, x = np.repeat(np.arange(groups), each), generator.standard_normal(groups * each)
    rate = 0.5 + 0.4 * x + 0.6 * generator.standard_normal(groups)[group]
    return {"x": x, "group": group, "y": generator.poisson(np.exp(rate)).astype(float)}


def poisson_mixed() -> Problem:
    data = counts()
    start = {"intercept": 0.0, "slope": 0.0, "tau": 0.5, "z": np.zeros(data["group"][-1] + 1)}
    return on_real_line("", poisson_groups, start, data, {"tau": qd.positive}, poisson_reported)


def predicted(parameters, x):
    hidden = jnp.tanh(x[:, None] * parameters["into"] + parameters["bias"])
    return hidden @ parameters["out"]


def network(parameters, data):
    prior = sum(jnp.sum(norm.logpdf(leaf)) for leaf in jax.tree.leaves(parameters))
    return prior + jnp.sum(norm.logpdf(data["y"], predicted(parameters, data["x"]), NETWORK_NOISE))


def curve() -> dict[str, np.ndarray]:
    grid, generator = np.linspace(-2.0, 2.0, 25), np.random.default_rng([12, 2])
    return {"x": grid, "y": np.sin(1.5 * grid) + NETWORK_NOISE * generator.standard_normal(25)}


def neural_network() -> Problem:
    """One hidden layer of three; judged are its predictions, since its weights may change places."""
    data = curve()
    start = {"into": np.array([0.5, 1.0, -1.0]), "bias": np.zeros(3), "out": np.array([0.5, 0.5, -0.5])}
    at = np.linspace(-2.5, 2.5, 9)
    return on_real_line("", network, start, data, reported=lambda p, data: predicted(p, at))


def ground_motion(station: str = "FKSH11", n: int = 200) -> Problem:
    """The first points of a random order of the spectra of one station; stress drop of each event, path, site, noise."""
    table = read_spectra_csv(Path(os.environ["QUENCHED_DATA"]) / "groundmotion" / "fas_records_dense.csv")
    rows = np.flatnonzero(table["station"] == station)
    rows = np.random.default_rng([12, 3]).permutation(rows)[:n]
    spectra = read_spectra({name: column[rows] for name, column in table.items()}, "cm/s")
    events, bounds = sorted(set(spectra.event.tolist())), inversion.read_bounds(None)
    data = inversion.observations(spectra, events, bounds, Medium())
    start = inversion.start(bounds, len(events))
    return on_real_line("", inversion.log_density, start, data, inversion.transforms(bounds))


# The three bivariate densities of the paper (Azzalini 2005): normalised, so the log evidence is 0.


def skew(w, a):
    x, y = w[0], w[1]
    h = a[0] * x + a[1] * y + a[2] * x * y**2 + a[3] * x**2 * y + a[4] * x**3 + a[5] * y**3
    return -np.log(np.pi) - 0.5 * (x**2 + y**2) + log_ndtr(h)


def bivariate(which: str) -> Problem:
    from scipy.special import log_ndtr as on_host

    a, side = np.array(SKEW_VECTORS[which]), np.linspace(-9.0, 9.0, 1201)
    x, y = np.meshgrid(side, side, indexing="ij")
    h = a[0] * x + a[1] * y + a[2] * x * y**2 + a[3] * x**2 * y + a[4] * x**3 + a[5] * y**3
    weights = np.exp(-0.5 * (x**2 + y**2) + on_host(h))
    weights /= weights.sum()
    mean = np.array([np.sum(weights * x), np.sum(weights * y)])
    sd = np.sqrt([np.sum(weights * (x - mean[0]) ** 2), np.sum(weights * (y - mean[1]) ** 2)])
    return on_real_line("", skew, np.zeros(2), a, truth=(mean, sd), evidence=0.0)


MAKERS: dict[str, Callable[[], Problem]] = {
    "skew top": partial(bivariate, "top"),
    "skew middle": partial(bivariate, "middle"),
    "skew bottom": partial(bivariate, "bottom"),
    "eight schools": partial(from_posteriordb, "eight_schools-eight_schools_noncentered"),
    "eight schools, centred": partial(from_posteriordb, "eight_schools-centered"),
    "garch11": partial(from_posteriordb, "garch-garch11"),
    "GP-Poisson": partial(from_posteriordb, "gp_pois_regr-gp_pois_regr"),
    "arK": partial(from_posteriordb, "arK-arK"),
    "Lotka-Volterra": partial(from_posteriordb, "hudson_lynx_hare-lotka_volterra"),
    "diamonds": partial(from_posteriordb, "diamonds-diamonds"),
    "blr": partial(from_posteriordb, "sblrc-blr"),
    "kidscore": partial(from_posteriordb, "kidiq-kidscore_interaction"),
    "logearn": partial(from_posteriordb, "earnings-logearn_interaction"),
    "nes": partial(from_posteriordb, "nes1980-nes"),
    "logistic 101": partial(radial_basis, 100),
    "logistic 401": partial(radial_basis, 400),
    "Gaussian 10": partial(correlated_gaussian, 10),
    "Gaussian 100": partial(correlated_gaussian, 100),
    "Gaussian 1000": partial(correlated_gaussian, 1000),
    "Poisson mixed model": poisson_mixed,
    "ground motion": ground_motion,
    "neural network": neural_network,
}

POSTERIORDB = (
    "arK",
    "garch11",
    "Lotka-Volterra",
    "eight schools",
    "GP-Poisson",
    "diamonds",
    "blr",
    "kidscore",
    "logearn",
    "nes",
)
FEW = ("skew top", "eight schools", "garch11", "GP-Poisson", "logistic 101", "Gaussian 100")


def load(name: str) -> Problem:
    """One problem by name."""
    made = MAKERS[name]()
    return Problem(name, made.log_density, made.start, made.reported, made.truth, made.evidence)
