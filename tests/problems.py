"""Problems with known answers: name, log density, start, and the exact posterior and evidence where there is one.

Every log density is a function of (parameters, data) at the top level of this module, so that problems of one kind and
shape share a compiled program however many tests fit them. All keep their constants: `evidence` is in nats.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jax.scipy.stats import norm

import quenched as qd

LOG_TWO_PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class Problem:
    """A target and what is known of it.

    `mean`, `covariance` describe the exact posterior on the real line (raveled), `evidence` is its log normaliser;
    None where nobody knows. `gaussian` says that the posterior on the real line is a Gaussian.
    """

    name: str
    log_density: Callable[[Any, Any], Any]
    start: Any
    data: Any
    dim: int
    transforms: Any = None
    mean: np.ndarray | None = None
    covariance: np.ndarray | None = None
    evidence: float | None = None
    gaussian: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def fit(self, **options: Any) -> qd.Fit:
        """Fit it, silently."""
        settings = {"data": self.data, "transforms": self.transforms, "progress": False, **self.options, **options}
        return qd.fit(self.log_density, self.start, **settings)


@cache
def fitted(name: str) -> qd.Fit:
    """The fit of a problem with every option at its default, made once a session."""
    return PROBLEMS[name].fit()


# Gaussian targets.


def gaussian_log_density(w, data):
    away = data["factor"] @ (w - data["mean"])
    return data["constant"] - 0.5 * jnp.sum(away**2)


def gaussian(dim: int, condition: float = 1.0, seed: int = 0, constant: float = 1.5) -> Problem:
    """N(mean, covariance) with eigenvalues spread evenly in the logarithm over `condition`, in random directions."""
    generator = np.random.default_rng([seed, dim])
    directions, _ = np.linalg.qr(generator.standard_normal((dim, dim)))
    sds = np.geomspace(1.0, condition**-0.5, dim) if dim > 1 else np.array([condition**-0.5])
    mean = generator.standard_normal(dim)
    return Problem(
        name=f"gaussian({dim}, {condition:g})",
        log_density=gaussian_log_density,
        start=np.zeros(dim),
        data={"factor": directions.T / sds[:, None], "mean": mean, "constant": np.asarray(constant)},
        dim=dim,
        mean=mean,
        covariance=(directions * sds**2) @ directions.T,
        evidence=float(constant + 0.5 * dim * LOG_TWO_PI + np.sum(np.log(sds))),
        gaussian=True,
    )


def scale_mix(dim: int = 10) -> Problem:
    """Correlated, with standard deviations from 1e-4 to 1e5 in one vector."""
    generator = np.random.default_rng(5)
    sds = np.geomspace(1e-4, 1e5, dim)
    factor = np.tril(generator.standard_normal((dim, dim)) / dim) + np.eye(dim)
    scale = sds[:, None] * factor
    mean = sds * generator.standard_normal(dim)
    log_determinant = np.sum(np.log(np.abs(np.diag(scale))))
    return Problem(
        name="scale_mix",
        log_density=gaussian_log_density,
        start=np.zeros(dim),
        data={"factor": np.linalg.inv(factor) / sds, "mean": mean, "constant": np.asarray(0.0)},
        dim=dim,
        mean=mean,
        covariance=scale @ scale.T,
        evidence=float(0.5 * dim * LOG_TWO_PI + log_determinant),
        gaussian=True,
    )


# Regressions with a unit Gaussian prior; in two dimensions a grid gives the exact answer.


def logistic(w, data):
    scores = data["features"] @ w
    return jnp.sum(data["labels"] * scores - jnp.logaddexp(0.0, scores)) + jnp.sum(norm.logpdf(w))


def poisson(w, data):
    rates = data["features"] @ w
    return jnp.sum(data["counts"] * rates - jnp.exp(rates) - gammaln(data["counts"] + 1.0)) + jnp.sum(norm.logpdf(w))


def logistic_problem(dim: int = 2, n: int = 40) -> Problem:
    generator = np.random.default_rng([1, dim])
    features = generator.standard_normal((n, dim))
    chance = 1.0 / (1.0 + np.exp(-features @ generator.standard_normal(dim)))
    data = {"features": features, "labels": (generator.uniform(size=n) < chance).astype(float)}
    return with_grid(Problem(f"logistic({dim})", logistic, np.zeros(dim), data, dim))


def poisson_problem(n: int = 30) -> Problem:
    generator = np.random.default_rng(2)
    features = np.stack([np.ones(n), generator.standard_normal(n)], axis=1)
    counts = generator.poisson(np.exp(features @ np.array([0.5, 0.8]))).astype(float)
    return with_grid(Problem("poisson", poisson, np.zeros(2), {"features": features, "counts": counts}, 2))


def with_grid(problem: Problem) -> Problem:
    """Moments and evidence by the trapezoidal rule on a grid: exact to ten digits for smooth densities in 2D."""
    if problem.dim != 2:
        return problem
    axis = np.linspace(-6.0, 6.0, 401)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    log_values = NUMPY[problem.log_density](points, problem.data)
    largest = log_values.max()
    weights = np.exp(log_values - largest)
    evidence = largest + np.log(weights.sum()) + 2.0 * np.log(axis[1] - axis[0])
    weights /= weights.sum()
    mean = weights @ points
    away = points - mean
    covariance = (away * weights[:, None]).T @ away
    return Problem(**{**vars(problem), "mean": mean, "covariance": covariance, "evidence": float(evidence)})


def numpy_logistic(points, data):
    scores = points @ data["features"].T
    return (data["labels"] * scores - np.logaddexp(0.0, scores)).sum(axis=1) + numpy_unit_prior(points)


def numpy_poisson(points, data):
    from scipy.special import gammaln as log_gamma

    rates = points @ data["features"].T
    terms = data["counts"] * rates - np.exp(rates) - log_gamma(data["counts"] + 1.0)
    return terms.sum(axis=1) + numpy_unit_prior(points)


def numpy_unit_prior(points):
    return -0.5 * np.sum(points**2, axis=1) - 0.5 * points.shape[1] * LOG_TWO_PI


NUMPY = {logistic: numpy_logistic, poisson: numpy_poisson}


# Normalised densities that are not Gaussian: the log evidence is 0.


def skew_normal(w, data):
    return jnp.sum(jnp.log(2.0) + norm.logpdf(w) + norm.logcdf(data["skewness"] * w))


def skew_normal_problem(skewness: float = 3.0) -> Problem:
    delta = skewness / np.sqrt(1.0 + skewness**2)
    mean = np.array([delta * np.sqrt(2.0 / np.pi)])
    data = {"skewness": np.asarray(skewness)}
    return Problem(
        "skew_normal", skew_normal, np.zeros(1), data, 1, mean=mean, covariance=np.diag(1 - mean**2), evidence=0.0
    )


def funnel(parameters, data):
    """Neal's funnel: the scale of x is exp(v / 2)."""
    v, x = parameters["v"], parameters["x"]
    return norm.logpdf(v, 0.0, data["width"]) + jnp.sum(norm.logpdf(x, 0.0, jnp.exp(0.5 * v)))


