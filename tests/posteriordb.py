"""Eleven posteriors of posteriordb, in natural units, with the moments of their reference draws.

The data live in the folder ``posteriordb`` under the environment variable ``QUENCHED_DATA``.

Every log density keeps the normalising constants of its priors and likelihood, and carries no Jacobian of the
positive and interval transforms. As in Stan, a prior that a constraint cuts off (half-Cauchy, half-normal,
half-t) enters with its *un-truncated* density: an evidence with properly normalised half-priors is larger by
log 2 for each of them, and by a little for the N(1, 0.5) and N(0.05, 0.05) rates of Lotka and Volterra. Flat
priors enter as zero. All data are float64, counts too, so that strict type promotion finds no fault.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import gammaln
from jax.scipy.stats import cauchy, gamma, norm, t

SUBSTEPS = 32  # Runge-Kutta steps between two counts of hares and lynxes
LARGEST_LOG_POPULATION = 10.0  # the posterior stays below 6; the ceiling keeps wild parameters finite


@dataclass(frozen=True)
class Posterior:
    """A log density with its data, where to start, and what the reference draws say.

    ``start`` is the origin of Stan's unconstrained scale. ``constraints`` maps a leaf to ``"positive"`` or to
    ``("interval", a, b)``; a leaf it does not name is real. ``reported`` gives the vector that the reference
    moments describe, in the order of ``names``.
    """

    name: str
    log_density: Callable[[dict, dict], jnp.ndarray]
    start: dict[str, np.ndarray]
    constraints: dict[str, str | tuple[str, float, float]]
    data: dict[str, np.ndarray]
    quantities: Callable[[dict, dict], dict]
    names: tuple[str, ...]
    reference_mean: np.ndarray
    reference_sd: np.ndarray
    reference_covariance: np.ndarray

    def reported(self, parameters: dict, data: dict) -> jnp.ndarray:
        """The quantities of one draw as the vector that the reference describes."""
        return jnp.concatenate([jnp.ravel(value) for value in self.quantities(parameters, data).values()])


@dataclass(frozen=True)
class Model:
    """A posterior before its files are read; ``prepare`` turns the stored data into arrays."""

    log_density: Callable[[dict, dict], jnp.ndarray]
    shapes: dict[str, tuple[int, ...]]
    constraints: dict[str, str | tuple[str, float, float]]
    prepare: Callable[[Mapping], dict]
    quantities: Callable[[dict, dict], dict]
    reference: str | None = None  # the posterior whose reference this one shares


def leaves(*names: str) -> Callable[[dict, dict], dict]:
    """Report these leaves as they are. The order is said aloud because JAX sorts the keys of a dict."""
    return lambda parameters, data: {name: parameters[name] for name in names}


def keep(*names: str) -> Callable[[Mapping], dict]:
    return lambda stored: {name: stored[name] for name in names}


def log_normal(value, centre, scale):
    """The log density of a value whose logarithm is N(centre, scale)."""
    return norm.logpdf(jnp.log(value), centre, scale) - jnp.log(value)


# Linear regressions: they share a likelihood and differ in design and priors.


def regression(parameters, data):
    """The likelihood of Gaussian regression; on its own, the posterior under flat priors."""
    prediction = data["design"] @ parameters["beta"]
    return norm.logpdf(data["outcome"], prediction, parameters["sigma"]).sum()


def kidscore(parameters, data):
    return regression(parameters, data) + cauchy.logpdf(parameters["sigma"], 0.0, 2.5)


def bayesian_linear_regression(parameters, data):
    prior = norm.logpdf(parameters["beta"], 0.0, 10.0).sum() + norm.logpdf(parameters["sigma"], 0.0, 10.0)
    return prior + regression(parameters, data)


def autoregression(parameters, data):
    alpha, beta, sigma = parameters["alpha"], parameters["beta"], parameters["sigma"]
    prior = norm.logpdf(alpha, 0.0, 10.0) + norm.logpdf(beta, 0.0, 10.0).sum() + cauchy.logpdf(sigma, 0.0, 2.5)
    return prior + norm.logpdf(data["outcome"], alpha + data["design"] @ beta, sigma).sum()


def diamonds(parameters, data):
    b, intercept, sigma = parameters["b"], parameters["Intercept"], parameters["sigma"]
    prior = norm.logpdf(b, 0.0, 1.0).sum() + t.logpdf(intercept, 3.0, 8.0, 10.0) + t.logpdf(sigma, 3.0, 0.0, 10.0)
    return prior + norm.logpdf(data["outcome"], intercept + data["design"] @ b, sigma).sum()


def interaction(outcome, first, second):
    columns = [np.ones_like(first), first, second, first * second]
    return {"design": np.stack(columns, axis=1), "outcome": outcome}


def lagged(stored):
    """Row t of the design holds y[t-1], ..., y[t-K]."""
    series, order = stored["y"], int(stored["K"])
    windows = np.lib.stride_tricks.sliding_window_view(series[:-1], order)
    return {"design": windows[:, ::-1].copy(), "outcome": series[order:]}


def centred_design(stored):
    covariates = stored["X"][:, 1:]
    return {"design": covariates - covariates.mean(axis=0), "outcome": stored["Y"]}


def election_design(stored):
    ages = [(stored["age_discrete"] == group).astype(float) for group in (2, 3, 4)]
    before = [np.ones_like(stored["partyid7"]), stored["real_ideo"], stored["race_adj"]]
    after = [stored["educ1"], stored["gender"], stored["income"]]
    return {"design": np.stack([*before, *ages, *after], axis=1), "outcome": stored["partyid7"]}


# Eight schools, in both forms.


def schools_hyperprior(parameters):
    return norm.logpdf(parameters["mu"], 0.0, 5.0) + cauchy.logpdf(parameters["tau"], 0.0, 5.0)


def noncentred_effects(parameters, data):
    theta = parameters["mu"] + parameters["tau"] * parameters["theta_trans"]
    return {"theta": theta, "mu": parameters["mu"], "tau": parameters["tau"]}


def schools_noncentred(parameters, data):
    theta = noncentred_effects(parameters, data)["theta"]
    prior = schools_hyperprior(parameters) + norm.logpdf(parameters["theta_trans"], 0.0, 1.0).sum()
    return prior + norm.logpdf(data["y"], theta, data["sigma"]).sum()


def schools_centred(parameters, data):
    theta = parameters["theta"]
    prior = schools_hyperprior(parameters) + norm.logpdf(theta, parameters["mu"], parameters["tau"]).sum()
    return prior + norm.logpdf(data["y"], theta, data["sigma"]).sum()


# GARCH(1, 1), over ``fraction`` = beta1 / (1 - alpha1) so that every bound is fixed.


def garch_quantities(parameters, data):
    beta1 = (1.0 - parameters["alpha1"]) * parameters["fraction"]
    return {**leaves("mu", "alpha0", "alpha1")(parameters, data), "beta1": beta1}


def garch(parameters, data):
    """Flat in beta1, hence log(1 - alpha1) in ``fraction``: the one Jacobian that a density here carries."""
    mu, alpha0, alpha1, beta1 = garch_quantities(parameters, data).values()

    def advance(variance, deviation):
        following = alpha0 + alpha1 * jnp.square(deviation) + beta1 * variance
        return following, following

    first = jnp.square(data["sigma1"])
    _, later = lax.scan(advance, first, data["y"][:-1] - mu)
    deviations = jnp.sqrt(jnp.concatenate([first[None], later]))
    return jnp.log1p(-alpha1) + norm.logpdf(data["y"], mu, deviations).sum()


# Lotka and Volterra's hares and lynxes, integrated in log populations so that these stay positive.


def growth_rates(log_populations, theta):
    hare, lynx = jnp.exp(jnp.minimum(log_populations, LARGEST_LOG_POPULATION))
    return jnp.stack([theta[0] - theta[1] * lynx, theta[3] * hare - theta[2]])


def runge_kutta(log_populations, theta, step):
    first = growth_rates(log_populations, theta)
    second = growth_rates(log_populations + 0.5 * step * first, theta)
    third = growth_rates(log_populations + 0.5 * step * second, theta)
    fourth = growth_rates(log_populations + step * third, theta)
    return log_populations + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)


def log_trajectory(theta, z_init, intervals):
    """Log populations at the end of each interval, starting from ``z_init``."""

    def substep(log_populations, step):
        return runge_kutta(log_populations, theta, step), None

    def across(log_populations, interval):
        steps = jnp.broadcast_to(interval / SUBSTEPS, (SUBSTEPS,))
        arrived, _ = lax.scan(substep, log_populations, steps)
        return arrived, arrived

    return lax.scan(across, jnp.log(z_init), intervals)[1]


def lotka_volterra(parameters, data):
    theta, z_init, sigma = parameters["theta"], parameters["z_init"], parameters["sigma"]
    prior = (
        norm.logpdf(theta, np.array([1.0, 0.05, 1.0, 0.05]), np.array([0.5, 0.05, 0.5, 0.05])).sum()
        + log_normal(z_init, np.log(10.0), 1.0).sum()
        + log_normal(sigma, -1.0, 1.0).sum()
    )
    path = log_trajectory(theta, z_init, data["intervals"])
    initial = log_normal(data["y_init"], jnp.log(z_init), sigma).sum()
    return prior + initial + log_normal(data["y"], path, sigma).sum()


def census(stored):
    return {"y_init": stored["y_init"], "y": stored["y"], "intervals": np.diff(stored["ts"], prepend=0.0)}


# Poisson regression on a Gaussian process.


def process_quantities(parameters, data):
    rho, alpha = parameters["rho"], parameters["alpha"]
    distances = data["x"][:, None] - data["x"][None, :]
    kernel = jnp.square(alpha) * jnp.exp(-0.5 * jnp.square(distances / rho))
    factor = jnp.linalg.cholesky(kernel + 1e-10 * np.eye(len(data["x"])))
    return {"rho": rho, "alpha": alpha, "f": factor @ parameters["f_tilde"]}


def poisson_process(parameters, data):
    rho, alpha, f = process_quantities(parameters, data).values()
    prior = (
        gamma.logpdf(rho, 25.0, scale=0.25)
        + norm.logpdf(alpha, 0.0, 2.0)
        + norm.logpdf(parameters["f_tilde"], 0.0, 1.0).sum()
    )
    # In terms of f, not of exp(f), which may underflow.
    return prior + (data["k"] * f - jnp.exp(f) - gammaln(data["k"] + 1.0)).sum()


POSITIVE_SIGMA = {"sigma": "positive"}
UNIT_INTERVAL = ("interval", 0.0, 1.0)


def regression_model(log_density, coefficients: int, prepare) -> Model:
    shapes = {"beta": (coefficients,), "sigma": ()}
    return Model(log_density, shapes, POSITIVE_SIGMA, prepare, leaves("beta", "sigma"))


MODELS = {
    "arK-arK": Model(
        autoregression,
        {"alpha": (), "beta": (5,), "sigma": ()},
        POSITIVE_SIGMA,
        lagged,
        leaves("alpha", "beta", "sigma"),
    ),
    "garch-garch11": Model(
        garch,
        {"mu": (), "alpha0": (), "alpha1": (), "fraction": ()},
        {"alpha0": "positive", "alpha1": UNIT_INTERVAL, "fraction": UNIT_INTERVAL},
        keep("y", "sigma1"),
        garch_quantities,
    ),
    # The start is an equilibrium of the populations and leads to a mode 40 log units too low.
    "hudson_lynx_hare-lotka_volterra": Model(
        lotka_volterra,
        {"theta": (4,), "z_init": (2,), "sigma": (2,)},
        {"theta": "positive", "z_init": "positive", "sigma": "positive"},
        census,
        leaves("theta", "z_init", "sigma"),
    ),
    "eight_schools-eight_schools_noncentered": Model(
        schools_noncentred,
        {"theta_trans": (8,), "mu": (), "tau": ()},
        {"tau": "positive"},
        keep("y", "sigma"),
        noncentred_effects,
    ),
    "eight_schools-centered": Model(
        schools_centred,
        {"theta": (8,), "mu": (), "tau": ()},
        {"tau": "positive"},
        keep("y", "sigma"),
        leaves("theta", "mu", "tau"),
        reference="eight_schools-eight_schools_noncentered",
    ),
    "gp_pois_regr-gp_pois_regr": Model(
        poisson_process,
        {"rho": (), "alpha": (), "f_tilde": (11,)},
        {"rho": "positive", "alpha": "positive"},
        keep("x", "k"),
        process_quantities,
    ),
    "diamonds-diamonds": Model(
        diamonds,
        {"b": (24,), "Intercept": (), "sigma": ()},
        POSITIVE_SIGMA,
        centred_design,
        leaves("b", "Intercept", "sigma"),
    ),
    "sblrc-blr": regression_model(
        bayesian_linear_regression, 5, lambda stored: {"design": stored["X"], "outcome": stored["y"]}
    ),
    "kidiq-kidscore_interaction": regression_model(
        kidscore, 4, lambda stored: interaction(stored["kid_score"], stored["mom_hs"], stored["mom_iq"])
    ),
    "earnings-logearn_interaction": regression_model(
        regression, 4, lambda stored: interaction(np.log(stored["earn"]), stored["height"], stored["male"])
    ),
    "nes1980-nes": regression_model(regression, 9, election_design),
}

NAMES = tuple(MODELS)


def folder() -> Path:
    return Path(os.environ["QUENCHED_DATA"]) / "posteriordb"


def read(filename: str) -> dict:
    return json.loads((folder() / filename).read_text())


def origin(shape: tuple[int, ...], constraint) -> np.ndarray:
    """Where u = 0 on Stan's unconstrained scale lands in natural units."""
    match constraint:
        case None:
            value = 0.0
        case "positive":
            value = 1.0
        case ("interval", lower, upper):
            value = 0.5 * (lower + upper)
    return np.full(shape, value)


def load_one(name: str) -> Posterior:
    """Read one posterior with its data and reference."""
    model = MODELS[name]
    reference = read(f"{model.reference or name}.reference.json")
    stored = {key: np.asarray(value, dtype=float) for key, value in read(reference["data"]).items()}
    return Posterior(
        name=name,
        log_density=model.log_density,
        start={leaf: origin(shape, model.constraints.get(leaf)) for leaf, shape in model.shapes.items()},
        constraints=dict(model.constraints),
        data=model.prepare(stored),
        quantities=model.quantities,
        names=tuple(reference["parameters"]),
        reference_mean=np.asarray(reference["mean"]),
        reference_sd=np.asarray(reference["sd"]),
        reference_covariance=np.asarray(reference["covariance"]),
    )


def load() -> dict[str, Posterior]:
    """Read all eleven."""
    return {name: load_one(name) for name in NAMES}
