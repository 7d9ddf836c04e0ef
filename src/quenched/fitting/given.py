"""Posteriors that are given: one to be judged as it is, and those that fits begin at."""

from collections.abc import Callable
from typing import Any

import numpy as np

from quenched.draws import Draws
from quenched.families import Member
from quenched.fitting import options
from quenched.fitting.asked import Asked, ready, told
from quenched.fitting.drive import Entries
from quenched.fitting.rows import repeated
from quenched.numbers import yes_or_no
from quenched.objective import Rows
from quenched.results import Fit, Fits
from quenched.targets import Model, Target, read_model
from quenched.transforms import describe_space


@options.with_hints
def assess(
    log_density: Callable[..., Any] | Target | Model,
    posterior: Any,
    start: Any = None,
    *,
    data: Any = None,
    transforms: Any = None,
    hyper: Any = None,
    draws: int | Draws | None = None,
    seed: int = 0,
    check: int | None = None,
    throw: bool = True,
    progress: bool = True,
) -> Fit:
    """Judge a posterior that came from elsewhere: its bound, the check on fresh draws, and the verdict.

    Nothing is raised: the answer is a `Fit` with the status "given", which can be diagnosed, saved, compared by its
    bound, and resumed with `fit`.

    Parameters
    ----------
    log_density, start, data, transforms, hyper, draws, seed, check, throw, progress
        As in `fit`; of `start` only names and shapes matter. Precisions that are learned take their best values.
    posterior
        (mean, covariance) of the raveled parameters on the real line; or a `Fit`, or its `posterior`.

    Raises
    ------
    ValueError
        For misuse, before anything is computed.
    FitError
        When the log density is not finite under the posterior.

    Examples
    --------
    >>> judged = qd.assess(lambda w: -0.5 * jnp.sum(w**2), (np.zeros(2), 0.25 * np.eye(2)), np.zeros(2))
    >>> judged.answer.trust.words  # the target has four times that variance
    'Trust neither means nor sds'
    """
    model, throw = (
        read_model(log_density, start, transforms=transforms, data=data, hyper=hyper),
        yes_or_no("throw", throw),
    )
    with ready(model, progress, None) as watch:
        space, point = describe_space(model.start, model.transforms)
        member, family = options.read_posterior(posterior, space.dim)
        asked = Asked(family=family, draws=draws, seed=seed, check=check, grows=False, called="given")
        run = asked.run(model, space, point, watch)
        fits = run.judge(*repeated((member, run.batch.problem.hyper), 1))
    return told(fits[0], throw)


def fit_from(posterior: Member, log_density: Any, start: Any, *, rows: Rows | None = None, **asked: Any) -> Fits:
    """Fits that begin at given posteriors, whatever a search would find: one, or with `rows` of data one for each.

    `asked` are the options of `fit`, and progress is not shown. Nothing is raised when the numbers go wrong.
    """
    own = {name: asked.pop(name) for name in ("data", "transforms", "hyper") if name in asked}
    model = read_model(log_density, start, **own)
    with ready(model, progress=False, max_seconds=None, many=rows is not None) as watch:
        space, points = describe_space(model.start, model.transforms)
        run = Asked(**asked).run(model, space, points, watch, rows=rows)
        hyper = repeated(run.batch.problem.hyper, run.batch.n)
        entries = Entries(np.arange(run.batch.n), posterior, hyper, np.full(run.batch.n, -np.inf))
        return run.fit(entries, final=True)
