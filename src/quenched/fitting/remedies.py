"""`family="auto"`: a Gaussian, and where it is not near enough to the target the warped families that can be afforded after it."""

from collections.abc import Callable
from dataclasses import replace

from quenched.families import Bound, Family
from quenched.fitting.asked import Asked
from quenched.fitting.method import Joint
from quenched.interrupts import interrupts_obeyed
from quenched.results import Fit, History, Status
from quenched.trust import BULK, Trust, gains

_TURNS = 6  # evaluations of the bound that a warp takes at least
# A fit of terms draws in small spaces. What counts for it: draws for each parameter, and evaluations of all of them.
_IF_FULL = (8, 24)
_NO_BETTER = "A warped posterior is no better on fresh draws."
_INTERRUPTED = "Interrupted before a warped posterior was found."
_TOO_LONG = 'A warped posterior would take more gradients than this one: ask for it with family="warped".'


def remedied(gaussian: Fit, asked: Asked, fitted: Callable[[Asked], Fit]) -> Fit:
    """The best of a Gaussian and of the warped families that are tried after it, until one is near enough; ties are for the first."""
    best = gaussian
    draws, evaluations = _worth(gaussian)
    for warped in asked.family.warps(gaussian.posterior.dim, max(draws, evaluations // _TURNS)):
        try:
            if not _invites(best):
                break
            tried = None if interrupts_obeyed() else fitted(_affordable(asked, warped, gaussian))
        except KeyboardInterrupt:
            tried = None
        if tried is None:  # a posterior is there
            return replace(best, message=f"{best.message} {_INTERRUPTED}")
        best = _better_of(best, tried)
        if tried.status is Status.INTERRUPTED:
            break
    return best


def _worth(gaussian: Fit) -> tuple[int, int]:
    """Draws and gradients of a fit; of one of terms as many as a full one would have taken."""
    if gaussian.posterior.member.family.bound is not Bound.OF_TERMS:
        return gaussian.n_draws, gaussian.n_evaluations
    draws = max(gaussian.n_draws, _IF_FULL[0] * gaussian.posterior.dim)
    return draws, max(gaussian.n_evaluations, _IF_FULL[1] * draws)


def _affordable(asked: Asked, warped: Family, gaussian: Fit) -> Asked:
    """A warped fit that takes no more gradients than the Gaussian did: on no more draws, unless it needs them to begin."""
    asked = replace(asked, family=warped, draws=None, polishes=False)
    if warped.bound is Bound.OF_TERMS or not isinstance(asked.method, Joint):
        return asked
    draws, evaluations = _worth(gaussian)
    n = min(draws, evaluations // (2 * _TURNS))
    n = max(warped.first_draws((gaussian.posterior.dim,)), n + n % 2)
    turns = min(asked.method.max_evaluations, max(evaluations // n, _TURNS))
    return replace(asked, draws=n, method=replace(asked.method, max_evaluations=turns))


def _invites(fit: Fit) -> bool:
    """Something is left to be gained, and the fit is sound enough to go on from."""
    fits = fit.answer.trust is Trust.BOTH and fit.weights.share > BULK
    return fit.converged and not fits and fit.finite


def _better_of(best: Fit, warped: Fit) -> Fit:
    """The one that is nearer to the target; the first where they tie."""
    work = {name: getattr(best, name) + getattr(warped, name) for name in ("n_evaluations", "n_objective_evaluations")}
    work |= {"seconds": warped.seconds, "history": History((*best.history, *warped.history))}
    if warped.converged and gains(warped.log_ratios, best.log_ratios):
        return replace(warped, **work)
    work["history"] = History((*best.history, *warped.history, best.history[-1]))
    note = _NO_BETTER if warped.converged else _INTERRUPTED if warped.status is Status.INTERRUPTED else _TOO_LONG
    return replace(best, message=_remarked(best, note), **work)


def _remarked(best: Fit, note: str) -> str:
    """What is said of a Gaussian that was kept: the last of what was tried."""
    if not best.posterior.member.affine:
        return best.message
    return f"{best.message.removesuffix(_NO_BETTER).rstrip()} {note}"