def funnel_problem() -> Problem:
    start = {"v": np.asarray(0.0), "x": np.zeros(2)}
    return Problem("funnel", funnel, start, {"width": np.asarray(1.5)}, 3, evidence=0.0)


def two_peaks(w, data):
    """A mixture of unit Gaussians: four fifths around data["centre"], one fifth around minus that."""
    each = jnp.stack([jnp.sum(norm.logpdf(w, centre)) for centre in (data["centre"], -data["centre"])])
    return logsumexp(each + np.log([0.8, 0.2]))


def two_peaks_problem(distance: float = 8.0) -> Problem:
    """The start is on the side of the lower peak."""
    data = {"centre": np.array([distance, 0.0])}
    return Problem("two_peaks", two_peaks, np.array([-0.5, 0.0]), data, 2, evidence=0.0)


def constrained(parameters, data):
    """Independent gamma, beta, Dirichlet and ordered parts, each normalised."""
    rate, share, parts, knots = (parameters[name] for name in ("rate", "share", "parts", "knots"))
    gamma = 4.0 * jnp.log(rate) - 2.0 * rate + 5.0 * jnp.log(2.0) - gammaln(5.0)
    scaled = (share + 1.0) / 4.0  # in (-1, 3)
    beta = 3.0 * jnp.log(scaled) + 2.0 * jnp.log1p(-scaled) + gammaln(7.0) - gammaln(4.0) - gammaln(3.0) - jnp.log(4.0)
    weights = data["weights"]
    dirichlet = jnp.sum((weights - 1.0) * jnp.log(parts)) + gammaln(jnp.sum(weights)) - jnp.sum(gammaln(weights))
    # The order statistics of two standard normals.
    ordered = jnp.sum(norm.logpdf(knots)) + jnp.log(2.0)
    return gamma + beta + dirichlet + ordered


