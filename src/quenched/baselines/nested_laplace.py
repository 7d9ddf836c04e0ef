"""Nested Laplace (Rue, Martino and Chopin 2009): Laplace's approximation of the inner parameters for every outer value.

p(θ | y) is taken as Laplace's estimate of p(y, θ), and p(u | θ, y) as Laplace's Gaussian. The integral over θ, which they take
over a grid or a central composite design, is taken over frozen draws of a posterior fitted to that estimate.
"""

from collections.abc import Callable, Sequence
from typing import Any

from quenched.fitting import told, with_hints
from quenched.nesting import Asked, fit_nested
from quenched.numbers import yes_or_no
from quenched.result import Fit
from quenched.targets import Model, Target


@with_hints
def nested_laplace(
    log_density: Callable[..., Any] | Target | Model,
    start: Any = None,
    outer: Sequence[str] | None = None,
    *,
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

    Marginals of the inner parameters are mixtures of Laplace's Gaussians over the outer ones; the simplified-Laplace
    correction of each Gaussian for its own skewness is not made.

    Returns
    -------
    Fit
        `settings["log_evidence"]` is the estimate of nested Laplace, a bound of the outer integral; `evidence` weighs the
        posterior by the log density itself.
    """
    asked = Asked(
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
    throw = yes_or_no("throw", throw)
    return told(fit_nested(log_density, start, outer, asked), throw)
