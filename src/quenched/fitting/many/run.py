"""`fit_many`: thousands of independent fits in one compiled call."""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from quenched.draws import Draws
from quenched.families import Family
from quenched.fitting import options
from quenched.fitting.growth import Run
from quenched.fitting.many.data import faults_in, read_data, read_starts
from quenched.fitting.many.rounds import Rounds
from quenched.fitting.many.scene import Scene
from quenched.fitting.method import Joint, Method
from quenched.fitting.progress import Watcher
from quenched.fitting.threads import quiet_blas
from quenched.problem import make_problem
from quenched.result import FitError
from quenched.results import Fits
from quenched.targets import Target


def fit_many(
    log_density: Callable[..., Any] | Target,
    start: Any,
    data: Any,
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
    max_seconds: float | None = None,
    throw: bool = False,
    progress: bool = True,
    **unknown: Any,
) -> Fits:
    """Fit one log density to many data sets, each independently of the others.

    `fits[i]` is what `fit` would have found for the i-th data set with the same options, and with the same draws: each
    problem has its own convergence, growth of draws, check and verdict, and one that fails spoils no other. All are
    carried through one compiled program, so that a fit costs little more than its gradients.

    Parameters
    ----------
    log_density
        log_density(parameters, data[, hyper]) -> number, as in `fit`, for the data of one problem; or a target. What all
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
        As in `fit`, for each problem. Warped posteriors are fitted problem by problem.
    method
        `Joint()`.
    memory
        Bytes for the problems that are under way at a time; 256 MB by default.
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
    """
    known = [name for name in fit_many.__annotations__ if name not in ("unknown", "return")]
    options.refuse_unknown(unknown, known, "fit_many")
    target, family = options.read_target(log_density), options.read_family(family)
    method = _read_method(method)
    seed = options.whole_number("seed", seed, 0)
    memory = None if memory is None else options.whole_number("memory", memory, 1)
    n_check = None if check is None else options.whole_number("check", check, 2)
    max_seconds = None if max_seconds is None else options.positive_number("max_seconds", max_seconds)
    data, n = read_data(data)
    faults = faults_in(data, n)
    options.check_hyper(hyper)
    if target.on_host and hyper is not None:
        raise ValueError("hyper: a host function gives no gradient for hyperparameters; write it in JAX.")
    with jax.enable_x64(True), quiet_blas(target.on_host), Watcher(progress, max_seconds) as watch:
        space, points = read_starts(start, transforms, n, own_starts)
        coupled = family.coupled_coordinates(space.sizes)
        form = target.make_form(space.dim)
        default = family.first_draws(space.sizes)
        if draws is None:
            default = options.first_draws(max_draws, family, space.sizes, default)
        first = options.read_draws(draws, family, form, space.sizes, seed, default)
        limit = options.read_max_draws(max_draws, coupled, first.n)
        tolerance = options.read_tolerance(tolerance, space.dim)

        def make_run() -> Run:
            run = Run(target=target, family=family, method=method, seed=seed, starts=1, checkpoint=None)
            run.tolerance, run.n_check, run.draws = tolerance, n_check, first
            run.max_draws = first.n if draws is not None else limit
            return run

        scene = Scene(make_problem(target, space, data, hyper, memory), family, points, seed, watch)
        fits = Rounds(scene, make_run, first, faults).go()
    _tell(fits, throw)
    return fits


def _read_method(method: Any) -> Joint:
    if not isinstance(method, Joint):
        raise ValueError(f"method={method!r}: many fits are raised with quenched.Joint(); use fit for other methods.")
    return method


def _tell(fits: Fits, throw: bool) -> None:
    """Of the problems that failed, in one sentence."""
    which = np.flatnonzero(fits.failed)
    if not len(which):
        return
    first = int(which[0])
    words = f"{len(which)} of {len(fits)} fits failed; the first is problem {first}: {fits.message[first]}"
    if throw:
        raise FitError(words, fits[first], fits)
    warnings.warn(f"{words} (fits.failed tells which)", stacklevel=3)
