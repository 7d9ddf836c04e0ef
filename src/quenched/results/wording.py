"""What a fit says of its draws and of its optima, in words a person can act on."""

from typing import TYPE_CHECKING

import numpy as np

from quenched.results.outcome import Status

if TYPE_CHECKING:
    from quenched.results.fit import Fit

_ROUNDING = 1e-9  # of sds and nats: less is not worth a number
_NOTHING_TOLD = 1.0  # nats, where no more are tolerated: a bound known so badly agrees with anything


def on_draws(fit: "Fit") -> str:
    """Whether the draws suffice, and how far the bound is from its value on fresh ones; empty where neither is known."""
    if np.isfinite(fit.bound) and fit.history and not np.isfinite(fit.check_bound):
        return (
            "On fresh draws the log density is not finite: the posterior reaches beyond the support. Give the "
            "parameter a transform (positive, interval(a, b), ...) that keeps it there."
        )
    if not np.isfinite(fit.gap):
        return ""
    tolerance, error = fit.settings["tolerance"], fit.check_error
    where = f"on fresh draws the bound is lower by {fit.gap:.2g} ± {error:.2g} nats"
    if abs(fit.gap) <= 2.0 * error and error > max(_NOTHING_TOLD, tolerance):
        where = f"fresh draws cannot tell how far the bound is off (gap {fit.gap:.2g} ± {error:.2g} nats)"
    elif abs(fit.gap) <= 2.0 * error:
        where = f"the bound agrees with its value on fresh draws (gap {fit.gap:.2g} ± {error:.2g} nats)"
    elif fit.gap < 0:
        where = f"on fresh draws the bound is higher by {-fit.gap:.2g} ± {error:.2g} nats"
    if fit.overfits:
        return f"Overfitting to the draws: {where}. Use more draws (now {fit.n_draws}) or matched ones."
    if np.isnan(fit.shortfall) or not (fit.converged or fit.status is Status.GIVEN):  # draws are not what is short
        return f"{where[0].upper()}{where[1:]}."
    cost = f"better ones would raise the bound by about {fit.shortfall:.1g} nats"
    moved = ""
    if fit.drift is not None:
        mean, sd = fit.drift.most
        moved = f"; others would move a mean by {mean:.2g} sds and an sd by {sd:.0%} at the most, as far as can be told"
    why = f"{cost}, where {tolerance:.2g} are tolerated{moved}; {where}"
    if fit.draws_suffice and _is_exact(fit):
        return "The draws suffice: on fresh ones nothing changes but last digits."
    if not fit.draws_suffice:
        return f"The draws are too few: {why}; use more (now {fit.n_draws})."
    if fit.drift is None or fit.drift.excluded:
        return f"The draws suffice: {why}."
    return f"The draws suffice for the bound, and perhaps for means and sds: {why}."


def _is_exact(fit: "Fit") -> bool:
    """Whether other draws would change nothing but rounding errors, as where the target is Gaussian."""
    changes = [fit.gap / max(abs(fit.bound), 1.0), fit.shortfall, *(fit.drift.most if fit.drift is not None else ())]
    return bool(np.all(np.abs(changes) < _ROUNDING))


def on_optima(fit: "Fit") -> str:
    """The optima that were met, where there were several."""
    if len(fit.optima) < 2:
        return ""
    bounds = ", ".join(f"{optimum.bound:.2f}" for optimum in fit.optima)
    return f"{len(fit.optima)} distinct optima were found, with bounds {bounds}; this is the best."
