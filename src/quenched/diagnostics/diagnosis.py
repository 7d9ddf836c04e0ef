"""`diagnose`: the three errors of a fit, apart and in numbers.

(a) Optimisation: how far the ascent stopped below the top. (b) Draws: how far another frozen set would have moved the
answer. (c) Family: how far the best member of the family is from the target.
"""

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from quenched.diagnostics.curvature import Curvature, missed_spread, whitened
from quenched.diagnostics.draw_error import DrawError, answer_of, draw_error, with_distance
from quenched.diagnostics.importance import weigh
from quenched.diagnostics.linear_response import LinearResponse
from quenched.diagnostics.mirrors import Mirror, mirrors
from quenched.diagnostics.nested import nested_errors
from quenched.diagnostics.optimisation import OptimisationError, optimisation_error
from quenched.diagnostics.skewness import skewness
from quenched.diagnostics.sums_of_terms import TermsResponse, terms_draw_error, terms_optimisation_error
from quenched.families import Bound
from quenched.fitting import Watcher, with_hints
from quenched.numbers import whole_number
from quenched.objective import Objective
from quenched.precision import in_double
from quenched.projected import ProjectedBound
from quenched.results import Fit, insist_fit, require_origin
from quenched.threads import quiet_blas
from quenched.transforms import Parameters, real_names
from quenched.trust import (
    Answer,
    Departure,
    Moved,
    Reweighted,
    Weighed,
    Weights,
    departures,
    moved,
    reweight,
    worst_of_each,
)

_REPLICATES = 8
_SAMPLES = 2000
_MOST_NUMBERS = 1e8  # rows of terms and parameters, times samples
_MOST_MIRRORED = 2000  # parameters of a sum of terms whose copies are looked for


