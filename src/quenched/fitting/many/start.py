"""Where many fits begin: the two candidates of `Starter`, the mode and the short diagonal fit, in lanes."""

from functools import partial
from typing import NamedTuple

import numpy as np

from quenched.draws import Draws, make, stream
from quenched.families import Diagonal, Member, factors_of_inverse
from quenched.fitting.many.ascents import Limits, Plan, ascents
from quenched.fitting.many.bound import Chunks, cut_up, judge
from quenched.fitting.many.modes import Modes, expand, modes
from quenched.fitting.many.rows import put, repeated, rows
from quenched.fitting.many.scene import Scene
from quenched.fitting.mode import Mode
from quenched.fitting.start import (
    LONGEST_SHORT_FIT,
    MAX_HESSIAN_DIM,
    MAX_SHRINKS,
    SHORT_FIT_TOLERANCE,
    to_be_trusted,
    without_correlations,
)
from quenched.objective import Coordinates
from quenched.optimise import LBFGS
from quenched.problem import SMALL_CHUNK
from quenched.targets import Hyper


class Starts(NamedTuple):
    """Posteriors to start from, in rows of all problems."""

    posterior: Member
    hyper: Hyper
    worth: np.ndarray  # the bound on the draws of the fit; minus infinity where no start was found
    factor: np.ndarray | None  # of the target's covariance near its mode, where the family cannot hold all of it
    factored: np.ndarray  # which have a factor: those that start at their mode
    n_evaluations: np.ndarray


