"""Errors of a nested fit: those of its outer posterior, and what they do to the inner parameters.

The inner Gaussians are solved anew for every draw of the outer parameters, so that what is optimised and what depends on
frozen draws is the outer posterior alone, on the bound that the inner Gaussians reach.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.diagnostics.curvature import Curvature, whitened
from quenched.diagnostics.draw_error import AnswerOfDraws, DrawError, draw_error
from quenched.diagnostics.linear_response import LinearResponse
from quenched.diagnostics.optimisation import OptimisationError, optimisation_error
from quenched.families import Member
from quenched.fitting import Watcher
from quenched.nesting import outer_of
from quenched.objective import Objective, Problem
from quenched.posterior import Posterior, moment_draws, to_natural
from quenched.precision import in_double
from quenched.results import Fit, require_origin
from quenched.targets import Hyper
from quenched.trust import Weights


class NestedErrors(NamedTuple):
    """Of a nested fit."""

    optimisation: OptimisationError
    errors: DrawError
    linear_response: LinearResponse  # of the outer parameters
    n_evaluations: int
    outer: Weights  # from the outer posterior to the bound that the inner Gaussians reach


def nested_errors(fit: Fit, replicates: int, watch: Watcher, progress: bool) -> NestedErrors:
    """How far from its top the outer posterior is, and what other draws of the outer parameters would have found."""
    watch.say("how far from the top")
    outer = outer_of(fit)
    problem, hyper, draws = require_origin(outer)
    coordinates, objective = whitened(problem, outer.posterior.member, hyper), Objective(problem, draws)
    optimisation = optimisation_error(Curvature(objective, coordinates, hyper))
    watch.say(f"what {replicates} other sets of draws would have found")
    answer = _Answering(fit)
    own = answer(problem, outer.posterior.member, hyper, outer.bound)
    errors, n = draw_error(problem, coordinates, hyper, draws, own, replicates, fit.settings["seed"], answer)
    held = Curvature(objective, coordinates, hyper, follow_hyper=False)
    response = LinearResponse(held, outer.space, progress=progress)
    return NestedErrors(optimisation, errors, response, n + objective.n_evaluations, outer.weights)


class _Answering:
    """Moments of all parameters under another outer posterior: the inner Gaussians are those of the fit where it is."""

    def __init__(self, fit: Fit):
        self.member, self.space = fit.posterior.member, fit.space
        self.z = moment_draws(fit.posterior.dim).points

    def __call__(self, problem: Problem, posterior: Member, hyper: Hyper, bound: float) -> AnswerOfDraws:
        own: Any = self.member
        places, z = np.array(own.places), self.z.copy()
        thetas = Posterior(posterior).transform(z[:, places])
        with in_double():
            z[:, places] = np.asarray(own.outer.standardise(thetas))
        natural = to_natural(self.space, Posterior(own).transform(z))
        mean, sd = (jax.tree.map(lambda leaf, of=of: of(leaf, axis=0), natural) for of in (np.mean, np.std))
        return AnswerOfDraws(mean, sd, None, bound)
