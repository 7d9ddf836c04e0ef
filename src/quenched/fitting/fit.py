"""`fit` and `fit_many`: from a log density to the best Gaussian posterior, with draws grown until they suffice."""

import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenched.attachment import own_hyper
from quenched.draws import Draws
from quenched.families import Family, Member, Sparse, Warped
from quenched.fitting import options
from quenched.fitting.asked import Asked, ready, told
from quenched.fitting.data import faults_in, read_data, read_starts
from quenched.fitting.drive import Entries
from quenched.fitting.method import Joint, Method
from quenched.fitting.progress import Watcher
from quenched.fitting.rows import repeated
from quenched.fitting.run import Run
from quenched.fitting.shares import Share, share_out
from quenched.numbers import yes_or_no
from quenched.outcome import History, Status
from quenched.problem import Rows
from quenched.result import Fit, FitError
from quenched.results import Fits
from quenched.targets import Model, Target, read_model
from quenched.transforms import Space, describe_space
from quenched.trust import Trust
from quenched.weights import gains

_MOST_WARPED = 300  # parameters of a sum of terms up to which a warped posterior that is tried is dense
_MOST_BENT = 12  # parameters whose axes are bent unasked: of 23, that took sixty times what the Gaussian did


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
        parameters; "auto" takes the full one, and the warped one where it is clearly nearer to the target.
        `fit.settings["family"]` says which it was.
    draws
        Number of matched draws, or `Draws`; grown until they suffice when None.
    transforms
        A pytree of transforms shaped like `start` (None or missing keys are real) or one for all. Other ones than those of
        an earlier fit make its mean an ordinary start.
    hyper
        Hyperparameters raised by gradient together with the posterior.
    method
        `Joint()` or `Alternating()`.
    seed
        Of the draws.
    max_draws
        Where growth ends; 16 per coupled coordinate and at least 2048 by default.
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
        if auto and (warped := _warped(own, result.posterior.dim)) is not None and _invites(result):
            asked = replace(asked, family=warped, draws=None, polishes=False)
            try:
                result = _better_of(result, _fitted(model, result, asked, watch))
            except KeyboardInterrupt:  # the Gaussian is there
                result = replace(result, message=f"{result.message} Interrupted before a warped posterior was tried.")
    if (family is None or auto) and (why := options.why_low_rank(chosen, result.posterior.dim)):
        result = replace(result, remarks=(*result.remarks, why))
    return told(result, throw)


def _fitted(model: Model, resumed: Fit | None, asked: "Asked", watch: Watcher) -> Fit:
    space, point = describe_space(model.start, model.transforms) if resumed is None else _space_of(resumed)
    run = asked.run(model, space, point, watch, resumed=resumed)
    if resumed is None:
        fits = run.fit()
    else:
        fits = run.fit(_entries_of(resumed, run), final=resumed.status in (Status.CONVERGED, Status.GIVEN))
    found = replace(fits[0], collapsed=run.collapsed(fits[0]))
    found = replace(found, further=run.further(found))
    return replace(found, remarks=run.remarks(found))


def _warped(family: str | Family, dim: int) -> Family | None:
    """The warped family that is tried after a Gaussian one: for many parameters of a sum of terms, each for itself."""
    if family == "sparse" and dim > _MOST_WARPED:
        return Sparse(warped=True)
    return Warped(bend=None if dim <= _MOST_BENT else False) if family in ("full", "sparse") else None


def _invites(gaussian: Fit) -> bool:
    """Something is left to be gained, and the fit is sound enough to go on from."""
    return gaussian.converged and gaussian.answer.trust is not Trust.BOTH and gaussian.finite


def _better_of(gaussian: Fit, warped: Fit) -> Fit:
    """The one that is nearer to the target; the Gaussian where they tie."""
    work = {
        name: getattr(gaussian, name) + getattr(warped, name) for name in ("n_evaluations", "n_objective_evaluations")
    }
    work |= {"seconds": warped.seconds, "history": History((*gaussian.history, *warped.history))}
    if warped.converged and gains(warped.log_ratios, gaussian.log_ratios):
        return replace(warped, **work)
    note = "A warped posterior is no better on fresh draws."
    work["history"] = History((*gaussian.history, *warped.history, gaussian.history[-1]))
    return replace(gaussian, message=f"{gaussian.message} {note}", **work)


