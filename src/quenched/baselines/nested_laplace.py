"""Nested Laplace (Rue, Martino and Chopin 2009): Laplace's approximation of the inner parameters for every outer value.

p(θ | y) is taken as Laplace's estimate of p(y, θ), and p(u | θ, y) as Laplace's Gaussian, corrected by third derivatives. The integral
over θ is a sum over a grid or a central composite design around its mode.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from quenched.baselines.designs import OuterDesign, composite, grid, rotated
from quenched.baselines.laplace import laplace
from quenched.baselines.skew_normal import COLUMNS, mixed
from quenched.fitting import fit, told, with_hints
from quenched.nesting import (
    DividedModel,
    NestedOptions,
    ThirdOrder,
    better_guess,
    fit_nested,
    judged,
    of_outer,
    pose,
    third_order,
)
from quenched.numbers import yes_or_no
from quenched.results import Fit, Status
from quenched.targets import Model, Target
from quenched.text import shown
from quenched.transforms import real_names

_FEW = 2  # outer coordinates for which a grid is taken
_DESIGNS = {"grid": grid, "composite": composite}
_CHECK = 4096  # check draws of the outer fit, of which each is cheap


@with_hints
def nested_laplace(
    log_density: Callable[..., Any] | Target | Model,
    start: Any = None,
    outer: Sequence[str] | None = None,
    *,
    design: str | None = None,
    correct: bool = True,
    data: Any = None,
    family: Any = "warped",
    transforms: Any = None,
    draws: int | None = None,
    seed: int = 0,
    check: int | None = None,
    throw: bool = True,
    progress: bool = True,
) -> Fit:
    """Nested Laplace, to compare with `nested`, whose arguments it takes.

    Parameters
    ----------
    log_density, start, outer, data, family, transforms, draws, seed, check, throw, progress
        As in `nested`.
    design
        How the outer parameters are integrated over: "grid", "composite" (a central composite design), or "draws" (frozen draws of a
        posterior fitted to Laplace's estimate). By default a grid for one or two outer coordinates, and a composite design for more.
    correct
        Correct the inner marginals by third derivatives (the simplified Laplace approximation): their means are moved, and
        `settings["corrected"]` has the moments and quantiles of mixtures of skew normals.

    Returns
    -------
    Fit
        `settings["log_evidence"]` is the estimate of nested Laplace; `evidence` weighs the posterior by the log density itself.
        `settings["corrected"]` has lists mean, sd, skewness, 5%, 50% and 95% on the real line, in the order of its list name.

    Examples
    --------
    >>> def log_density(p):
    ...     prior = -0.5 * p["log_sd"] ** 2 - 0.5 * jnp.sum(p["effect"] ** 2) * jnp.exp(-2 * p["log_sd"]) - 4 * p["log_sd"]
    ...     return prior - 0.5 * jnp.sum((np.array([1.0, 2.0, 0.5, 1.5]) - p["effect"]) ** 2)
    >>> start = {"log_sd": 0.0, "effect": np.zeros(4)}
    >>> fit = qd.baselines.nested_laplace(log_density, start, outer=["log_sd"])
    >>> fit.mean["effect"].shape
    (4,)
    """
    if design is not None and not (isinstance(design, str) and design in (*_DESIGNS, "draws")):
        raise ValueError(
            f'design={shown(design)}: use "grid", "composite", "draws", or leave it to the number of outer parameters.'
        )
    correct, throw = yes_or_no("correct", correct), yes_or_no("throw", throw)
    asked = NestedOptions(
        data=data,
        family=family,
        transforms=transforms,
        draws=draws,
        seed=seed,
        check=check,
        progress=progress,
        at_mode=True,
        called="nested Laplace",
    )
    if design == "draws":
        return told(fit_nested(log_density, start, outer, asked), throw)
    return told(_by_design(pose(log_density, start, outer, asked), design, correct, asked), throw)


def _by_design(posed: DividedModel, design: str | None, correct: bool, asked: NestedOptions) -> Fit:
    began, quiet = time.perf_counter(), {"seed": asked.seed, "throw": False, "progress": asked.progress}
    mode = laplace(posed.problem.target, posed.begin, **quiet)
    if mode.status in (Status.NOT_FINITE, Status.NO_ASCENT):
        return of_outer(mode, posed.split)
    posed = posed._replace(problem=better_guess(posed.problem, mode.posterior, asked.seed))
    place = posed.split.outer_pieces
    log_densities = lambda points: posed.problem.values(points)
    centre = np.asarray(mode.posterior.mean)
    axes = rotated(centre, np.asarray(mode.posterior.covariance), float(log_densities(centre[None])[0]))
    kind = design or ("grid" if axes.dim <= _FEW else "composite")
    found = _DESIGNS[kind](axes, log_densities)
    raveled = lambda pieces: jax.numpy.concatenate([jax.numpy.ravel(pieces[name]) for name in posed.begin])
    begin = {name: piece[0] for name, piece in place(centre[None]).items()}
    outer = fit(
        lambda pieces: found.log_density(raveled(pieces)),
        begin,
        family=asked.family,
        draws=asked.draws,
        check=_CHECK,
        **quiet,
    )
    settings: dict[str, Any] = {"log_evidence": found.log_evidence, "design": kind, "design_points": len(found.points)}
    if correct:
        settings["corrected"] = _corrected(posed, found)
    note = (
        f"By a {kind} design of {len(found.points)} points the log evidence of nested Laplace is "
        f"{found.log_evidence:.4f} nats."
    )
    shift = None
    if correct:
        shift = lambda thetas, at: third_order(posed.problem, thetas, at).mean - at.mean
    return judged(posed, outer, began, asked, note=note, settings=settings, before=mode, shift=shift)


def _corrected(posed: DividedModel, design: OuterDesign) -> dict[str, list[Any]]:
    """Marginals of all parameters on the real line: inner ones as mixtures over the design, outer ones by its moments."""
    seen = np.flatnonzero(design.weights > 1e-12)
    solved = posed.problem.solved(design.points[seen])
    moments = third_order(posed.problem, design.points[seen], solved.conditionals)
    weights = design.weights[seen] / design.weights[seen].sum()
    mean = design.weights @ design.points
    away = design.points - mean
    sd = np.sqrt(design.weights @ away**2)
    of_outer = ThirdOrder(mean[:, None], sd[:, None], (design.weights @ away**3 / sd**3)[:, None])
    both = zip(mixed(moments, weights), mixed(of_outer, np.ones(1)), strict=True)
    columns = [np.concatenate([own, inner])[posed.split.order].tolist() for inner, own in both]
    return {"name": real_names(posed.split.space)} | dict(zip(COLUMNS, columns, strict=True))
