"""How the bound is raised: `Joint`, the default, and `Alternating`, Algorithm 1 of the paper."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np

from quenched.families import Member, factor_of_inverse
from quenched.fitting.ascent import Ascent, Watch, ascend, climb
from quenched.fitting.start import Start, Starter
from quenched.objective import Objective
from quenched.optimise import LBFGS, Minimiser, ScaledConjugateGradients
from quenched.outcome import Status
from quenched.targets import Hyper

Record = Callable[[Member, Hyper, float], Any]  # told of the end of a round


class Method(eqx.Module):
    """Raises the bound on one set of draws."""

    follows_draws: ClassVar[bool] = True  # its answer depends on the draws, so that more of them may be needed

    @abstractmethod
    def begin(self, starter: Starter, point: np.ndarray) -> Start:
        """The posterior to start from, given a starting point on the real line."""

    @abstractmethod
    def run(self, objective: Objective, start: Start, watch: Watch, record: Record) -> Ascent:
        """Ascend from a start; call `record` at the end of every round but the last."""


class Joint(Method):
    """Mean, scale and hyperparameters together, in whitened coordinates, the precisions profiled out.

    Parameters
    ----------
    minimiser
        L-BFGS unless told otherwise.
    gradient_tolerance
        Largest component of the gradient in whitened coordinates: about the distance from the optimum in posterior
        standard deviations. It is relaxed to what the precision of the log density allows, and a hundredfold for a
        posterior that is not Gaussian.
    max_evaluations
        Of the bound, on one set of draws.
    whiten_every
        Evaluations after which the coordinates are renewed, if the fit has moved away from their origin.
    """

    minimiser: Minimiser = LBFGS()
    gradient_tolerance: float = 1e-5
    max_evaluations: int = 1000
    whiten_every: int = 15

    def begin(self, starter, point):
        return starter.best_candidate(point)

    def run(self, objective, start, watch, record):
        return ascend(
            objective,
            start.posterior,
            start.hyper,
            self.minimiser,
            gradient_tolerance=self.gradient_tolerance * (1.0 if start.posterior.affine else 100.0),
            max_evaluations=self.max_evaluations,
            whiten_every=self.whiten_every,
            watch=watch,
            known=start.totals,
            mean_factor=None if start.precision is None else factor_of_inverse(start.precision),
        )


class Alternating(Method):
    """Algorithm 1 of the paper: J steps on the mean, J on the scale, then the hyperparameters, until nothing is gained.

    Parameters
    ----------
    minimiser
        Scaled conjugate gradients, as in the paper.
    steps
        J, steps of the minimiser on the mean and then on the scale.
    tolerance
        The rise of the bound, in nats, below which a round was the last.
    max_rounds
        MaxIter of the paper.
    initial_scale
        c in L = c I; None starts where `Joint` would.
    """

    minimiser: Minimiser = ScaledConjugateGradients()
    steps: int = 10
    tolerance: float = 1e-4
    max_rounds: int = 1000
    initial_scale: float | None = 0.1

    def begin(self, starter, point):
        if self.initial_scale is None:
            return starter.best_candidate(point)
        return starter.plain(point, self.initial_scale)

    def run(self, objective, start, watch, record):
        posterior, hyper, bound = start.posterior, start.hyper, start.bound
        record(posterior, hyper, bound)
        count, status, steepness = 0, None, float("inf")
        rounds = 0
        while status is None:
            before, note = bound, ""
            for part in ("mean", "scale", "free") if hyper.free.size else ("mean", "scale"):
                ascent = climb(
                    objective,
                    posterior,
                    hyper,
                    self.minimiser,
                    active_coordinates(posterior, hyper, part),
                    max_steps=self.steps,
                    watch=watch,
                )
                posterior, hyper, count = ascent.posterior, ascent.hyper, count + ascent.n_objective_evaluations
                steepness, note = ascent.steepness, ascent.note or note
                if ascent.status is not Status.CONVERGED:
                    status = ascent.status
            # One evaluation serves the closed forms and the bound after them.
            bound, hyper, _ = objective.bound(posterior, hyper, profile=True)
            count, rounds = count + 1, rounds + 1
            if status is None and not bound - before >= self.tolerance:
                status = Status.CONVERGED if bound == bound else Status.NOT_FINITE
                if note:  # the round ended at a wall of broken gradients, not at an optimum
                    status = Status.NO_ASCENT
            elif status is None and rounds >= self.max_rounds:
                status = Status.MAX_EVALUATIONS
            if status is None:
                record(posterior, hyper, bound)
        return Ascent(posterior, hyper, bound, status, steepness, count, note if status is Status.NO_ASCENT else "")


def active_coordinates(posterior: Member, hyper: Hyper, part: str) -> np.ndarray:
    """One for the coordinates of the mean, of the scale, or of the free hyperparameters; zero for the rest."""

    def mark(path, leaf):
        is_mean = any(getattr(key, "name", None) == "mean" for key in path)
        return np.full(np.size(leaf), float(part == ("mean" if is_mean else "scale")))

    marked = jax.tree.leaves(jax.tree_util.tree_map_with_path(mark, posterior))
    return np.concatenate([*marked, np.full(hyper.free.size, float(part == "free"))])
