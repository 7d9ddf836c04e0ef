"""Ways to approximate the posterior of the ground-motion model, all measured alike on a test set.

The paper's flat prior, p(w) ∝ 1, can be read in three ways, which are the same only where data rule:

- flat within the bounds in natural units: proper, and what `GroundMotion` does;
- flat on the real line, over the transformed parameters: improper wherever a bound is not excluded by the data;
- flat without bounds, in natural units: a Gaussian then reaches beyond the physical range.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from quenched.baselines import laplace
from quenched.draws import iid
from quenched.fitting import Alternating, Joint, fit
from quenched.results import Fit
from quenched.science import GroundMotion, Spectra
from quenched.targets import Target
from quenched.transforms import positive

_SAMPLES = 200  # as in the paper
_PAPER_DRAWS = 1000
_MANY = 4096  # samples that leave no doubt which error is smaller
_STEPS = 300  # evaluations after which a bound that has no maximum is given up


def frozen(train: Spectra, mode: str, seed: int, max_rounds: int) -> GroundMotion:
    """Frozen draws, flat within the bounds: the library's defaults, or the paper's settings."""
    options: dict[str, Any] = {"seed": seed, "throw": False, "progress": False}
    if mode == "paper":
        dim = len(set(train.event.tolist())) + 4
        options |= {"draws": iid(_PAPER_DRAWS, dim, seed), "method": Alternating(max_rounds=max_rounds)}
    return GroundMotion().fit(train, **options)


def laplace_within_bounds(train: Spectra, **_: Any) -> GroundMotion:
    """Laplace on the same density as the frozen draws."""
    return _fitted(train, laplace)


def laplace_on_the_line(train: Spectra, **_: Any) -> GroundMotion:
    """Laplace with the prior flat on the real line."""
    return _fitted(train, partial(_flat, laplace))


def frozen_on_the_line(train: Spectra, **_: Any) -> GroundMotion:
    """Frozen draws with the prior flat on the real line: no maximum where data do not exclude a bound."""
    return _fitted(train, partial(_flat, fit), method=Joint(max_evaluations=_STEPS))


def laplace_without_bounds(train: Spectra, near: GroundMotion) -> GroundMotion:
    """Laplace in natural units without transforms, its search begun at the frozen draws' mean."""

    def using(log_density: Callable[..., Any], start: Any, **options: Any) -> Fit:
        start = {name: np.asarray(value) for name, value in near.fit_.mean.items()}
        return _flat(laplace, log_density, start, **options | {"transforms": {"noise": positive}})

    return _fitted(train, using)


def _fitted(train: Spectra, using: Callable[..., Fit], **options: Any) -> GroundMotion:
    return GroundMotion().fit(train, using=using, throw=False, progress=False, **options)


def _flat(using: Callable[..., Fit], log_density: Callable[..., Any], start: Any, **options: Any) -> Fit:
    return using(Target(_likelihood(log_density), adds_jacobian=False), start, **options)


@cache  # one function, and so one trace, for all repetitions
def _likelihood(log_density: Callable[..., Any]) -> Callable[..., Any]:
    """log p(Y | w): with nothing added, flat on the scale that the optimiser sees."""
    return lambda w, data: log_density(w, data) - data.log_prior + jnp.log(w["noise"])


OTHERS = {  # beside the frozen draws
    "laplace": laplace_within_bounds,
    "laplace_line": laplace_on_the_line,
    "laplace_natural": laplace_without_bounds,
    "frozen_line": frozen_on_the_line,
}


def measure(model: GroundMotion, test: Spectra) -> dict[str, Any]:
    """Test error as in the paper, test log density, and how the fit went. What is not finite counts as infinite."""
    fitted = model.fit_
    residuals, noise = model.residuals(test, n=_SAMPLES, seed=1), model.sample(_SAMPLES, seed=1)["noise"]
    errors = np.mean(residuals**2, axis=1)
    return {
        "error": _finite_or_infinite(np.mean(errors)),
        "log_density": -_finite_or_infinite(-_log_density(residuals, noise)),
        "fine_error": _finite_or_infinite(model.prediction_error(test, n=_MANY, seed=2)),
        "broken_samples": int(np.sum(~np.isfinite(errors))),
        "kappa0": [float(fitted.mean["kappa0"]), float(fitted.sd["kappa0"])],
        "check_bound": float(fitted.check_bound),
        "gap": float(fitted.gap),
        "evaluations": fitted.n_evaluations,
        "n_draws": fitted.n_draws,
        "seconds": fitted.seconds,
        "status": str(fitted.status),
    }


def _log_density(residuals: np.ndarray, noise: np.ndarray) -> float:
    """Mean over the test set of the log predictive density of ln amplitude."""
    sd = noise[:, None]
    if not (np.isfinite(residuals).all() and (sd > 0).all()):
        return -np.inf
    each = -0.5 * (residuals / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)
    return float(np.mean(logsumexp(each, axis=0) - np.log(len(residuals))))


def _finite_or_infinite(value: Any) -> float:
    return float(value) if np.isfinite(value) else float("inf")
