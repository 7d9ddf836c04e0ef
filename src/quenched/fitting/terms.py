"""The driver for sums of terms: frozen points in the few numbers that a term sees, and a precision that is sparse."""

import numpy as np

from quenched.draws import Purpose, TermDraws, generator
from quenched.families import SparseGaussian, kept_factor
from quenched.fitting.alone import Alone, summit_of
from quenched.fitting.drive import Entries, Judged, Record, Summit
from quenched.fitting.method import Method
from quenched.fitting.rows import stacked
from quenched.fitting.start import Starts
from quenched.fitting.variational_newton import (
    NewtonEnd,
    NewtonPoint,
    Stand,
    nats_left,
    point_of,
    stand_at,
    variational_newton,
)
from quenched.projected import ProjectedBound, structure_of
from quenched.results import Code

_WORTH = 0.01  # of the slack: what an ascent goes on for, where it is still to be gained
_AT_MOST = (2e-5, 1e-7)  # nats, and for each parameter: Newton steps are few near the top, so less is left than may be
_PRECISE = 1e-8  # nats, where it goes to the very top
_SPREADS = 4.0 ** -np.arange(8)  # standard deviations of all parameters that a start is tried with
# Of what nearly all rows see, such as the log sd of effects: wide, it would make the expected precision of all that it scales
# many times too large, and the first steps too short.
_NARROWER = 8.0
_CHECKED = 4e7  # numbers that the check may look at: rows and parameters times draws


class TermsAlone(Alone):
    """One entry after the other, as `Alone`; but bounds are projected, and raised by variational Newton."""

    _bound: ProjectedBound | None = None
    _begun: tuple[ProjectedBound, Stand] | None = None  # where a start stands, until it is raised

    def bound(self, problem: int, draws: TermDraws, *, skewed: bool = False) -> ProjectedBound:
        """The bound of a problem on some draws; the last one is kept."""
        own, last = self.batch.one(problem), self._bound
        if last is None or last.problem is not own or last.draws != draws or last.skewed != skewed:
            last = self._bound = ProjectedBound(own, draws, skewed=skewed)
        return last

    def start(self, index: np.ndarray, points: np.ndarray, draws: TermDraws) -> Starts:
        """At the given points, with the standard deviation for all under which the bound is highest."""
        self.watch.say("looking for a start")
        members, hypers, worth, refusals = [], [], [], {}
        for place, (problem, point) in enumerate(zip(index, points, strict=True)):
            bound, hyper = self.bound(int(problem), draws), self.batch.problem.hyper
            best, found, self._begun = None, -np.inf, None
            for spread in _SPREADS:
                values = np.zeros(bound.pattern.size)
                values[bound.pattern.diagonal] = spread**-2
                values[bound.pattern.diagonal[list(bound.pattern.dense)]] *= _NARROWER**2
                at = stand_at(bound, NewtonPoint(point, values, np.asarray(hyper.free)))
                if at is not None and at.bound > found:
                    best, found, self._begun = values, at.bound, (bound, at)
                elif best is not None:
                    break
            self._count(int(problem), bound)
            if best is None:
                refusals[place] = self._refusal(int(problem), point)
                best = values
            members.append(SparseGaussian(point, best, bound.pattern))
            hypers.append(hyper)
            worth.append(found)
        n = len(index)
        return Starts(stacked(members), stacked(hypers), np.array(worth), None, np.zeros(n, bool), [None] * n, refusals)

    def _refusal(self, problem: int, point: np.ndarray) -> str:
        from quenched.fitting.blame import blame_start

        own = self.batch.one(problem)
        executor = own.executor(1)
        found = executor.evaluate(point[None], np.ones(1), own.data, own.hyper.free)
        value, gradient = float(found.values[0]), np.asarray(found.gradients[0])
        if np.isfinite(value) and np.isfinite(gradient).all():
            return "start: the expected log density is not finite around it, however near; start elsewhere."
        return blame_start(own, point, value, gradient)

    def judge(self, entries, draws, *, profile=True):
        bounds, finite, promises = [], [], []
        for problem, posterior, hyper in self._each(entries):
            bound = self.bound(problem, draws, skewed=not posterior.affine)
            point = point_of(posterior, hyper)
            at = stand_at(bound, point._replace(factor=kept_factor(bound.pattern, point.values)))
            bounds.append(-np.inf if at is None else at.bound)
            finite.append(at is not None)
            random = generator(draws.seed, Purpose.TERMS)
            promises.append(np.inf if at is None else nats_left(bound, at, random))
            self._count(problem, bound)
        return Judged(np.array(bounds), entries.hyper, np.array(finite, bool), np.array(promises))

    def climb(self, entries: Entries, draws: TermDraws, method: Method, slack: float, record: Record | None) -> Summit:
        found: list[NewtonEnd] = []
        for problem, posterior, hyper in self._each(entries):
            bound = self.bound(problem, draws, skewed=not posterior.affine)
            enough = max(_WORTH * slack, _PRECISE)
            nats = min(enough, _AT_MOST[0] + _AT_MOST[1] * bound.pattern.dim)
            known = self._begun[1] if self._begun is not None and self._begun[0] is bound else None
            self._begun = None
            found.append(variational_newton(bound, posterior, hyper, nats, self.watch, enough, known))
            self._count(problem, bound, found[-1].n_bounds)
            if found[-1].code is Code.INTERRUPTED:
                self.interrupted = True
                break
        return summit_of(found, len(entries.index))

    def affordable(self, n: int) -> int:
        """Check draws of all parameters together: fewer where there are very many of them."""
        problem = self.batch.problem
        return int(np.clip(_CHECKED / (problem.n_rows + problem.dim), 64, n))

    def _count(self, problem: int, bound: ProjectedBound, bounds: int = 0) -> None:
        self.costs.add(problem, bound.n_evaluations, bounds)
        bound.n_evaluations = 0


def many_numbers(problem, draws: TermDraws) -> str:
    """A remark on terms that see many numbers; nothing if there are none."""
    sizes = [size for size in structure_of(problem).sizes if draws.draws_for(size) > draws.n]
    if not sizes:
        return ""
    return (
        f"{len(sizes)} {'term sees' if len(sizes) == 1 else 'terms see'} up to {max(sizes)} numbers a row and got "
        f"{draws.draws_for(max(sizes))} draws instead of {draws.n}."
    )
