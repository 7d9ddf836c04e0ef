"""Laplace's approximation: the mode, and the curvature of the log joint density there.

It is a method of raising the bound that does not raise it: the start is the answer. So it returns the same `Fit`, with
the bound and the check bound of its Gaussian, and its own estimate of the log evidence among the settings.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from quenched.fitting import Ascent, Method, Mode, fit
from quenched.outcome import Status
from quenched.result import Fit
from quenched.targets import Target

_FLAT = 1e-8  # relative to a unit diagonal


class Laplace(Method):
    """Stand at the mode.

    Parameters
    ----------
    tolerance
        Nats that a further Newton step would gain.
    max_steps
        Newton steps.
    """

    follows_draws: ClassVar[bool] = False

    tolerance: float = 1e-12
    max_steps: int = 100

    def begin(self, starter, point):
        mode = starter.mode(point, tolerance=self.tolerance, max_steps=self.max_steps)
        return starter.at_mode(mode)._replace(mode=mode)

    def run(self, objective, start, watch, record):
        mode = start.mode
        assert mode is not None  # put there by `begin`
        status = Status.CONVERGED if mode.converged else Status.MAX_EVALUATIONS
        names = objective.problem.space.coordinate_names()
        return Ascent(start.posterior, start.hyper, start.bound, status, 0.0, 1, _note(mode, names))


def laplace(
    log_density: Callable[..., Any] | Target,
    start: Any,
    *,
    data: Any = None,
    transforms: Any = None,
    hyper: Any = None,
    family: Any = "full",
    draws: Any = None,
    seed: int = 0,
    throw: bool = True,
    progress: bool = True,
) -> Fit:
    """Laplace's approximation of a log density, on the real line.

    Takes what `fit` takes. A Hessian that is singular or indefinite at the mode is made positive definite, and the
    verdict names the directions. Precisions of a Gaussian prior and of the noise are learned as in `fit`, from the
    approximation itself.

    Returns
    -------
    Fit
        `bound` and `check_bound` are those of Laplace's Gaussian: they show what it loses against `fit`.
    """
    return fit(
        log_density,
        start,
        data=data,
        transforms=transforms,
        hyper=hyper,
        family=family,
        draws=draws,
        seed=seed,
        method=Laplace(),
        throw=throw,
        progress=progress,
    )


def _note(mode: Mode, names: list[str]) -> str:
    """What is wrong with the curvature, if anything."""
    evidence = f"Laplace's estimate of the log evidence is {mode.evidence():.4f} nats."
    scaled = mode.precision / np.sqrt(
        np.outer(np.abs(np.diag(mode.precision)), np.abs(np.diag(mode.precision))) + 1e-300
    )
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    bad = [index for index, value in enumerate(values) if value < _FLAT]
    if not bad:
        return evidence
    worst = [
        f"{names[int(np.argmax(np.abs(vectors[:, i])))]} ({'flat' if values[i] > -_FLAT else 'uphill'})" for i in bad
    ]
    return (
        f"The log density is not a maximum in {len(bad)} direction(s), mostly along {', '.join(worst[:4])}; the "
        f"curvature there was made positive, so its standard deviation is a guess. {evidence}"
    )
