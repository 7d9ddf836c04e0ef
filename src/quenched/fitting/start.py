"""Where to begin: chosen by the bound, not by the density.

Two candidates from every start. The *mode* with its curvature is best for posteriors near a Gaussian, however badly
scaled. A *short diagonal fit* of the bound with a few broad draws is not fooled by a density that rises without bound
(centred hierarchical models) nor by a narrow wrong mode. The candidate with the higher bound on the same draws wins.
The short fit is left out when the density was concave all the way to the mode and the bound there is close to the
Laplace evidence: then there is nothing to be fooled by.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.draws import Draws, Purpose, make, stream
from quenched.execute import Expired
from quenched.families import Diagonal, Family, Member, Role, factor_of_inverse, roles
from quenched.fitting.ascent import Limits
from quenched.fitting.blame import blame_draws, blame_start
from quenched.fitting.drive import Driver, Entries
from quenched.fitting.leading import along_curvature
from quenched.fitting.newton import Mode, Search
from quenched.fitting.rows import put, repeated, rows
from quenched.objective import Totals
from quenched.targets import Hyper

MAX_HESSIAN_DIM = 1500  # beyond, a dense Hessian costs more than it gives
_DRAWS_OF_SHORT_FIT = 16
_LONGEST_SHORT_FIT = 60  # evaluations of one that is still rising and may win
_NEAR = 0.05  # nats that are left: near enough to begin there
_SHORT_FIT = Limits(
    gradient_tolerance=1e-2, max_evaluations=_LONGEST_SHORT_FIT, whiten_every=_LONGEST_SHORT_FIT, nats=_NEAR
)
_MAX_SHRINKS = 12


class Starts(NamedTuple):
    """Posteriors to start from, in rows."""

    posterior: Member
    hyper: Hyper
    worth: np.ndarray  # the bound on the draws of the fit; minus infinity where no start was found
    factor: np.ndarray | None  # of the target's covariance near its mode, where the family cannot hold all of it
    factored: np.ndarray  # which have a factor: those that start at their mode
    known: list[Totals | None]
    refusals: dict[int, str]  # why there is no start, by row

    @property
    def found(self) -> np.ndarray:
        return np.isfinite(self.worth)


class Starter:
    """Finds the starts of some entries: problems, each with a point."""

    def __init__(self, driver: Driver, family: Family, draws: Draws, seed: int, index: np.ndarray, points: np.ndarray):
        self.driver, self.family, self.draws, self.seed = driver, family, draws, seed
        self.index, self.points = index, points
        problem, n = driver.batch.problem, len(index)
        self.sizes, self.dim, self.hyper = problem.space.sizes, problem.dim, repeated(problem.hyper, n)
        grouped = family.groups(self.sizes) is not None and self.dim <= MAX_HESSIAN_DIM
        self.starts = Starts(
            posterior=self._isotropic(np.arange(n), 1.0),
            hyper=repeated(problem.hyper, n),
            worth=np.full(n, -np.inf),
            factor=np.zeros((n, self.dim, self.dim)) if grouped else None,
            factored=np.zeros(n, bool),
            known=[None] * n,
            refusals={},
        )

    def best(self) -> Starts:
        """The mode or the short fit of each, whichever has the higher bound."""
        suspect = np.arange(len(self.index))
        posterior, hyper = rows((self.starts.posterior, self.hyper), 0)
        self.driver.prepare(int(self.index[0]), posterior, hyper, self.draws)
        if self.dim <= MAX_HESSIAN_DIM:
            suspect = self._at_modes()
        if len(suspect) and not (self.driver.stopped and self.starts.found.all()):
            try:
                self._at_short_fits(suspect)
                if self.family.directions(self.dim) and self.driver.explains:
                    self._along_curvature(suspect)
            except Expired:
                if not self.starts.found.any():
                    raise
        left = np.flatnonzero(~self.starts.found)
        left = left[[place not in self.starts.refusals for place in left]]
        if len(left) and self.driver.explains and not (self.driver.watch.overdue and self.starts.found.any()):
            self._at_points(left, 1.0)
        return self.starts

    def plain(self, scale: float) -> Starts:
        """The points with one standard deviation for all."""
        self._at_points(np.arange(len(self.index)), scale)
        return self.starts

    def unjudged(self, scale: float) -> Starts:
        """The same, for a method that looks where it begins itself; only that the points are sound."""
        starts = self.starts._replace(posterior=self._isotropic(np.arange(len(self.index)), scale))
        for place, point in enumerate(self.points):
            problem = self.driver.batch.one(int(self.index[place]))
            at = problem.executor(1).evaluate(point[None], np.ones(1), problem.data, problem.hyper.free)
            value, gradient = float(at.values[0]), np.asarray(at.gradients[0])
            if np.isfinite(value) and np.isfinite(gradient).all():
                starts.worth[place] = value
            else:
                self._refuse(place, value, gradient)
        return starts

    def _entries(self, places: np.ndarray, posterior: Member, hyper: Hyper) -> Entries:
        return Entries(self.index[places], posterior, hyper, self.starts.worth[places])

    def _at_modes(self) -> np.ndarray:
        """Stand at the modes of those that have one; answers with those that may have been fooled."""
        driver = self.driver
        driver.watch.say("looking for a start")
        first = driver.expand(self.index, self.points, self.hyper)
        for place in np.flatnonzero(~first.sound):
            self._refuse(place, first.value[place], first.gradient[place])
        curved = np.flatnonzero(first.finite)
        fooled = np.zeros(0, int)
        if len(curved):
            at, hyper = rows((first, self.hyper), curved)
            begun, found = driver.modes(self.index[curved], at, hyper, Search(tolerance=_NEAR))
            curved = curved[begun]
            fooled = curved[~to_be_trusted(found, self._stand_at(curved, found))]
        return np.concatenate([np.flatnonzero(first.sound & ~first.finite), fooled])

    def _refuse(self, place: Any, value: Any, gradient: np.ndarray) -> None:
        why = ""
        if self.driver.explains:
            problem = self.driver.batch.one(int(self.index[place]))
            why = blame_start(problem, self.points[place], float(value), gradient)
        self.starts.refusals[int(place)] = why

    def _stand_at(self, places: np.ndarray, found: Mode) -> np.ndarray:
        starts = self.starts
        posterior = self.family.member(found.point, found.precision, self.sizes)
        self._stand(places, posterior, found.hyper)
        if starts.factor is not None:
            starts.factor[places] = factor_of_inverse(found.precision)
            starts.factored[places] = True
        return starts.worth[places]

    def _stand(self, places: np.ndarray, posterior: Member, hyper: Hyper, *, profile: bool = True) -> None:
        """Put candidates where they are better than what there is, on the draws of the fit."""
        starts = self.starts
        judged = self.driver.judge(self._entries(places, posterior, hyper), self.draws, profile=profile)
        worth = np.where(np.isfinite(judged.bound) & judged.finite, judged.bound, -np.inf)
        better = np.flatnonzero(worth > starts.worth[places])
        values = (posterior, judged.hyper, worth, np.zeros(len(places), bool))
        own = (starts.posterior, starts.hyper, starts.worth, starts.factored)
        put(own, places[better], rows(values, better))
        for place in better:
            starts.known[places[place]] = None if judged.totals is None else judged.totals[place]

    def _at_short_fits(self, places: np.ndarray) -> None:
        """Fit means and standard deviations with a few broad draws, and stand there where that is better."""
        groups = Diagonal().groups(self.sizes)
        draws = make("matched", _DRAWS_OF_SHORT_FIT, self.dim, stream(self.seed, Purpose.SHORT_FIT), groups)
        places, broad = self._finite_everywhere(places, draws, 1.0)
        if not len(places):
            return
        moves = np.concatenate(
            [roles(rows(broad.posterior, 0)) != Role.CORRELATION, np.ones(self.hyper.free.shape[1], bool)]
        )
        limits = _SHORT_FIT._replace(moves=moves, has_rival=True)
        found = self.driver.short_fits(broad, draws, limits, self.starts.worth[places])
        # What a fit to few draws is worth on its own is more than it is worth on others.
        begun = np.flatnonzero(found.begun & (found.bound > self.starts.worth[places]))
        if len(begun):
            self._stand(places[begun], *rows((found.posterior, found.hyper), begun))

    def _along_curvature(self, places: np.ndarray) -> None:
        """From where they stand, stretched along the directions in which the target departs most from independence."""
        for place in places[self.starts.found[places]]:
            posterior, hyper = rows((self.starts.posterior, self.starts.hyper), place)
            problem = self.driver.batch.one(int(self.index[place]))
            member, n_gradients = along_curvature(problem, self.family, posterior, hyper, self.seed)
            self.driver.costs.add(int(self.index[place]), n_gradients)
            if all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(member)):
                self._stand(np.array([place]), *repeated((member, hyper), 1))

    def _at_points(self, places: np.ndarray, scale: float) -> None:
        places, entries = self._finite_everywhere(places, self.draws, scale)
        if len(places):
            self._stand(places, entries.posterior, entries.hyper, profile=False)

    def _finite_everywhere(self, places: np.ndarray, draws: Draws, scale: float) -> tuple[np.ndarray, Entries]:
        """One standard deviation for all, shrunk until the target and its gradient are finite at every draw."""
        entries = self._entries(places, self._isotropic(places, scale), rows(self.hyper, places))
        known: list[Totals | None] = [None] * len(places)
        left = np.arange(len(places))
        for _ in range(_MAX_SHRINKS):
            judged = self.driver.judge(entries.some(left), draws)
            for place, totals in zip(left, judged.totals or (), strict=False):
                known[place] = totals
            left = left[~judged.finite]
            if not len(left):
                break
            scale /= 4.0
            put(entries.posterior, left, self._isotropic(places[left], scale))
        for place in left:
            self._refuse_draws(places[place], rows(entries.posterior, place), draws)
        fine = np.setdiff1d(np.arange(len(places)), left)
        return places[fine], entries._replace(known=known).some(fine)

    def _refuse_draws(self, place: Any, posterior: Member, draws: Draws) -> None:
        if np.isfinite(self.starts.worth[place]):
            return  # it has another start
        why = ""
        if self.driver.explains:
            why = blame_draws(self.driver.batch.one(int(self.index[place])), self.points[place], posterior, draws)
        self.starts.refusals[int(place)] = why

    def _isotropic(self, places: np.ndarray, scale: float) -> Member:
        return self.family.isotropic(self.points[places].copy(), np.full((len(places), self.dim), scale), self.sizes)


def to_be_trusted(mode: Mode, worth: np.ndarray) -> np.ndarray:
    """Whether the bound at a mode shows that there was nothing to be fooled by."""
    with np.errstate(invalid="ignore"):
        enough = worth > mode.evidence() - 0.05 * mode.point.shape[-1] - 0.1
    return mode.concave & mode.converged & enough
