"""`fit_many`: one log density, many sets of data."""

import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenched.draws import Draws
from quenched.families import Family
from quenched.fitting import options
from quenched.fitting.asked import Asked, ready
from quenched.fitting.data import faults_in, read_data, read_starts
from quenched.fitting.method import Joint, Method
from quenched.fitting.shares import Share, share_out
from quenched.numbers import yes_or_no
from quenched.objective import Rows
from quenched.results import FitError, Fits
from quenched.targets import Model, Target, read_model


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
    problem has its own convergence, growth of draws, check and verdict, and one that fails spoils no other. Many are
    carried through one compiled program, so that a fit costs little more than its gradients; fewer than 40 are fitted one
    by one, which takes less time than to compile that, and so are those whose gradients are much work each.

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
        Folder that holds the fits of some hundred problems at a time, written as they end. With the same folder, log density,
        data and options, those are not fitted again: of each file, the bound of one fit is evaluated to see to it.
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
