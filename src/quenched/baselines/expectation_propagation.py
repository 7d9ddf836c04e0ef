"""Expectation propagation (Minka 2001) for sums of terms: every term is replaced by a Gaussian of the numbers that it sees.

The Gaussian of a term (its site) is chosen such that, with the sites of all others, it has the moments that the term itself
would give. All sites are renewed in parallel, with damping; the precision is kept and factored on the pattern of the model.
"""

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from quenched.baselines.corrections import corrected
from quenched.baselines.sites import Gaussians, Sites, first_sites, read_sites, renewed
from quenched.families import Pattern, SparseGaussian, factor
from quenched.fitting import assess, ready, told, with_hints
from quenched.nesting import Split
from quenched.numbers import yes_or_no
from quenched.results import Fit, Status
from quenched.targets import Model, Target, check_terms, local_terms, read_model
from quenched.transforms import describe_space, real_names

_MOST_ROUNDS = 200
_AT_REST = 1e-8
_NEARLY = 1e-3  # standard deviations that a round may still move where the sites count as settled
_DAMPING = 0.7  # share of the new site
_LEAST_DAMPING = 0.02
_PATIENCE = 10  # rounds without progress after which steps are shortened
_MOST_DENSE = 1000  # parameters up to which the covariance is written out
_LOG_TWO_PI = float(np.log(2.0 * np.pi))


@with_hints
def expectation_propagation(
    target: Target | Model,
    start: Any = None,
    *,
    data: Any = None,
    transforms: Any = None,
    seed: int = 0,
    check: int | None = None,
    correct: bool = False,
    throw: bool = True,
    progress: bool = True,
) -> Fit:
    """Expectation propagation, to compare with `fit`.

    Parameters
    ----------
    target
        A sum of terms (`sum_of`), each of which depends on few combinations of the parameters.
    start, data, transforms, seed, check, throw, progress
        As in `fit`.
    correct
        Correct the marginals one factor at a time (Cseke and Heskes 2011), for terms of one number; takes a while
        where parameters and rows are many.

    Returns
    -------
    Fit
        `settings["log_evidence"]` is EP's own estimate; `bound` and `check_bound` show what its Gaussian loses against
        `fit`. With `correct`, `settings["corrected"]` has lists mean, sd and skewness on the real line, in the order of its
        list name.

    Raises
    ------
    ValueError
        For a target whose terms are not known.

    Examples
    --------
    >>> sign = np.array([1.0, 1.0, -1.0])
    >>> target = qd.sum_of(
    ...     qd.each(lambda seen, s: -jnp.logaddexp(0.0, -s * seen["level"]), sign, sees={"level": qd.whole}),
    ...     qd.each(lambda seen: -0.5 * seen["level"] ** 2, sees={"level": qd.whole}),
    ... )
    >>> fit = qd.baselines.expectation_propagation(target, {"level": 0.0})
    >>> bool(0.0 < fit.mean["level"] < 1.0)
    True
    """
    began = time.perf_counter()
    model = read_model(target, start, transforms=transforms, data=data)
    if model.target.terms is None:
        raise ValueError(
            "target: expectation propagation needs known terms; write it as quenched.sum_of(quenched.each(...))."
        )
    throw, correct = yes_or_no("throw", throw), yes_or_no("correct", correct)
    with ready(model, False, None):
        space, point = describe_space(model.start, model.transforms)
        check_terms(model.target.terms, model.target.data, space, model.data, None)
        local = local_terms(model.target.terms, model.target.data, space)
        terms, pattern = read_sites(local, Split(space, ()), point, model.data, seed)
        found = _propagate(terms, pattern, point, model.data)
        more = {}
        if correct and np.isfinite(found.mean).all():
            moments = corrected(found.moving, found.sites, found.mean, found.dense(pattern), model.data)
            more = {"corrected": {"name": real_names(space)} | {k: v.tolist() for k, v in moments.items()}}
    if not np.isfinite(found.mean).all():
        raise ValueError("start: the sites of expectation propagation have no proper Gaussian there; start elsewhere.")
    judged = assess(model, found.posterior(pattern), seed=seed, check=check, throw=False, progress=progress)
    status = Status.CONVERGED if found.change < _NEARLY else Status.MAX_EVALUATIONS
    note = f"EP's estimate of the log evidence is {found.log_evidence:.4f} nats, after {found.rounds} rounds."
    settings = {**judged.settings, "method": "expectation propagation", "log_evidence": found.log_evidence, **more}
    result = replace(
        judged,
        status=status if np.isfinite(judged.bound) else judged.status,
        message=f"{status.message} {note}",
        settings=settings,
        seconds=time.perf_counter() - began,
    )
    return told(result, throw)


