"""`nested`: a posterior of a few outer parameters, and for each of their values the best Gaussian of all the others."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from quenched.compiling import compiled
from quenched.draws import Purpose, make, stream
from quenched.families import AtDraws, Family, best_degree, nested_member
from quenched.fitting import assess, fit, ready, told, with_hints
from quenched.nesting.choosing import outer_leaves
from quenched.nesting.newton import Conditionals
from quenched.nesting.outer import Outer, make_outer
from quenched.nesting.split import Split, split
from quenched.nesting.tails import with_tails
from quenched.numbers import yes_or_no
from quenched.posterior import Posterior
from quenched.precision import in_double
from quenched.results import Fit, History, Status
from quenched.targets import EntropyForm, Model, Target, check_terms, read_model
from quenched.transforms import describe_space

_NODES = (128, 64)  # outer draws whose inner Gaussians the posterior is made from: its own, and further out
_FEWEST_NODES = (10, 6)  # where time is up: as many as are solved together
_MANY = 4  # outer coordinates that need twice as many
_PER_OUTER = 64  # draws for each outer coordinate, at the most unless told otherwise
_IN_TAILS = 192  # draws of a posterior with long tails
_MANY_DRAWS = 4096  # by which means over the outer posterior are taken that need no inner problem
CHECK = 256  # check draws of the outer fits; the whole posterior is checked by more
_JUDGED, _HURRIED = 1024, 64  # draws of the whole posterior for its bound, and where time is up
_FEWEST_CHECKS, _CHECKED = 2560, 2**23  # check draws of the whole posterior, and numbers in them, where it is large
_WIDER = (2.0, 1.5)  # how far they reach out, relative to the posterior's own: of few outer coordinates, of many
_WRITTEN_OUT = 2e9  # operations, roughly, that may go into dense inverses of inner precisions

Shift = Callable[[np.ndarray, Conditionals], np.ndarray]  # of inner means at outer points, (dim, lanes)


@with_hints
def nested(
    log_density: Callable[..., Any] | Target | Model,
    start: Any = None,
    outer: Sequence[str] | None = None,
    *,
    data: Any = None,
    family: str | Family = "warped",
    transforms: Any = None,
    draws: int | None = None,
    seed: int = 0,
    max_draws: int | None = None,
    tolerance: float | None = None,
    check: int | None = None,
    max_seconds: float | None = None,
    throw: bool = True,
    progress: bool = True,
) -> Fit:
    """Fit a posterior of a few outer parameters, with the best Gaussian of all others solved for each of their draws.

    For hierarchical models, whose effects spread with their own standard deviations: no single Gaussian follows that, and
    one over all parameters makes the posterior of the standard deviations too narrow.

    Parameters
    ----------
    log_density
        As in `fit`: a log density in JAX, or a sum of terms (`sum_of`), whose inner problems are solved by quadrature.
    start
        A pytree whose leaves have names.
    outer
        Names of the leaves that are outer: those with which the spread of the others changes (standard deviations,
        correlations, persistence). What is Gaussian given them (fixed effects, mean levels) belongs inside. For a sum of
        terms they are found: the leaves that many rows see whole, and in which these are not quadratic.
    data, transforms, draws, seed, max_draws, tolerance, check, max_seconds, throw, progress
        As in `fit`, for the outer parameters.
    family
        Of the outer parameters.

    Returns
    -------
    Fit
        Of all parameters: means, sds and samples of the inner ones are those of a mixture over the outer ones. `bound`,
        `khat` and `evidence` are those of the whole posterior against the whole log density.

    Raises
    ------
    ValueError
        For misuse, before anything is computed.
    FitError
        When the log density is not finite where it must be, or no ascent is possible.

    Examples
    --------
    >>> y = np.array([1.0, -2.0, 3.0, 0.5])
    >>> def log_density(p):  # effects with an unknown spread: a funnel
    ...     spread = jnp.exp(p["log_sd"])
    ...     prior = -0.5 * p["log_sd"] ** 2 - jnp.sum(0.5 * (p["effect"] / spread) ** 2 + p["log_sd"])
    ...     return prior - 0.5 * jnp.sum((y - p["effect"]) ** 2)
    >>> start = {"log_sd": 0.0, "effect": np.zeros(4)}
    >>> fit = qd.nested(log_density, start, outer=["log_sd"])
    >>> fit.check_bound > qd.fit(log_density, start).check_bound
    True
    """
    asked = NestedOptions(data, family, transforms, draws, seed, max_draws, tolerance, check, max_seconds, progress)
    throw = yes_or_no("throw", throw)
    return told(fit_nested(log_density, start, outer, asked), throw)


@dataclass(frozen=True)
class NestedOptions:
    """The options of a nested fit."""

    data: Any = None
    family: Any = "warped"
    transforms: Any = None
    draws: int | None = None
    seed: int = 0
    max_draws: int | None = None
    tolerance: float | None = None
    check: int | None = None
    max_seconds: float | None = None
    progress: bool = True
    at_mode: bool = False  # Laplace's Gaussians inside
    called: str = "nested"

    def left(self, began: float) -> float | None:
        """Seconds, of those that there were at `time.perf_counter` = `began`; always some."""
        return None if self.max_seconds is None else max(self.max_seconds - (time.perf_counter() - began), 1e-3)


class DividedModel(NamedTuple):
    """A model divided into outer and inner parameters, with the inner problem solved at the start."""

    model: Model
    problem: Outer
    split: Split
    begin: Any  # where the outer parameters begin, by name


def pose(log_density: Any, start: Any, outer: Sequence[str] | None, asked: NestedOptions) -> DividedModel:
    """Read what was given.

    Raises
    ------
    ValueError
        For misuse.
    """
    model = read_model(log_density, start, transforms=asked.transforms, data=asked.data)
    _insist_traced(model)
    with ready(model, False, asked.max_seconds):
        space, point = describe_space(model.start, model.transforms)
        if model.target.terms is not None:
            check_terms(model.target.terms, model.target.data, space, model.data, None)
        chosen = split(space, outer_leaves(model, space, point) if outer is None else outer)
        problem = warmed(make_outer(model.target, chosen, point, model.data, asked.seed, at_mode=asked.at_mode), point)
    return DividedModel(model, problem, chosen, chosen.outer_start(point))


def fit_nested(log_density: Any, start: Any, outer: Sequence[str] | None, asked: NestedOptions) -> Fit:
    """What `nested` does, whatever the Gaussians inside. Nothing is raised when the numbers go wrong."""
    began, posed = time.perf_counter(), pose(log_density, start, outer, asked)
    common: dict[str, Any] = {"seed": asked.seed, "tolerance": asked.tolerance}
    common |= {"check": CHECK, "throw": False, "progress": asked.progress}
    n = len(posed.split.outer_places)
    first = fit(posed.problem.target, posed.begin, draws=max(64, 4 * n), max_seconds=asked.left(began), **common)
    if first.status in (Status.NOT_FINITE, Status.NO_ASCENT):
        return of_outer(first, posed.split)
    found, before = first, None
    if first.status is not Status.MAX_SECONDS:
        problem = better_guess(posed.problem, first.posterior, asked.seed)
        posed = posed._replace(problem=problem if asked.at_mode else with_tails(problem, first.posterior))
        sizes = _sizes(asked, n, bool(posed.problem.tails[2:].any()))
        left = asked.left(began)
        found = fit(posed.problem.target, first, family=asked.family, max_seconds=left, **sizes, **common)
        before = first
    inside = "Laplace's Gaussians inside" if asked.at_mode else "the inner Gaussians at their best"
    note = f"The bound with {inside} is {found.bound:.4f} nats."
    settings = {"log_evidence": found.evidence}
    return judged(posed, found, began, asked, note=note, settings=settings, before=before)


def _sizes(asked: NestedOptions, n: int, long_tails: bool) -> dict[str, int | None]:
    """How many draws: the few that lie in a long tail decide how long it is."""
    if asked.draws is not None or asked.max_draws is not None:
        return {"draws": asked.draws, "max_draws": asked.max_draws}
    most = max(128, _PER_OUTER * n)
    return {"draws": min(most, _IN_TAILS) if long_tails else None, "max_draws": most}


def warmed(problem: Outer, point: np.ndarray) -> Outer:
    """With the inner problem solved at the start."""
    theta = point[problem.split.outer_places][None]
    return problem.with_guess(theta, problem.solved(theta).conditionals)


def judged(
    posed: DividedModel,
    outer: Fit,
    began: float,
    asked: NestedOptions,
    *,
    note: str,
    settings: dict[str, Any],
    before: Fit | None = None,
    shift: Shift | None = None,
) -> Fit:
    """The posterior of all parameters, compared with the log density of all."""
    with in_double():
        member = posterior_of(posed.problem, outer, shift)
    dim = posed.split.space.dim
    # Matched draws, as few as there would be, all lie at one distance, where the log density of a mixture is not at its mean.
    hurried = outer.status is Status.MAX_SECONDS
    draws = make("antithetic", _HURRIED if hurried else _JUDGED, dim, asked.seed)
    check = (None if hurried else _checks(dim)) if asked.check is None else asked.check
    whole = assess(posed.model, member, draws=draws, check=check, seed=asked.seed, throw=False, progress=False)
    settings = {**whole.settings, "method": asked.called, "outer": list(posed.begin), "family": "nested", **settings}
    settings |= {"outer_family": outer.settings["family"], "outer_draws": outer.n_draws}
    others = () if before is None else (before,)
    return replace(
        whole,
        status=outer.status,
        # Another search can begin where this one ended, but not go on from it.
        message=f"{outer.message.replace(outer.status.message, outer.status.told('fit.mean'))} {note}",
        settings=settings,
        n_evaluations=whole.n_evaluations + sum(one.n_evaluations for one in (outer, *others)),
        n_objective_evaluations=sum(one.n_objective_evaluations for one in (outer, *others)),
        seconds=time.perf_counter() - began,
        history=History((*(entry for one in others for entry in one.history), *outer.history)),
    )


def _checks(dim: int) -> int | None:
    """How many check draws: as in every fit, unless these would hold too many numbers."""
    most = max(_FEWEST_CHECKS, _CHECKED // dim)
    return None if most >= 5 * _JUDGED else most


def posterior_of(problem: Outer, outer: Fit, shift: Shift | None = None) -> Any:
    """A nested member from the inner Gaussians at draws of the outer posterior; `shift` moves their means."""
    member, dim, seed = outer.posterior.member, outer.posterior.dim, outer.settings["seed"]
    sizes = _FEWEST_NODES if outer.status is Status.MAX_SECONDS else _NODES
    equal, wide = (
        make("matched", n * (1 if dim < _MANY else 2), dim, stream(seed, Purpose.DRAWS, 2 + place)).points
        for place, n in enumerate(max(n, 2 * dim + 2) for n in sizes)
    )
    wide = _WIDER[dim >= _MANY] * wide
    z = np.concatenate([equal, wide])
    thetas = problem.thetas(outer.posterior, z)
    solved = problem.solved(thetas)
    sound = solved.error <= 1e-3
    if not sound[: len(equal)].any():
        raise ValueError("outer: no inner problem has a solution under the outer posterior.")
    algebra, (mean, precision) = problem.inner.algebra, solved.conditionals
    log_scales, tilts = algebra.factors(precision)
    sound &= np.isfinite(log_scales).all(axis=1)
    kept = np.flatnonzero(sound)
    n_equal = int(sound[: len(equal)].sum())
    covariance = _mean_inverse(algebra, precision[:, kept[:n_equal]])
    means = mean.T[kept]
    if shift is not None:
        means = means + shift(thetas[kept], Conditionals(mean[:, kept], precision[:, kept])).T
    many = make("matched", _MANY_DRAWS, dim, stream(seed, Purpose.DRAWS, 5)).points
    given = AtDraws(z[kept], means, log_scales[kept], tilts[kept], covariance, many, n_equal, algebra.layout)
    degree = best_degree(dim, len(kept))
    return nested_member(member, problem.tails, tuple(problem.split.outer_places.tolist()), given, degree)


def _mean_inverse(algebra: Any, precision: np.ndarray) -> np.ndarray:
    """The mean covariance of Gaussians: of all of them where they are small, else of some, with the variances of all."""
    n = precision.shape[1]
    few = int(np.clip(_WRITTEN_OUT / algebra.dim**3, min(2, n), n))
    total = np.zeros((algebra.dim, algebra.dim))
    for place in np.linspace(0, n - 1, few).astype(int):
        total += np.linalg.inv(algebra.to_dense(precision[:, place : place + 1])[0])
    if few == n:
        return total / n
    with in_double():
        inverse = compiled(lambda own: algebra.invert(own).covariance[algebra.diagonal])(precision)
    scale = np.sqrt(np.mean(np.asarray(inverse), axis=1) / np.diag(total))
    return total * np.outer(scale, scale)


def better_guess(problem: Outer, posterior: Posterior, seed: int) -> Outer:
    """The same problem, with searches that begin where an outer posterior is."""
    z = make("matched", 64, posterior.dim, stream(seed, Purpose.DRAWS, 4)).points
    thetas = problem.thetas(posterior, 1.5 * z)
    solved = problem.solved(thetas)
    sound = np.flatnonzero(solved.error <= 1e-3)
    if not len(sound):
        return problem
    return problem.with_guess(
        thetas[sound], type(solved.conditionals)(*(part[:, sound] for part in solved.conditionals))
    )


def of_outer(outer: Fit, chosen: Split) -> Fit:
    """An outer fit that led nowhere, as it is."""
    return replace(
        outer,
        message=f"Of the outer parameters {', '.join(chosen.outer_start(np.zeros(chosen.space.dim)))}: {outer.message}",
    )


def _insist_traced(model: Model) -> None:
    if model.target.on_host:
        raise ValueError(
            "log_density: nested differentiates it in lanes; write it in JAX, not as a function on the host."
        )
    if not isinstance(model.target.make_form(1), EntropyForm):
        raise ValueError(
            "log_density: nested takes a log density or a sum of terms; put the prior into it instead of "
            "with_gaussian_prior or regression."
        )
    if isinstance(model.start, Fit):
        raise ValueError("start: give an array or a pytree; nested does not go on from a fit.")
