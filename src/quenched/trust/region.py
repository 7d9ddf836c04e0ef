"""Where the log density is not finite: at check draws, or further out along a single parameter, where none of them comes."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from quenched.families import Member, ask
from quenched.objective import Problem, cut, log_ratios
from quenched.posterior import Posterior
from quenched.targets import Hyper

# How remarks on it begin.
NAN_FURTHER_OUT = "The log density is NaN"
INFINITE_FURTHER_OUT = "The log density is infinite"
_LOOK = (3.7, 5.0)  # standard deviations at which every parameter is looked at
# The same where a fit has failed: a support that ends there has kept it narrower than it would be.
_LOOK_FOR_ENDS = (*_LOOK, 8.0, 12.0)
_MOST_LOOKED_AT = 100  # of them
NOT_LOOKED_AT = (
    "Further out than the check draws came, the log density was not looked at: NaNs, heavy tails and other modes there are "
    "not seen."
)
_HARDLY_LOOKED_AT = (
    "Further out than the check draws came, the log density, a function on the host, was looked at along each parameter for "
    "NaNs alone: heavy tails and other modes there are not seen."
)


def what_is_wrong(values: np.ndarray) -> str:
    """How values that are not finite are called."""
    if np.isnan(values).any():
        return "not finite"
    return "infinite" if np.isposinf(values).any() else "minus infinity"


class Region(NamedTuple):
    """Points at which the log density is not finite, and a posterior that they are compared with."""

    outside: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    what: str

    def told(self, problem: Problem, n: int, of: str) -> str:
        names, outside = problem.space.coordinate_names(), self.outside
        with np.errstate(invalid="ignore", divide="ignore"):  # a fit that has run away has no such numbers
            depth = np.median(np.nan_to_num(np.abs(outside - self.mean) / self.spread), axis=0)
        guilty = [names[i] for i in np.argsort(-depth)[:2]]
        low, high, first = outside.min(axis=0), outside.max(axis=0), int(np.argmax(depth))
        undefined = "Look for a logarithm, a square root or a division there, or give"
        remedy = {
            "not finite": undefined,
            "NaN": undefined,
            "minus infinity": "The support ends there, and no transform says so: give",
            "infinite": "No density is: look for a division by zero or a logarithm of zero there, or give",
        }[self.what]
        return (
            f"The log density is {self.what} at {len(outside)} of {n} {of}; they differ from the "
            f"others most in {', '.join(guilty)} ({names[first]} from {low[first]:.3g} to {high[first]:.3g} on the real "
            f"line). {remedy} a transform (positive, interval(a, b), ...) that keeps the parameter where the log density "
            "exists."
        )


def tell_region(
    problem: Problem,
    posterior: Posterior,
    hyper: Hyper,
    outside: np.ndarray,
    ratios: np.ndarray,
    *,
    failed: bool,
    affordable: int,
    weighed: bool,
) -> str:
    """Say where the log density is not finite: at these check draws, or further out along a single parameter.

    `ratios` are those of all check draws. Where a fit has `failed`, an end of the support further out is worth a word too. A
    function on the host is asked for no more values than are `affordable`; of one that was `weighed` further out, no more is said.

    No check draw may meet what lies beyond three standard deviations; so every parameter is looked at there on purpose,
    the others where they are expected given it.
    """
    names = problem.space.coordinate_names()
    if len(outside):
        spread = np.sqrt(posterior.variance())
        where = Region(outside, posterior.mean, spread, what_is_wrong(ratios[~np.isfinite(ratios)]))
        return where.told(problem, len(ratios), "check draws")
    on_host = problem.programs is None
    if on_host and (failed or len(_LOOK) * 2 * min(problem.dim, _MOST_LOOKED_AT) > affordable):
        return "" if failed or weighed else NOT_LOOKED_AT
    if posterior.member.on_host and problem.dim > _MOST_LOOKED_AT:
        return ""
    looked = min(problem.dim, _MOST_LOOKED_AT)
    reach = posterior.covariance[:, :looked] / np.sqrt(posterior.variance()[:looked])  # columns: one sd of each
    look = _LOOK_FOR_ENDS if failed else _LOOK
    points = np.concatenate([posterior.mean + side * far * reach.T for far in look for side in (1.0, -1.0)])
    near = partial(_values_near, problem, posterior.member, hyper)
    values = without_raising(near, points) if on_host else near(points)
    near_by = values[: len(_LOOK) * 2 * looked]
    bad = np.flatnonzero(np.isnan(near_by) | np.isposinf(near_by))
    if not len(bad) and failed:
        bad = np.flatnonzero(np.isinf(values))
    if not len(bad):
        return _HARDLY_LOOKED_AT if on_host and not weighed else ""
    which = int(bad[0] % looked)
    far, side = look[int(bad[0] // (2 * looked))], "above" if (bad[0] // looked) % 2 == 0 else "below"
    where = points[bad[0], which]
    if np.isposinf(values[bad[0]]):
        return (
            f"{INFINITE_FURTHER_OUT} {far:g} sds {side} the mean of {names[which]} (at {where:.3g} on the real line), where no check "
            "draw came, and no density is: look for a division by zero, a logarithm of zero or an overflow there, or give a "
            "transform that keeps the parameter away."
        )
    if not np.isnan(values[bad[0]]):
        return (
            f"The log density is {values[bad[0]]} {far:g} sds {side} the mean of {names[which]} (at {where:.3g} on the real line): "
            "its support ends before, and no transform says so. Give one (positive, interval(a, b), ...)."
        )
    return (
        f"{NAN_FURTHER_OUT}{', or it raises,' if on_host else ''} {far:g} sds {side} the mean of {names[which]} (at {where:.3g} on the real line), where no "
        "check draw came: what the posterior says of that side is a guess. Look for a logarithm, a square root or a division "
        "there, or give a transform that keeps the parameter away."
    )


def without_raising(values: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> np.ndarray:
    """Those of a function on the host, for which NaN and an exception are one: whoever prints a fit is not to meet it."""
    try:
        return values(points)
    except Exception:
        if len(points) == 1:
            return np.array([np.nan])
    return np.concatenate([without_raising(values, point[None]) for point in points])


def _values_near(problem: Problem, posterior: Member, hyper: Hyper, points: np.ndarray) -> np.ndarray:
    """Numbers that are as finite as the log density is; by the program that has checked a Gaussian, if there is one."""
    if posterior.affine and not posterior.on_host:
        z = np.asarray(ask(posterior, "standardise", points))
        if np.isfinite(z).all():  # no standard deviation has underflown
            return log_ratios(problem, posterior, hyper, z)
    return values_at(problem, points, hyper)


def values_at(problem: Problem, points: np.ndarray, hyper: Hyper) -> np.ndarray:
    executor = problem.executor(len(points))
    parts = [
        np.asarray(executor.values(part, problem.data, hyper.free))[counts > 0]
        for part, counts in cut(points, executor.chunk)
    ]
    return np.concatenate(parts)
