"""Fits put together by hand, for tests of what is made from a fit: nothing is optimised, every number is known."""

import dataclasses

import numpy as np

from quenched.families import Diagonal
from quenched.families.full import from_scale
from quenched.posterior import Posterior
from quenched.results import Fit, History, Round, Status
from quenched.transforms import describe_space

SD = 0.5  # of every coordinate on the real line
ONE_ROUND = (Round(64, -32.1, -32.15, 0.02, 640),)
THREE_ROUNDS = (
    Round(64, -30.0, -33.0, 0.3, 640),
    Round(128, -31.0, -32.0, 0.2, 1920),
    Round(256, -31.5, -31.6, 0.1, 4480),
)


def make_fit(
    start, *, transforms=None, rounds=ONE_ROUND, status=Status.CONVERGED, hyper=None, optima=(), message=None
) -> Fit:
    """A diagonal posterior around `start`."""
    space, point = describe_space(start, transforms)
    last = rounds[-1] if rounds else Round(64, -np.inf, np.nan, np.nan, 0)
    return Fit(
        posterior=Posterior(Diagonal().isotropic(point, np.full(space.dim, SD), space.sizes)),
        space=space,
        hyper=hyper,
        bound=last.bound,
        check_bound=last.check_bound,
        check_error=last.check_error,
        status=status,
        message=status.message if message is None else message,
        n_draws=last.n_draws,
        n_evaluations=last.n_evaluations,
        n_objective_evaluations=10 * len(rounds),
        seconds=1.5,
        history=History(rounds),
        settings={
            "draws": "matched",
            "draws_seed": 7,
            "groups": None,
            "seed": 7,
            "family": "diagonal",
            "method": "Joint",
            "tolerance": 0.1,
            "versions": {"python": "3.11.7", "jax": "0.10.2"},
        },
        optima=optima,
        log_ratios=np.full(200, last.bound) if rounds else np.zeros(0),  # as if posterior and target were one
    )


def correlated(numbers: int, name: str = "w", between: float = 0.7) -> Fit:
    """A full posterior of so many numbers, of which neighbours correlate."""
    fit = make_fit({name: np.linspace(-1.0, 1.0, numbers - 1), "b": 0.5})
    scale = np.linalg.cholesky(SD**2 * between ** np.abs(np.subtract.outer(np.arange(numbers), np.arange(numbers))))
    return dataclasses.replace(fit, posterior=Posterior(from_scale(np.asarray(fit.posterior.mean), scale)))
