"""Our own entries: the library as it comes, its families, and the parts of its default switched off in turn."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarks.leaderboard.method import Answer, Method

_MANY_DRAWS = 4096  # by which the best Gaussian is found, or ...
_MANY_TIMES_DIM = 32  # ... as many times the dimension


def _answer(fit: Any) -> Answer:
    posterior = fit.posterior
    says = f"{fit.status}; {fit.n_draws} draws"
    mean, scale = np.asarray(posterior.mean), np.asarray(posterior.scale)
    if posterior.member.affine:
        return Answer(mean, scale, says=says, own_gradients=fit.n_evaluations)
    return Answer(
        mean,
        scale,
        transform=posterior.transform,
        log_density=posterior.log_density,
        says=says,
        own_gradients=fit.n_evaluations,
    )


def _fits(alter: Callable[[], None] = lambda: None, **options: Any) -> Callable:
    """Loads the library; `alter` switches a part of it off, in this process alone."""

    def load() -> Callable:
        import quenched as qd

        assert callable(qd.fit)  # names are imported when they are first asked for
        alter()
        chosen = {name: option() if callable(option) else option for name, option in options.items()}

        def prepare(problem: Any, log_density: Callable) -> Callable[[int], Answer]:
            own = {name: option(problem.dim) if callable(option) else option for name, option in chosen.items()}
            return lambda seed: _answer(
                qd.fit(log_density, problem.start, seed=seed, progress=False, throw=False, **own)
            )

        return prepare

    return load


def _laplace() -> Callable:
    import quenched as qd

    return lambda problem, log_density: (
        lambda seed: _answer(qd.laplace(log_density, problem.start, progress=False, throw=False))
    )


def _joint(**options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import quenched as qd

        return qd.Joint(**options)

    return make


def _many_draws() -> Callable[[int], int]:
    return lambda dim: 2 * (max(_MANY_DRAWS, _MANY_TIMES_DIM * dim) // 2) if dim < 1000 else 4 * dim


# Parts that are no option of `fit`.


def _raw_points_independent() -> None:
    from quenched.draws import draws

    kind = draws.kinds["matched"]
    draws.kinds["matched"] = kind._replace(raw=lambda n, *rest: draws.kinds["iid"].raw(n // 2, *rest))


def _not_matched() -> None:
    from quenched.draws import draws

    draws.kinds["matched"] = draws.kinds["sobol"]


def _plain_start() -> None:
    from quenched.fitting.start import Starter

    Starter.best = lambda self: self.plain(1.0)


def _start_at_the_mode() -> None:
    from quenched.fitting import start

    start.to_be_trusted = lambda mode, worth: np.isfinite(worth)


def _growth_by_doubling() -> None:
    from quenched.fitting import monitor, rounds

    once = lambda n, times, most: n * 2 ** min(1, int(np.log2(most / n)))
    monitor.doubled = rounds.doubled = once


def _no_growth() -> None:
    from quenched.fitting.rounds import Rounds

    Rounds._must_grow = lambda self, index, rounds=0: index[:0]


_OURS = partial(Method, packages=("quenched", "jax"))
METHODS = {
    "quenched": _OURS(_fits(), settings="as it comes"),
    "quenched, warped": _OURS(_fits(family="warped"), settings='family="warped"'),
    "quenched, auto": _OURS(_fits(family="auto"), settings='family="auto"'),
    "quenched, diagonal": _OURS(_fits(family="diagonal"), settings='family="diagonal"'),
    "quenched, Laplace": _OURS(_laplace, settings="qd.laplace"),
}
BEST = {
    "best Gaussian": _OURS(
        _fits(draws=_many_draws, max_draws=_many_draws, method=_joint(gradient_tolerance=1e-4)),
        settings=f"{_MANY_DRAWS} draws, or {_MANY_TIMES_DIM} per dimension, to a gradient of 1e-4",
    )
}
ABLATIONS = {
    "raw points independent": _OURS(_fits(_raw_points_independent), settings="normal numbers instead of Sobol points"),
    "draws not matched": _OURS(_fits(_not_matched), settings="Sobol points, neither mirrored nor whitened"),
    "coordinates not whitened": _OURS(
        _fits(_plain_start, method=_joint(whiten_every=10**6)), settings="unit start, coordinates never renewed"
    ),
    "no growth": _OURS(_fits(_no_growth), settings="the first number of draws is the last"),
    "growth by doubling": _OURS(_fits(_growth_by_doubling), settings="one doubling a round"),
    "start: unit Gaussian": _OURS(_fits(_plain_start), settings="neither mode nor short fit"),
    "start: mode alone": _OURS(_fits(_start_at_the_mode), settings="no short fit beside the mode"),
    "ascents to the top": _OURS(_fits(method=_joint(gradient_tolerance=1e-5)), settings="to a gradient of 1e-5"),
}
