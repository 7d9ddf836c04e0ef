"""`family="auto"`: a Gaussian, and where it is not near enough to the target the warped families that can be afforded after it."""

from collections.abc import Callable
from dataclasses import replace

from quenched.families import Family, Sparse, Warped
from quenched.fitting.asked import Asked
from quenched.fitting.method import Joint
from quenched.interrupts import interrupts_obeyed
from quenched.results import Fit, History, Status
from quenched.trust import BULK, Trust, gains

_MOST_WARPED = 300  # parameters of a sum of terms up to which a warped posterior that is tried may be dense
_MOST_BENT = 5  # parameters whose axes are bent unasked: of ten, a bent posterior follows the draws that it is given
_TURNS = 6  # evaluations of the bound that a warp takes at least
# A sparse fit draws in small spaces. What counts for it: draws for each parameter, and evaluations of all of them.
_IF_FULL = (8, 24)
_NO_BETTER = "A warped posterior is no better on fresh draws."
_INTERRUPTED = "Interrupted before a warped posterior was found."
_TOO_LONG = 'A warped posterior would take more gradients than this one: ask for it with family="warped".'


def remedied(gaussian: Fit, asked: Asked, fitted: Callable[[Asked], Fit]) -> Fit:
    """The best of a Gaussian and of the warped families that are tried after it, until one is near enough; ties are for the first."""
    best = gaussian
    for warped in _families(asked.family, gaussian):
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


def _families(family: str | Family, gaussian: Fit) -> tuple[Family, ...]:
    """Those to be tried: for a sum of terms each parameter is skewed by itself, and all together where they are few."""
    if family not in ("full", "sparse"):
        return ()
    dim, by_itself = gaussian.posterior.dim, (Sparse(warped=True),) if family == "sparse" else ()
    if family == "sparse" and dim > _MOST_WARPED:
        return by_itself
    draws, evaluations = _worth(gaussian)
    affordable = Warped().first_draws((dim,)) <= max(draws, evaluations // _TURNS)
    return *by_itself, Warped(bend=None if dim <= _MOST_BENT and affordable else False)


def _worth(gaussian: Fit) -> tuple[int, int]:
    """Draws and gradients of a fit; of a sparse one as many as a full one would have taken."""
    if not isinstance(gaussian.posterior.member.family, Sparse):
        return gaussian.n_draws, gaussian.n_evaluations
    draws = max(gaussian.n_draws, _IF_FULL[0] * gaussian.posterior.dim)
    return draws, max(gaussian.n_evaluations, _IF_FULL[1] * draws)


def _affordable(asked: Asked, warped: Family, gaussian: Fit) -> Asked:
    """A warped fit that takes no more gradients than the Gaussian did: on no more draws, unless it needs them to begin."""
    asked = replace(asked, family=warped, draws=None, polishes=False)
    if isinstance(warped, Sparse) or not isinstance(asked.method, Joint):
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
