"""What a person should know of a fit that its status does not say: numbers lost to rounding, values that jump, starts that see little."""

import numpy as np

from quenched.draws import check_draws_of
from quenched.fitting.optima import WIDTH
from quenched.objective import Problem
from quenched.results import Fit
from quenched.transforms import positive
from quenched.trust import lost_to_rounding, moves_of_means

_HIDDEN = 0.01  # nats lost to rounding that are worth a word
_COARSE = 0.05  # of an sd: steps in which a parameter is known
_WIDE = 2.0  # sd of a logarithm: mean and sd of a log-normal are ruled by what lies beyond two and four sds
_CONTRADICTION = 0.1  # of an sd: a move that values ask for, clearly, and gradients do not
_VARY = 1.5  # sds of a parameter over check draws, at the most
_OUTVOTED = 0.01  # of the nats that such a move is worth: what gradients promise at the most


def rounding_remark(problem: Problem, fit: Fit) -> str:
    """Name a constant so large, or a parameter so far from zero, that numbers of 64 bits cannot tell what matters."""
    said = []
    lost = lost_to_rounding(fit.bound)
    if lost > _HIDDEN:
        said.append(
            f"The log density is about {fit.bound:.1e}: rounding hides differences below {lost:.2g} nats, so that nothing can be "
            "checked. Leave out the constant, or sum what is large with more care."
        )
    mean, sd = fit.posterior.mean, np.sqrt(fit.posterior.variance())
    with np.errstate(invalid="ignore"):
        steps = np.spacing(np.abs(mean)) / sd
    coarse = np.flatnonzero(steps > _COARSE)
    if coarse.size:
        name = problem.space.coordinate_names()[int(coarse[0])]
        more = f" and {coarse.size - 1} more parameters" if coarse.size > 1 else ""
        said.append(
            f"{name}{more} is about {mean[coarse[0]]:.1e}, where numbers of 64 bits are {steps[coarse[0]]:.2g} of its standard "
            "deviation apart: let the parameter be its difference from there."
        )
    return " ".join(said)


def tail_remark(problem: Problem, fit: Fit) -> str:
    """Name positive parameters whose logarithm is so uncertain that their mean and sd are those of a tail that no draw reaches."""
    logarithms = np.repeat([leaf.transform == positive for leaf in problem.space.leaves], problem.space.sizes)
    sd = np.sqrt(fit.posterior.variance())
    wide = np.flatnonzero(logarithms & (sd > _WIDE))
    if not wide.size:
        return ""
    name, first = problem.space.coordinate_names()[int(wide[0])], wide[0]
    more = f" and {wide.size - 1} more parameters" if wide.size > 1 else ""
    return (
        f"The logarithm of {name}{more} has an sd of {sd[first]:.2g}: mean and sd in natural units are those of a tail that no draw "
        f"reaches, and say little. The median is {np.exp(fit.posterior.mean[first]):.3g}."
    )


def jump_remark(fit: Fit, shortfall: float) -> str:
    """Say that values and gradients contradict each other: on fresh draws the ones ask for a move, and the others do not.

    At the best Gaussian both ask for none, and a move of d standard deviations is worth d²/2 nats. A log density that jumps
    has no gradient where it does; so has one whose gradient was written by hand, or stopped.
    """
    inside = fit.log_ratios[np.isfinite(fit.log_ratios)]
    # No move that values ask for is worth more than they vary (Cauchy and Schwarz; draws vary by about one).
    most = _VARY * float(np.std(inside)) if len(inside) else 0.0
    if not fit.converged or not most > _CONTRADICTION or not shortfall <= _OUTVOTED * 0.5 * most * most:
        return ""
    if (
        fit.posterior.member.on_host and fit.posterior.member.affine
    ):  # one matrix and vector tell most: no program is made
        draws = check_draws_of(fit.posterior.dim, fit.settings["seed"]).batches(len(fit.log_ratios))
        moves = moves_of_means(fit.posterior, fit.log_ratios, draws)
        if not np.max(np.abs(moves)) > _CONTRADICTION:
            return ""
    drift = fit.drift
    if drift is None:
        return ""
    clear = drift.mean - 2.0 * drift.mean_error
    if not clear > _CONTRADICTION or shortfall > _OUTVOTED * 0.5 * clear * clear:
        return ""
    return (
        f"The values of the log density and its gradient contradict each other: by the values at fresh draws the mean of "
        f"{drift.mean_name} would move by {drift.mean:.2g} sds, by the gradient not at all. It jumps, or a part of it has no "
        "derivative (jnp.where, rounding, sorting, stop_gradient, a derivative written by hand)."
    )


def starts_remark(fit: Fit, n_starts: int) -> str:
    """Say how far away several starts have looked."""
    if n_starts < 2 or len(fit.optima) != 1:
        return ""
    return (
        f"All {n_starts} starts, which lie about {WIDTH:g} (on the real line) around the given one, led here; a mode that none of "
        "them is drawn to is not seen."
    )