@options.with_hints
def fit_many(
    log_density: Callable[..., Any] | Target | Model,
    start: Any = None,
    data: Any = None,
    *,
    own_starts: bool = False,
    family: str | Family = "full",
    draws: int | Draws | None = None,
    transforms: Any = None,
    hyper: Any = None,
    method: Method = Joint(),
    seed: int = 0,
    max_draws: int | None = None,
    tolerance: float | None = None,
    check: int | None = None,
    memory: int | None = None,
    checkpoint: str | Path | None = None,
    executor: Executor | None = None,
    mesh: jax.sharding.Mesh | None = None,
    max_seconds: float | None = None,
    throw: bool = False,
    progress: bool = True,
) -> Fits:
    """Fit one log density to many data sets, each independently of the others.

    `fits[i]` is what `fit` would have found for the i-th data set with the same options, and with the same draws: each
    problem has its own convergence, growth of draws, check and verdict, and one that fails spoils no other. All are
    carried through one compiled program, so that a fit costs little more than its gradients.

    Parameters
    ----------
    log_density
        `log_density(parameters, data[, hyper])` -> number, as in `fit`, for the data of one problem; or a target. What all
        problems share (a design matrix) it may hold itself, as a NumPy array. A function that JAX cannot trace is fitted
        problem by problem.
    start
        Array or pytree of floats in natural units, the same for all problems.
    data
        Any pytree of arrays with the problems along their first axis. A problem with NaN among its data gets the status
        `not_finite`.
    own_starts
        `start` has the problems along its first axis too: one start for each.
    family, draws, transforms, hyper, seed, max_draws, tolerance, check
        As in `fit`, for each problem.
    method
        `Joint()`; with others the problems are fitted one by one.
    memory
        Bytes for the problems that are under way at a time; 256 MB by default.
    checkpoint
        Folder that holds the fits of some hundred problems at a time, written as they end. With the same folder, data and
        options, those are not fitted again.
    executor
        A `concurrent.futures.Executor` (a pool of spawned processes, Dask) on which parts of the problems are fitted. Those
        of a worker that dies are fitted again.
    mesh
        A JAX mesh, on whose devices parts of the problems are fitted; these may belong to several processes, which all get
        all fits (`docs/scaling.md`).
    max_seconds
        For all problems together. Those that have not ended by then say so.
    throw
        Raise `FitError` when any problem failed, once all have been tried; otherwise one warning counts them.
    progress
        Show a line on the terminal.

    Returns
    -------
    Fits

    Raises
    ------
    ValueError
        For misuse, before anything is computed.
    FitError
        With `throw=True`; it holds the first fit that failed, and all of them as `error.fits`.

    Examples
    --------
    >>> stations = np.array([[1.0, 3.0], [5.0, 7.0], [2.0, 2.0]])
    >>> fits = qd.fit_many(lambda w, y: -0.5 * jnp.sum((y - w) ** 2), 0.0, stations)
    >>> fits.mean.round(3)
    array([2., 6., 2.])
    """
    model = read_model(log_density, start, transforms=transforms, data=data, hyper=hyper)
    throw, own_starts = yes_or_no("throw", throw), yes_or_no("own_starts", own_starts)
    asked = Asked(family, draws, method, seed, max_draws, tolerance, 1, check, memory, None)
    rows, n = read_data(model.data)
    faults = faults_in(rows, n)
    if mesh is not None:
        mesh = options.read_devices(mesh, model.target)
    with ready(model, progress, max_seconds, many=True, mesh=mesh) as watch:
        space, points = read_starts(model.start, model.transforms, n, own_starts)
        run = asked.run(model, space, points, watch, rows=Rows(rows, model.target.terms and model.target.data))
        if executor is None and checkpoint is None and mesh is None:
            for place, why in faults.items():
                run.refuse(place, why)
            fits = run.fit()
        else:
            sent = {"own_starts": own_starts, "family": family, "draws": draws, "transforms": model.transforms}
            sent |= {"hyper": model.hyper, "method": method, "seed": seed, "max_draws": max_draws}
            sent |= {"tolerance": tolerance, "check": check, "memory": memory}
            target = model.target if isinstance(log_density, Model) else log_density
            fits = share_out(Share(fit_many, target, model.start, sent), rows, run, executor, checkpoint, mesh)
    _tell_of_many(fits, throw)
    return fits


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


def _space_of(fit: Fit) -> tuple[Space, np.ndarray]:
    return fit.space, fit.posterior.mean


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


def _tell_of_many(fits: Fits, throw: bool) -> None:
    """Of the problems that failed, in one sentence."""
    which = np.flatnonzero(fits.failed)
    if not len(which):
        return
    first = int(which[0])
    words = f"{len(which)} of {len(fits)} fits failed; the first is problem {first}: {fits.message[first]}"
    if throw:
        raise FitError(words, fits[first], fits)
    warnings.warn(f"{words} (fits.failed tells which)", stacklevel=4)
