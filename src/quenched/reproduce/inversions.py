"""Ways to approximate the posterior of the ground-motion model, all measured alike on a test set.

The paper's flat prior, p(w) ∝ 1, can be read in three ways, which are the same only where data rule:

- flat within the bounds in natural units: proper, and what `GroundMotion` does;
- flat on the real line, over the transformed parameters: improper wherever a bound is not excluded by the data;
- flat without bounds, in natural units: a Gaussian then reaches beyond the physical range.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

import quenched as qd
from quenched.science import GroundMotion, Spectra
from quenched.science import inversion as model
from quenched.science.prediction import curves
from quenched.targets import Target

_SAMPLES = 200  # as in the paper
_PAPER_DRAWS = 1000
_MANY = 4096  # samples that leave no doubt which error is smaller
_STEPS = 300  # evaluations after which a bound that has no maximum is given up


def log_likelihood(parameters: Any, data: model.Observations) -> Any:
    """log p(Y | w): with nothing added, flat on the scale that the optimiser sees."""
    return model.log_density(parameters, data) - data.log_prior + jnp.log(parameters["noise"])


def frozen(train: Spectra, mode: str, seed: int, max_rounds: int) -> GroundMotion:
    """Frozen draws, flat within the bounds: the library's defaults, or the paper's settings."""
    options: dict[str, Any] = {"seed": seed, "throw": False, "progress": False}
    if mode == "paper":
        dim = len(set(train.event.tolist())) + 4
        options |= {"draws": qd.iid(_PAPER_DRAWS, dim, seed), "method": qd.Alternating(max_rounds=max_rounds)}
    return GroundMotion().fit(train, **options)


def laplace(train: Spectra, **_: Any) -> qd.Fit:
    """Laplace on the same density as the frozen draws."""
    return GroundMotion().fit(train, using=qd.laplace, throw=False, progress=False).fit_


def laplace_on_the_line(train: Spectra, **_: Any) -> qd.Fit:
    """Laplace with the prior flat on the real line."""
    return _flat(train, qd.laplace, model.transforms(model.read_bounds(None)), None)


def frozen_on_the_line(train: Spectra, **_: Any) -> qd.Fit:
    """Frozen draws with the prior flat on the real line: no maximum where data do not exclude a bound."""
    method = qd.Joint(max_evaluations=_STEPS)
    return _flat(train, qd.fit, model.transforms(model.read_bounds(None)), None, method=method)


def laplace_without_bounds(train: Spectra, near: GroundMotion) -> qd.Fit:
    """Laplace in natural units without transforms, its search begun at the frozen draws' mean."""
    start = {name: np.asarray(value) for name, value in near.fit_.mean.items()}
    return _flat(train, qd.laplace, {"noise": qd.positive}, start)


def _flat(train: Spectra, using: Callable[..., qd.Fit], transforms: Any, start: Any, **options: Any) -> qd.Fit:
    bounds, events = model.read_bounds(None), sorted(set(train.event.tolist()))
    return using(
        Target(log_likelihood, adds_jacobian=False),
        model.start(bounds, len(events)) if start is None else start,
        data=model.observations(train, events, bounds, GroundMotion().medium),
        transforms=transforms,
        throw=False,
        progress=False,
        **options,
    )


OTHERS = {  # beside the frozen draws
    "laplace": laplace,
    "laplace_line": laplace_on_the_line,
    "laplace_natural": laplace_without_bounds,
    "frozen_line": frozen_on_the_line,
}


def measure(fit: qd.Fit, test: Spectra) -> dict[str, Any]:
    """Test error as in the paper, test log density, and how the fit went. What is not finite counts as infinite."""
    samples = fit.sample(_SAMPLES, seed=1)
    lines, observed = _test(samples, test)
    errors = np.mean((lines - observed) ** 2, axis=1)
    return {
        "error": _finite_or_infinite(np.mean(errors)),
        "log_density": -_finite_or_infinite(-_log_density(lines, observed, samples["noise"])),
        "fine_error": _finite_or_infinite(np.mean((_test(fit.sample(_MANY, seed=2), test)[0] - observed) ** 2)),
        "broken_samples": int(np.sum(~np.isfinite(errors))),
        "kappa0": [float(fit.mean["kappa0"]), float(fit.sd["kappa0"])],
        "check_bound": float(fit.check_bound),
        "gap": float(fit.gap),
        "evaluations": fit.n_evaluations,
        "n_draws": fit.n_draws,
        "seconds": fit.seconds,
        "status": str(fit.status),
    }


def _test(samples: Any, test: Spectra) -> tuple[np.ndarray, np.ndarray]:
    assert test.amplitude is not None
    names = sorted(set(test.event.tolist()))
    return curves(samples, *model.prepare(test, names, GroundMotion().medium)), np.log(test.amplitude)


def _log_density(lines: np.ndarray, observed: np.ndarray, noise: np.ndarray) -> float:
    """Mean over the test set of the log predictive density of ln amplitude."""
    sd = noise[:, None]
    if not (np.isfinite(lines).all() and (sd > 0).all()):
        return -np.inf
    each = -0.5 * ((lines - observed) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)
    return float(np.mean(logsumexp(each, axis=0) - np.log(len(lines))))


def _finite_or_infinite(value: Any) -> float:
    return float(value) if np.isfinite(value) else float("inf")