@dataclass(frozen=True, eq=False)
class Diagnosis(Weighed):
    """How far to trust a fit.

    Attributes
    ----------
    optimisation_error
        Nats by which a further Newton step would raise the bound.
    optimisation_distance
        Posterior standard deviations by which that step would move a mean, at the most.
    at_maximum
        Whether the bound curves downwards in every direction that was tried.
    mean_error, sd_error
        Standard errors of `fit.mean` and `fit.sd` due to the frozen draws, shaped like them. An interval of
        `t_quantile` times the error to each side covers the answer of infinitely many draws in 95 % of cases.
    hyper_error
        The same of `fit.hyper`.
    bound_error
        The same of the bound, in nats.
    weights
        Importance weights of samples of the posterior: `khat`, `evidence` and `evidence_error` are theirs.
    reweighted
        Means and standard deviations by the same weights, with their errors.
    family_gap
        Evidence minus check bound: the Kullback-Leibler divergence from the fitted posterior to the target, in nats.
    skewness, skewness_error
        Of the target along each coordinate of the real line, to first order.
    missed_spread
        For a family that leaves out correlations: by how much they widen each coordinate, from the curvature
        averaged over it; one for all where nothing is left out.
    driving
        Names of the few coordinates, if any, with which the spread of the others changes: a Gaussian cannot follow it.
    mirrors
        Changes of the parameters that lead to a copy of the posterior elsewhere: `evidence` is that of one copy.
    linear_response
        Standard deviations and covariances by linear response, computed when asked for; of a nested fit, those of its outer
        parameters, on the scale on which they were fitted: their long tails shortened.
    outer
        Of a nested fit, the weights of its outer posterior against the bound that the inner Gaussians reach: `outer.khat` tells
        whether the outer family fits. None for others.
    n_evaluations
        Gradient evaluations that the diagnosis took.

    Examples
    --------
    >>> fit = qd.fit(lambda w: -0.5 * jnp.sum(w**2) - 0.1 * jnp.sum(w**4), np.zeros(2))
    >>> diagnosis = fit.diagnose()
    >>> bool(diagnosis.mean_error.max() < 0.1), diagnosis.khat < 0.7, diagnosis.driving
    (True, True, [])
    >>> round(diagnosis.t_quantile, 2)  # errors to each side that cover 95 %
    2.36
    """

    fit: Fit = field(repr=False)
    optimisation_error: float
    optimisation_distance: float
    at_maximum: bool
    mean_error: Parameters
    sd_error: Parameters
    hyper_error: Any
    bound_error: float
    weights: Weights = field(repr=False)
    reweighted: Reweighted = field(repr=False)
    skewness: np.ndarray
    skewness_error: np.ndarray
    missed_spread: np.ndarray
    driving: list[str]
    mirrors: list[Mirror]
    linear_response: LinearResponse = field(repr=False)
    n_replicates: int
    n_evaluations: int
    seconds: float
    outer: Weights | None = field(default=None, repr=False)

    @property
    def effective_share(self) -> float:
        """How many of the samples the importance weights keep, between 0 and 1."""
        return self.weights.share

    @cached_property
    def departures(self) -> list[Departure]:
        """Parameters whose moments the weights change clearly, the worst first."""
        if self.fit.collapsed is not None:
            return self.fit.departures
        own = departures(self.fit.space, self.fit.mean, self.fit.sd, self.reweighted, self.weights)
        return own if self.fit.further is None else worst_of_each([*own, *self.fit.further.departures])

    @property
    def moved(self) -> Moved:
        """The furthest that the weights move any parameter."""
        if self.fit.collapsed is not None:
            return self.fit.moved
        return moved(self.fit.mean, self.fit.sd, self.reweighted)

    @property
    def family_gap(self) -> float:
        """Evidence minus check bound, in nats; constants that the log density leaves out cancel."""
        return self.weights.evidence - self.fit.check_bound

    @property
    def up_to_constant(self) -> bool:  # pyright: ignore
        """As of the fit."""
        return self.fit.up_to_constant

    @property
    def t_quantile(self) -> float:
        """Errors to each side of an answer that cover 95 %."""
        from scipy.special import stdtrit

        return float(stdtrit(self.n_replicates - 1, 0.975))

    @cached_property
    def answer(self) -> Answer:
        """What of the posterior to trust, and why."""
        from quenched.diagnostics.verdict import trusted

        return trusted(self)

    @property
    def verdict(self) -> str:
        """In plain words, with the next thing to do."""
        from quenched.diagnostics.verdict import verdict

        return verdict(self)

    def __str__(self) -> str:
        from quenched.results import render

        return render(self.fit, self)

    def _repr_html_(self) -> str:
        from quenched.report import diagnosis_html

        return diagnosis_html(self)