class _Found(NamedTuple):
    mean: np.ndarray
    values: np.ndarray  # of the precision
    log_evidence: float
    rounds: int
    change: float  # that a further round would make, in standard deviations
    moving: list[Sites]
    sites: list[Gaussians]

    def dense(self, pattern: Pattern) -> np.ndarray:
        """The covariance, written out."""
        whole = factor(pattern, self.values)
        assert whole is not None
        return whole.solve(np.eye(pattern.dim))

    def posterior(self, pattern: Pattern) -> Any:
        """As `assess` takes it."""
        if pattern.dim > _MOST_DENSE:
            return SparseGaussian(self.mean, self.values, pattern)  # pyright: ignore
        covariance = self.dense(pattern)
        return self.mean, 0.5 * (covariance + covariance.T)


def _propagate(terms: list[Sites], pattern: Pattern, point: np.ndarray, given: Any) -> _Found:
    fixed_precision, fixed_shift, constant = np.zeros(pattern.size), np.zeros(len(point)), 0.0
    for term in terms:
        if term.exact is not None:
            term.add(term.exact[0], fixed_precision, fixed_shift)
            constant += term.exact[1]
    moving = [term for term in terms if term.exact is None]
    sites, damping = [first_sites(term, point, given) for term in moving], _DAMPING
    last, best, waited, rounds, wanted = None, np.inf, 0, 0, None
    while rounds < _MOST_ROUNDS:
        rounds += 1
        precision, shift = fixed_precision.copy(), fixed_shift.copy()
        for term, own in zip(moving, sites, strict=True):
            term.add(own, precision, shift)
        whole = factor(pattern, precision) if np.isfinite(precision).all() else None
        if whole is None:
            if last is None or wanted is None or damping < _LEAST_DAMPING:
                break
            damping *= 0.5  # the step was too long: a shorter one from where it began
            sites = _between(last.sites, wanted, damping)
            continue
        mean, entries = whole.solve(shift), whole.inverse
        found = [renewed(term, own, mean, entries, given) for term, own in zip(moving, sites, strict=True)]
        log_normaliser = 0.5 * shift @ mean - 0.5 * whole.log_determinant + 0.5 * len(point) * _LOG_TWO_PI
        total = float(constant + log_normaliser + sum(one.log_scale.sum() for one in found))
        change = max((one.change for one in found), default=0.0)
        last = _Found(mean, precision, total, rounds, change, moving, sites)
        if change < _AT_REST:
            break
        best, waited = (change, 0) if change < best else (best, waited + 1)
        if waited >= _PATIENCE:
            damping, waited = max(0.7 * damping, _LEAST_DAMPING), 0
        wanted = [one.wanted for one in found]
        sites = _between(sites, wanted, damping)
    if last is None:
        nothing = np.full(len(point), np.nan)
        return _Found(nothing, fixed_precision, np.nan, rounds, np.inf, moving, sites)
    return last._replace(rounds=rounds)


def _between(sites: list[Gaussians], wanted: list[Gaussians], share: float) -> list[Gaussians]:
    step = lambda old, new: old + share * (new - old)
    return [Gaussians(*(step(*both) for both in zip(*pair, strict=True))) for pair in zip(sites, wanted, strict=True)]
