"""From a nested fit back to the fit of its outer parameters, to ask further questions about it."""

from dataclasses import replace
from typing import cast

import numpy as np

from quenched.families import NestedGaussian
from quenched.fitting import assess
from quenched.nesting.outer import make_outer
from quenched.nesting.split import split
from quenched.nesting.whole import CHECK, better_guess, warmed
from quenched.posterior import Posterior
from quenched.precision import in_double
from quenched.results import Fit, require_origin


def outer_of(fit: Fit) -> Fit:
    """The outer posterior of a nested fit, judged by the bounds that the inner Gaussians reach, on the draws it was fitted to."""
    problem, settings = require_origin(fit).problem, fit.settings
    member = cast(NestedGaussian, fit.posterior.member)
    point, seed = np.asarray(fit.posterior.mean), settings["seed"]
    posterior, given = Posterior(member.outer), problem.target.given(problem.data)
    with in_double():
        chosen = split(problem.space, settings["outer"])
        at_mode = settings["method"] == "nested Laplace"
        outer = warmed(make_outer(problem.target, chosen, point, given, seed, at_mode=at_mode), point)
        outer = better_guess(replace(outer, tails=np.asarray(member.tails)), posterior, seed)
    asked = {"draws": settings["outer_draws"], "seed": seed, "check": CHECK, "throw": False, "progress": False}
    return assess(outer.target, posterior, chosen.outer_start(point), **asked)
