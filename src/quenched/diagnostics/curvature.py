"""The curvature of the bound in whitened coordinates, one direction at a time."""

import numpy as np

from quenched.draws import antithetic
from quenched.families import Member, ask, factor_of_inverse
from quenched.fitting import Expander
from quenched.objective import Coordinates, Objective, Problem, Slope, place
from quenched.targets import Hyper

_MAX_HESSIAN_DIM = 500  # beyond, the mean is left as it is
_MAX_POINTS, _MAX_COLUMNS = 16, 2000  # points at which the curvature is taken, and columns of it in all


class Curvature:
    """Minus the Hessian of a bound at a posterior, as a linear map.

    A product is a central difference of two gradients. Coordinates are whitened, so one step size serves every problem
    and its error is near the square of the step; and the gradients are those that the fit has compiled already, which
    also serves functions that JAX cannot trace.

    Parameters
    ----------
    objective
        The bound on some draws.
    coordinates
        Their origin is where the curvature is taken.
    hyper
        Hyperparameters there.
    follow_hyper
        Whether the hyperparameters move with the posterior to where the bound is highest, or are held.
    """

    def __init__(self, objective: Objective, coordinates: Coordinates, hyper: Hyper, *, follow_hyper: bool = True):
        self.objective, self.coordinates, self.hyper = objective, coordinates, hyper
        self.follow_hyper = follow_hyper
        self.step = float(np.clip(objective.problem.noise, 1e-12, 1.0) ** (1.0 / 3.0))

    @property
    def size(self) -> int:
        """Coordinates that move."""
        return self.coordinates.size - (0 if self.follow_hyper else self.hyper.free.size)

    def slope(self, vector: np.ndarray) -> Slope:
        """The bound and its gradient at a vector of whitened coordinates."""
        whole = np.zeros(self.coordinates.size)
        whole[: self.size] = vector
        return self.objective.slope(self.coordinates, whole, self.hyper, profile=self.follow_hyper)[0]

    def gradient(self, vector: np.ndarray) -> np.ndarray:
        """Of the bound."""
        return np.asarray(self.slope(vector).gradient)[: self.size]

    def times(self, direction: np.ndarray) -> np.ndarray:
        """The curvature times a vector."""
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            return np.zeros_like(direction)
        ahead = direction * (self.step / length)
        return (self.gradient(-ahead) - self.gradient(ahead)) * (length / (2.0 * self.step))


def whitened(problem: Problem, posterior: Member, hyper: Hyper) -> Coordinates:
    """Coordinates with their origin at a posterior.

    A family that leaves out correlations does not whiten the mean. The curvature of the log joint does, averaged over a
    few points of the posterior: at the mean alone it can be far from typical.
    """
    if problem.dim > _MAX_HESSIAN_DIM or posterior.groups is None:
        return Coordinates(posterior, hyper.free)
    expander, spread = Expander(problem), np.sqrt(np.asarray(ask(posterior, "variance")))
    n = int(np.clip(_MAX_COLUMNS // problem.dim, 2, _MAX_POINTS)) // 2 * 2
    points = np.asarray(place(posterior, antithetic(n, problem.dim).points))
    expansions = [expander.expand(point, spread, hyper) for point in points]
    if not all(at.finite for at in expansions):
        return Coordinates(posterior, hyper.free)
    precision = np.mean([expander.joint(at, hyper)[2] for at in expansions], axis=0)
    return Coordinates(posterior, hyper.free, factor_of_inverse(precision))


def missed_spread(coordinates: Coordinates) -> np.ndarray:
    """By how much the correlations that a family leaves out widen each coordinate; ones where it leaves out none.

    Taken from the average curvature alone: the standard deviations of a Gaussian with that precision, over those of the
    family's best approximation of it.
    """
    reference, factor = coordinates.reference, coordinates.mean_factor
    if factor is None:
        return np.ones(reference.dim)
    root = np.linalg.inv(factor)
    precision, kept = root.T @ root, np.empty(reference.dim)
    for group in reference.groups or (range(reference.dim),):
        block = list(group)
        kept[block] = np.diag(np.linalg.inv(precision[np.ix_(block, block)]))
    return np.sqrt(np.sum(factor**2, axis=1) / kept)
