"""Laplace's approximation: the mode, and the curvature of the log joint density there.

Its Gaussian is judged like any other: the same `Fit`, with its bound and check bound, and its own estimate of the log
evidence in the message.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from quenched.fitting import Asked, Mode, Search, ready, told, with_hints
from quenched.numbers import yes_or_no
from quenched.results import Code, Fit
from quenched.targets import Model, Target, read_model
from quenched.transforms import describe_space

_FLAT = 1e-8  # relative to a unit diagonal
_SEARCH = Search(tolerance=1e-12, max_steps=100)


@with_hints
def laplace(
    log_density: Callable[..., Any] | Target | Model,
    start: Any = None,
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

    Takes what `fit` takes. A Hessian that is singular or indefinite at the mode is made positive definite; the status is
    then `no_maximum`, as where the search runs away, and the verdict names the directions. Precisions of a Gaussian prior
    and of the noise are learned as in `fit`, from the approximation itself.

    Returns
    -------
    Fit
        `bound` and `check_bound` are those of Laplace's Gaussian: they show what it loses against `fit`.
        `settings["log_evidence"]` is Laplace's own estimate.

    Examples
    --------
    >>> log_gamma = lambda u: 2.0 * u - jnp.exp(u)
    >>> mode, best = qd.laplace(log_gamma, 0.0), qd.fit(log_gamma, 0.0)
    >>> best.bound > mode.bound
    True
    """
    model = read_model(log_density, start, transforms=transforms, data=data, hyper=hyper)
    throw = yes_or_no("throw", throw)
    asked = Asked(family=family, draws=draws, seed=seed, grows=False, called="Laplace")
    with ready(model, progress, None) as watch:
        space, point = describe_space(model.start, model.transforms)
        run = asked.run(model, space, point, watch)
        mode, why = run.mode(_SEARCH)
        if mode is None:
            run.refuse(0, why)
            return told(run.fits()[0], throw)
        posterior = run.settings.family.member(mode.point[None], mode.precision[None], space.sizes)
        bad, note = _note(mode, space.coordinate_names())
        code = Code.CONVERGED if mode.converged else Code.MAX_EVALUATIONS
        if (mode.converged and bad) or run.has_run_away(mode, jax.tree.map(lambda leaf: leaf[0], posterior)):
            code = Code.NO_MAXIMUM
        fits = run.judge(posterior, jax.tree.map(lambda leaf: np.asarray(leaf)[None], mode.hyper), code, note)
    found = replace(fits[0], settings={**fits[0].settings, "log_evidence": mode.evidence()})
    return told(found, throw)


def _note(mode: Mode, names: list[str]) -> tuple[int, str]:
    """Along how many directions the curvature is none of a maximum, and what is to be said of it."""
    evidence = f"Laplace's estimate of the log evidence is {mode.evidence():.4f} nats."
    scaled = mode.precision / np.sqrt(
        np.outer(np.abs(np.diag(mode.precision)), np.abs(np.diag(mode.precision))) + 1e-300
    )
    values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
    bad = [index for index, value in enumerate(values) if value < _FLAT]
    if not bad:
        return 0, evidence
    worst = [
        f"{names[int(np.argmax(np.abs(vectors[:, i])))]} ({'flat' if values[i] > -_FLAT else 'uphill'})" for i in bad
    ]
    return len(bad), (
        f"The log density is not a maximum in {len(bad)} direction(s), mostly along {', '.join(worst[:4])}; the "
        f"curvature there was made positive, so its standard deviation is a guess. {evidence}"
    )