@with_hints
def diagnose(fit: Fit, *, replicates: int = _REPLICATES, samples: int = _SAMPLES, progress: bool = True) -> Diagnosis:
    """Measure the three errors of a fit.

    Parameters
    ----------
    fit
        A fit that knows its log density: one that was just made, or a loaded one after `attach`.
    replicates
        Independent sets of draws behind the errors due to the draws.
    samples
        Of the posterior, for the importance weights.
    progress
        Show a line on the terminal.

    Examples
    --------
    >>> from quenched.diagnostics import diagnose
    >>> fit = qd.fit(lambda w: -0.5 * jnp.sum(w**2), np.zeros(2))
    >>> diagnose(fit, replicates=4).n_replicates  # fit.diagnose() keeps what it finds
    4
    """
    insist_fit(fit)
    whole_number("replicates", replicates, 2)
    whole_number("samples", samples, 100)
    problem, hyper, _ = require_origin(fit)
    began, seed, member = time.perf_counter(), fit.settings["seed"], fit.posterior.member
    if not np.isfinite(fit.bound):
        raise ValueError(f"fit: its bound is {fit.bound}, so there is nothing to diagnose. {fit.message}")
    with in_double(), quiet_blas(problem.target.on_host), Watcher(progress, None) as watch:
        found = _FOUND[member.family.bound](fit, replicates, watch, progress)
        watch.say("how far the family is from the target")
        samples = int(np.clip(_MOST_NUMBERS / (problem.dim + problem.n_rows), min(100, samples), samples))
        importance = weigh(problem, member, hyper, samples, seed)
        skew = skewness(problem, member, hyper, samples // 2, seed)
        searched = not member.on_host or problem.dim <= _MOST_MIRRORED
        return Diagnosis(
            fit=fit,
            optimisation_error=found.optimisation.nats,
            optimisation_distance=found.optimisation.distance,
            at_maximum=found.optimisation.maximum,
            mean_error=found.errors.mean,
            sd_error=found.errors.sd,
            hyper_error=found.errors.hyper,
            bound_error=found.errors.bound,
            weights=importance.weights if fit.collapsed is None else fit.weights,
            reweighted=reweight(fit.space, fit.mean, fit.sd, importance.samples, importance.weights.weights),
            skewness=skew.value,
            skewness_error=skew.error,
            missed_spread=found.missed_spread,
            driving=[real_names(fit.space)[place] for place in skew.driving],
            mirrors=mirrors(problem, member, hyper, seed) if searched else [],
            linear_response=found.linear_response,
            n_replicates=replicates,
            n_evaluations=found.n_evaluations,
            seconds=time.perf_counter() - began,
            outer=found.outer,
        )


class _Found(NamedTuple):
    """What is asked of the bound itself: how far from its top the fit is, and what other draws would have found."""

    optimisation: OptimisationError
    errors: DrawError
    missed_spread: np.ndarray
    linear_response: Any
    n_evaluations: int
    outer: Weights | None = None  # of a nested fit


def _of_draws(fit: Fit, replicates: int, watch: Watcher, progress: bool) -> _Found:
    problem, hyper, draws = require_origin(fit)
    member = fit.posterior.member
    watch.say("how far from the top")
    coordinates = whitened(problem, member, hyper)
    objective = Objective(problem, draws)
    optimisation = optimisation_error(Curvature(objective, coordinates, hyper))
    watch.say(f"what {replicates} other sets of draws would have found")
    own = answer_of(problem, member, hyper, fit.bound)
    errors, n = draw_error(problem, coordinates, hyper, draws, own, replicates, fit.settings["seed"])
    if optimisation.top is not None:
        errors = with_distance(errors, own, answer_of(problem, optimisation.top, hyper, fit.bound))
    held = Curvature(objective, coordinates, hyper, follow_hyper=False)
    response = LinearResponse(held, fit.space, progress=progress)
    return _Found(optimisation, errors, missed_spread(coordinates), response, n + objective.n_evaluations)


def _of_terms(fit: Fit, replicates: int, watch: Watcher, progress: bool) -> _Found:
    """Of a sum of terms with a sparse precision: what is known of rows is not asked of whole draws."""
    problem, hyper, draws = require_origin(fit)
    member = fit.posterior.member
    watch.say("how far from the top")
    bound = ProjectedBound(problem, draws, skewed=not member.affine)
    optimisation = terms_optimisation_error(bound, member, hyper)
    watch.say(f"what {replicates} other sets of draws would have found")
    own = answer_of(problem, member, hyper, fit.bound)
    errors, n = terms_draw_error(problem, member, hyper, draws, own, replicates)
    response = TermsResponse(bound, member, hyper, fit.space)
    return _Found(optimisation, errors, np.ones(problem.dim), response, n + bound.n_evaluations)


def _of_nested(fit: Fit, replicates: int, watch: Watcher, progress: bool) -> _Found:
    found = nested_errors(fit, replicates, watch, progress)
    ones = np.ones(fit.posterior.dim)
    return _Found(found.optimisation, found.errors, ones, found.linear_response, found.n_evaluations, found.outer)


_FOUND = {Bound.ON_DRAWS: _of_draws, Bound.OF_TERMS: _of_terms, Bound.NESTED: _of_nested}
