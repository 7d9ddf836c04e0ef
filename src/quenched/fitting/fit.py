"""`fit`: from a log density to the best Gaussian posterior, with draws grown until they suffice."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenched.draws import Draws
from quenched.families import Family
from quenched.fitting import options
from quenched.fitting.asked import Asked, ready, told
from quenched.fitting.drive import Entries
from quenched.fitting.method import Joint, Method
from quenched.fitting.progress import Watcher
from quenched.fitting.remedies import remedied
from quenched.fitting.rows import repeated
from quenched.fitting.run import Run
from quenched.numbers import yes_or_no
from quenched.results import Fit, Status, own_hyper
from quenched.targets import Model, Target, read_model
from quenched.transforms import describe_space


@options.with_hints
def fit(
    log_density: Callable[..., Any] | Target | Model,
    start: Any = None,
    *,
    data: Any = None,
    family: str | Family | None = None,
    draws: int | Draws | None = None,
    transforms: Any = None,
    hyper: Any = None,
    method: Method = Joint(),
    seed: int | None = None,
    max_draws: int | None = None,
    tolerance: float | None = None,
    starts: int = 1,
    check: int | None = None,
    memory: int | None = None,
    checkpoint: str | Path | None = None,
    executor: Executor | None = None,
    mesh: jax.sharding.Mesh | None = None,
    max_seconds: float | None = None,
    throw: bool = True,
    progress: bool = True,
) -> Fit:
    """Fit the best Gaussian posterior to a log density.

    Parameters
    ----------
    log_density
        `log_density(parameters[, data][, hyper])` -> number, in JAX and in natural units, up to a constant; a target
        (`regression`, `with_gaussian_prior`, `from_value_and_grad`); or a `Model`, which brings its own start, transforms
        and data.
    start
        Array or pytree of numbers in natural units; or an earlier `Fit` (also a loaded one), to go on from its
        posterior with its family, seed, tolerance, transforms and data, unless others are given.
    data
        Any pytree of arrays, handed to the log density; a list of numbers is an array, a DataFrame a mapping of its
        columns. New data of the same shapes never cause a new trace.
    family
        "full" (the default), "diagonal", `Blocks(...)`, "sparse" (the default for a sum of terms: full too, by a precision
        as sparse as the model), `LowRank(k)` (the default beyond 2,000 parameters without structure), or "warped"
        (`Warped(...)`) for posteriors that are skewed or bent, `Sparse(warped=True)` for sums of terms with many skewed
        parameters; "auto" takes the full one, and a warped one where it is clearly nearer to the target and found
        for no more gradients than the full one; of a sum of terms the sparse one, and one of the two warped ones.
        `fit.settings["family"]` says which it was.
    draws
        Number of matched draws, or `Draws`; grown until they suffice when None.
    transforms
        A pytree of transforms shaped like `start` (None or missing keys are real) or one for all. Other ones than those of
        an earlier fit make its mean an ordinary start.
    hyper
        Hyperparameters raised by gradient together with the posterior.
    method
        `Joint()`, `Alternating()` or `Streaming()`.
    seed
        Of the draws.
    max_draws
        Where growth ends; 16 per coupled coordinate and at least 2048 by default, and four times as many where a fit
        would follow those instead of the target.
    tolerance
        Nats by which the posterior may fall short of the best of its family on account of the draws; 0.0015 per
        coordinate, and at least 0.05, by default.
    starts
        Starting points: the given one and others around it, each with its own optimum; the best bound is kept. A
        single start that leads nowhere is followed by others unasked.
    check
        Number of check draws; by default about five times the draws, and some hundreds at least.
    memory
        Bytes that the fit may use besides the data; the draws are evaluated in chunks that fit.
    checkpoint
        File that holds the result so far, written after each round.
    executor
        A `concurrent.futures.Executor` on which the calls of `from_value_and_grad` and `from_value` are done: a pool of
        processes, Dask's `client.get_executor()`, mpi4py. The result is that of the calls done here; those of a worker
        that dies are done again.
    mesh
        A JAX mesh with an axis "draws" over which the draws are sharded, an axis "rows" over which the longest arrays of
        the data are (also those of `each` terms), or both; its devices may belong to several processes (`docs/scaling.md`).
    max_seconds
        Time after which the fit stops at the next evaluation.
    throw
        Raise `FitError` (with the partial result) when the numbers go wrong; otherwise `status` says so.
    progress
        Show a line on the terminal.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError
        For misuse, before anything is computed.
    FitError
        When the log density is not finite where it must be, or no ascent is possible.

    Examples
    --------
    >>> heights = np.array([1.62, 1.75, 1.80, 1.68, 1.71])
    >>> def log_density(p, data):
    ...     away = (data - p["mu"]) / p["sigma"]
    ...     return -0.5 * jnp.sum(away**2) - len(data) * jnp.log(p["sigma"]) - p["sigma"] - 0.5 * (p["mu"] - 1.7) ** 2
    >>> fit = qd.fit(log_density, {"mu": 1.7, "sigma": 0.1}, data=heights, transforms={"sigma": qd.positive}, family="auto")
    >>> fit.converged, float(fit.mean["mu"].round(2))
    (True, 1.71)
    """
    model = read_model(log_density, start, transforms=transforms, data=data, hyper=hyper)
    model, resumed = _resumed(model)
    if resumed is not None:
        family = resumed.posterior.member.family if family is None else family
        seed = resumed.settings["seed"] if seed is None else seed
        tolerance = resumed.settings["tolerance"] if tolerance is None else tolerance
    throw, auto = yes_or_no("throw", throw), isinstance(family, str) and family == "auto"
    own = options.default_family(model.target, model.start, method, draws, executor if mesh is None else mesh)
    chosen, seed = own if family is None or auto else family, 0 if seed is None else seed
    asked = Asked(chosen, draws, method, seed, max_draws, tolerance, starts, check, memory, checkpoint, executor, mesh)
    with ready(model, progress, max_seconds, mesh=mesh) as watch:
        result = _fitted(model, resumed, asked, watch)
        if auto:
            result = remedied(result, asked, lambda again: _fitted(model, result, again, watch))
    if (family is None or auto) and (why := options.why_low_rank(own, result.posterior.dim)):
        result = replace(result, remarks=(*result.remarks, why))
    return told(result, throw)


def _fitted(model: Model, resumed: Fit | None, asked: Asked, watch: Watcher) -> Fit:
    if resumed is None:
        space, point = describe_space(model.start, model.transforms)
    else:
        space, point = resumed.space, resumed.posterior.mean
    run = asked.run(model, space, point, watch, resumed=resumed)
    if resumed is None:
        fits = run.fit()
    else:
        fits = run.fit(_entries_of(resumed, run), final=resumed.status in (Status.CONVERGED, Status.GIVEN))
    found = replace(fits[0], collapsed=run.collapsed(fits[0]))
    try:
        return replace(found, remarks=run.remarks(found))
    except KeyboardInterrupt:
        return found  # what was reached counts for more


def _resumed(model: Model) -> tuple[Model, Fit | None]:
    """The fit to go on from, if the start is one, and the model with what it takes over from it."""
    if not isinstance(model.start, Fit):
        return model, None
    earlier = model.start
    hyper = own_hyper(earlier, model.target) if model.hyper is None else model.hyper
    if model.data is None and earlier.origin is not None:
        model = replace(model, data=model.target.given(earlier.origin.problem.data))
    if model.transforms is not None:
        space, _ = describe_space(earlier.mean, model.transforms)
        if space != earlier.space:
            return replace(model, start=earlier.mean, hyper=hyper), None
    return replace(model, hyper=hyper), earlier


def _entries_of(fit: Fit, run: Run) -> Entries:
    """An earlier posterior as a member of the family that is asked for now."""
    problem, family = run.batch.problem, run.settings.family
    member: Any = family.lift(fit.posterior.member)
    fresh = family.isotropic(np.zeros(problem.dim), np.ones(problem.dim), problem.space.sizes)
    if jax.tree.structure(fresh) != jax.tree.structure(member):
        member = family.member(fit.posterior.mean, np.linalg.inv(fit.covariance), problem.space.sizes)
    # What is fixed stays as it was asked for now; what is learned goes on from where it was.
    known = fit.hyper if isinstance(fit.hyper, dict) else {}
    learned = {name: np.asarray(known[name]) for name in problem.form.learned if name in known}
    posterior, hyper = repeated((member, problem.hyper._replace(**learned)), 1)
    return Entries(np.arange(1), posterior, hyper, np.array([fit.bound]))