class Starters:
    """Finds the starts of many problems."""

    def __init__(self, scene: Scene, draws: Draws):
        self.scene, self.first = scene, draws.n
        self.chunks = cut_up(draws, draws.n, scene.points_at_a_time)
        n, dim = scene.n, scene.problem.dim
        grouped = scene.family.groups(scene.sizes) is not None
        self.starts = Starts(
            posterior=scene.isotropic(np.arange(n), 1.0),
            hyper=repeated(scene.problem.hyper, n),
            worth=np.full(n, -np.inf),
            factor=np.zeros((n, dim, dim)) if grouped and dim <= MAX_HESSIAN_DIM else None,
            factored=np.zeros(n, bool),
            n_evaluations=np.zeros(n, int),
        )

    def begin(self, index: np.ndarray) -> Starts:
        """The mode or the short fit of each of these problems, whichever has the higher bound."""
        suspect = index
        if self.scene.problem.dim <= MAX_HESSIAN_DIM:
            suspect = self._at_modes(index)
        if len(suspect) and not self.scene.stopped:
            self._at_short_fits(suspect)
        return self.starts

    def _at_modes(self, index: np.ndarray) -> np.ndarray:
        """Stand at the modes of those that have one; answers with those that may have been fooled."""
        scene, starts, program = self.scene, self.starts, self.scene.programs.inside.second_order
        look = lambda points, hyper, data: expand(program, points, data, hyper)
        first = scene.apply(index, look, scene.points[index], rows(scene.hyper, index))
        cost = scene.problem.executor(1).second_order_cost(scene.problem.dim)
        starts.n_evaluations[index] += cost
        sound = np.isfinite(first.value) & np.isfinite(first.gradient).all(axis=1)
        curved = sound & np.isfinite(first.hessian).all(axis=(1, 2))
        trusted = ~sound  # nothing can be done for these here
        chosen = index[curved]
        if not len(chosen):
            return index[~trusted]
        inputs = (rows(first, curved), rows(scene.hyper, chosen))
        done = scene.drive(modes(program, scene.problem.form), chosen, inputs, "looking for a start")
        chosen, found = chosen[done.begun], rows(done.reports, done.begun)
        starts.n_evaluations[chosen] += cost * (found.count - 1)
        worth = self._stand_at(chosen, found)
        fooled = [not to_be_trusted(_one(found, i), worth[i]) for i in range(len(chosen))]
        return np.concatenate([index[sound & ~curved], chosen[np.array(fooled, bool)]])

    def _stand_at(self, index: np.ndarray, found: Modes) -> np.ndarray:
        starts = self.starts
        member = self.scene.family.members(found.point, found.precision, self.scene.sizes)
        worth, hyper = self._judged(index, member, found.hyper)
        put((starts.posterior, starts.hyper, starts.worth), index, (member, hyper, worth))
        if starts.factor is not None:
            starts.factor[index] = factors_of_inverse(found.precision)
            starts.factored[index] = True
        return worth

    def _judged(self, index: np.ndarray, member: Member, hyper: Hyper) -> tuple[np.ndarray, Hyper]:
        """What candidates are worth on the draws of the fit; minus infinity if their gradient is not finite."""
        scene = self.scene
        program = partial(judge, scene.programs.inside.evaluate, scene.problem.form, self.chunks)
        found = scene.apply(index, program, member, hyper)
        self.starts.n_evaluations[index] += int(self.chunks.n)
        return np.where(np.isfinite(found.bound) & found.finite, found.bound, -np.inf), found.hyper

    def _at_short_fits(self, index: np.ndarray) -> None:
        """Fit means and standard deviations with a few broad draws, and stand there where that is better."""
        scene, starts = self.scene, self.starts
        groups = Diagonal().groups(scene.sizes)
        draws = make("matched", SMALL_CHUNK, scene.problem.dim, stream(scene.seed, 3), groups)
        chunks = cut_up(draws, self.first, scene.points_at_a_time)
        index, broad = self._finite_everywhere(index, chunks)
        if not len(index):
            return
        done = self._short_fits(index, broad, chunks)
        index, found = index[done.begun], rows(done.reports, done.begun)
        starts.n_evaluations[index] += draws.n * found.count
        worth, hyper = self._judged(index, found.posterior, found.hyper)
        better = worth > starts.worth[index]
        values = (found.posterior, hyper, worth, np.zeros(len(index), bool))
        put((starts.posterior, starts.hyper, starts.worth, starts.factored), index[better], rows(values, better))

    def _short_fits(self, index: np.ndarray, broad: Member, chunks: Chunks):
        scene, free = self.scene, self.scene.hyper.free[index]
        moves = without_correlations(rows(broad, 0), free.shape[1]) > 0
        limits = Limits(SHORT_FIT_TOLERANCE, LONGEST_SHORT_FIT, LONGEST_SHORT_FIT, moves, short=True)
        plan = Plan(scene.programs.inside.evaluate, scene.problem.form, LBFGS())
        inputs = (Coordinates(broad, free), rows(scene.hyper, index), self.starts.worth[index])
        return scene.drive(ascents(plan, limits, chunks, scene.problem.noise), index, inputs, "short fits")

    def _finite_everywhere(self, index: np.ndarray, chunks: Chunks) -> tuple[np.ndarray, Member]:
        """One standard deviation for all, shrunk until the target and its gradient are finite at every draw."""
        scene, broad = self.scene, self.scene.isotropic(index, 1.0)
        program = partial(judge, scene.programs.inside.evaluate, scene.problem.form, chunks)
        fine, scale = np.zeros(len(index), bool), 1.0
        for _ in range(MAX_SHRINKS):
            left = np.flatnonzero(~fine)
            found = scene.apply(index[left], program, rows(broad, left), rows(scene.hyper, index[left]))
            self.starts.n_evaluations[index[left]] += int(chunks.n)
            fine[left] = found.finite
            if fine.all():
                break
            scale /= 4.0
            put(broad, np.flatnonzero(~fine), scene.isotropic(index[~fine], scale))
        return index[fine], rows(broad, fine)


def _one(found: Modes, index: int) -> Mode:
    """One of many modes."""
    value, converged, concave = float(found.value[index]), bool(found.converged[index]), bool(found.concave[index])
    return Mode(found.point[index], found.precision[index], value, rows(found.hyper, index), converged, concave)
