"""`fit`: from a log density to the best Gaussian posterior, with draws grown until they suffice."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from quenched.draws import Draws
from quenched.families import Family
from quenched.fitting import options
from quenched.fitting.attachment import own_hyper
from quenched.fitting.growth import Run
from quenched.fitting.method import Joint, Method
from quenched.fitting.progress import Watcher
from quenched.fitting.threads import quiet_blas
from quenched.outcome import Status
from quenched.problem import make_problem
from quenched.result import Fit, FitError
from quenched.targets import Target
from quenched.transforms import describe_space


def fit(
    log_density: Callable[..., Any] | Target,
    start: Any,
    *,
    data: Any = None,
    family: str | Family = "full",
    draws: int | Draws | None = None,
    transforms: Any = None,
    hyper: Any = None,
    method: Method = Joint(),
    seed: int = 0,
    max_draws: int | None = None,
    tolerance: float | None = None,
    starts: int = 1,
    check: int | None = None,
    memory: int | None = None,
    checkpoint: str | Path | None = None,
    max_seconds: float | None = None,
    throw: bool = True,
    progress: bool = True,
    **unknown: Any,
) -> Fit:
    """Fit the best Gaussian posterior to a log density.

    Parameters
    ----------
    log_density
        log_density(parameters[, data][, hyper]) -> number, in JAX and in natural units, up to a constant; or a target
        (`regression`, `with_gaussian_prior`, `from_value_and_grad`).
    start
        Array or pytree of floats in natural units; or an earlier `Fit` (also a loaded one), to resume from its
        posterior.
    data
        Any pytree of arrays, handed to the log density. New data of the same shapes never cause a new trace.
    family
        "full", "diagonal", `Blocks(...)`, or "warped" (`Warped(...)`) for posteriors that are skewed or bent.
    draws
        None grows matched draws until the gap is below `tolerance`. A number or a `Draws` object fixes them.
    transforms
        Constraint of each parameter: a pytree like `start` (missing keys are real) or one for all.
    hyper
        Hyperparameters raised by gradient together with the posterior.
    method
        `Joint()` or `Alternating()`.
    seed
        Of the draws.
    max_draws
        Where growth ends; 16 per coupled coordinate and at least 2048 by default.
    tolerance
        Nats of gap that are accepted; 0.01 per coordinate, and at least 0.02, by default.
    starts
        Starting points: the given one and others around it, each with its own optimum; the best bound is kept. A
        single start that leads nowhere is followed by others unasked.
    check
        Number of check draws; by default about five times the draws: fewer when the verdict is clear before, more
        when it is not and the draws would have to grow.
    memory
        Bytes that the fit may use besides the data; the draws are evaluated in chunks that fit.
    checkpoint
        File that holds the result so far, written after each round.
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
    """
    known = [name for name in fit.__annotations__ if name not in ("unknown", "return")]
    options.refuse_unknown(unknown, known)
    target = options.read_target(log_density)
    run = Run(
        target=target,
        family=options.read_family(family),
        method=options.read_method(method),
        seed=options.whole_number("seed", seed, 0),
        starts=options.whole_number("starts", starts, 1),
        checkpoint=checkpoint,
    )
    memory = None if memory is None else options.whole_number("memory", memory, 1)
    max_seconds = None if max_seconds is None else options.positive_number("max_seconds", max_seconds)
    options.check_data(target.data if data is None else data)
    options.check_hyper(hyper)
    if target.on_host and hyper is not None:
        raise ValueError("hyper: a host function gives no gradient for hyperparameters; write it in JAX.")
    with jax.enable_x64(True), quiet_blas(target.on_host), Watcher(progress, max_seconds) as watch:
        resumed = start if isinstance(start, Fit) else None
        if resumed is None:
            space, point = describe_space(start, transforms)
        else:
            space, point = resumed.space, resumed.posterior.mean
            hyper = own_hyper(resumed, target) if hyper is None else hyper
        coupled = run.family.coupled_coordinates(space.sizes)
        default = run.family.first_draws(space.sizes)
        if resumed is not None:
            default = max(2 * coupled, resumed.n_draws + resumed.n_draws % 2)
        form = target.make_form(space.dim)
        if draws is None:
            default = options.first_draws(max_draws, run.family, space.sizes, default)
        first = options.read_draws(draws, run.family, form, space.sizes, run.seed, default)
        left = None if memory is None else memory - _working_bytes(first.n, space.dim, coupled)
        problem = make_problem(target, space, data, hyper, left)
        if options.unseen_directions(first, run.family, space.sizes):
            warnings.warn(
                f"draws: {first.n} draws do not span the {coupled} coupled coordinates; the posterior stays at the "
                "prior in the directions that no draw sees.",
                stacklevel=2,
            )
        run.tolerance = options.read_tolerance(tolerance, space.dim)
        limit = options.read_max_draws(max_draws, coupled, first.n)
        run.max_draws = first.n if draws is not None or not run.method.follows_draws else limit
        while (
            memory is not None
            and _working_bytes(run.max_draws, space.dim, coupled) > memory / 2 > 0
            and run.max_draws > first.n
        ):
            run.max_draws //= 2
        run.n_check = None if check is None else options.whole_number("check", check, 2)
        result = run.go(problem, space, point, first, resumed, watch)
    if throw and result.status in (Status.NOT_FINITE, Status.NO_ASCENT):
        raise FitError(result.message, result)
    return result


def _working_bytes(n_draws: int, dim: int, coupled: int) -> int:
    """Memory of a fit besides the target's: draws, check draws and their images; the optimiser's vectors."""
    return 8 * (8 * n_draws * dim + 30 * (2 * dim + dim * (coupled - 1) // 2))