def constrained_problem() -> Problem:
    start = {
        "rate": np.asarray(1.0),
        "share": np.asarray(0.5),
        "parts": np.array([0.3, 0.3, 0.4]),
        "knots": np.array([-1.0, 1.0]),
    }
    transforms = {
        "rate": qd.positive,
        "share": qd.interval(-1.0, 3.0),
        "parts": qd.simplex,
        "knots": qd.ordered,
    }
    data = {"weights": np.array([3.0, 4.0, 5.0])}
    return Problem("constrained", constrained, start, data, 6, transforms, evidence=0.0)


# Rubin's eight schools, centred: the density rises without bound as tau falls to 0.

SCHOOLS = {
    "effects": np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
    "errors": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
}


def eight_schools_centred(parameters, data):
    theta, mu, tau = parameters["theta"], parameters["mu"], parameters["tau"]
    half_cauchy = jnp.log(2.0) - jnp.log(5.0 * jnp.pi) - jnp.log1p((tau / 5.0) ** 2)
    prior = norm.logpdf(mu, 0.0, 5.0) + half_cauchy + jnp.sum(norm.logpdf(theta, mu, tau))
    return prior + jnp.sum(norm.logpdf(data["effects"], theta, data["errors"]))


def eight_schools_problem() -> Problem:
    """The evidence is a two-dimensional integral over mu and log tau, theta being integrated out exactly."""
    start = {"mu": np.asarray(0.0), "tau": np.asarray(1.0), "theta": np.zeros(8)}
    mu, log_tau = (grid[..., None] for grid in np.meshgrid(np.linspace(-40, 40, 801), np.linspace(-12, 12, 801)))
    tau = np.exp(log_tau)
    variance = SCHOOLS["errors"] ** 2 + tau**2
    likelihood = -0.5 * np.sum((SCHOOLS["effects"] - mu) ** 2 / variance + np.log(variance) + LOG_TWO_PI, axis=-1)
    prior = -0.5 * (mu / 5.0) ** 2 - np.log(5.0) - 0.5 * LOG_TWO_PI + np.log(2.0) - np.log(5.0 * np.pi)
    joint = likelihood + (prior - np.log1p((tau / 5.0) ** 2) + log_tau)[..., 0]
    evidence = float(np.log(np.sum(np.exp(joint)) * (80 / 800) * (24 / 800)))
    return Problem("eight_schools", eight_schools_centred, start, SCHOOLS, 10, {"tau": qd.positive}, evidence=evidence)


def _registered(*problems: Problem) -> dict[str, Problem]:
    return {problem.name: problem for problem in problems}


PROBLEMS = _registered(
    gaussian(1),
    gaussian(3, 1e3),
    gaussian(8, 1e8),
    scale_mix(),
    logistic_problem(2),
    logistic_problem(5),
    poisson_problem(),
    skew_normal_problem(),
    funnel_problem(),
    two_peaks_problem(),
    constrained_problem(),
    eight_schools_problem(),
)

WITH_EVIDENCE = [name for name, problem in PROBLEMS.items() if problem.evidence is not None]
GAUSSIAN = [name for name, problem in PROBLEMS.items() if problem.gaussian]
