"""How far the ascent stopped below the top of the bound: the Newton decrement."""

from typing import NamedTuple

import numpy as np

from quenched.diagnostics.conjugate_gradients import solve
from quenched.diagnostics.curvature import Curvature
from quenched.families import Member, ask


class OptimisationError(NamedTuple):
    """What a further Newton step would do."""

    nats: float  # the bound would rise by this much
    distance: float  # the means would move by this many posterior standard deviations, at the most
    maximum: bool  # whether the bound curves downwards here
    top: Member | None = None  # where that step leads, if it does


def optimisation_error(curvature: Curvature) -> OptimisationError:
    """½ gᵀ H⁻¹ g and the step H⁻¹ g, by conjugate gradients in whitened coordinates."""
    here = np.zeros(curvature.size)
    gradient = curvature.gradient(here)
    step = solve(curvature.times, gradient, tolerance=0.05, max_products=30)
    before, after = (curvature.coordinates.read(vector)[0] for vector in (here, step.vector))
    moved = np.abs(np.asarray(after.mean) - np.asarray(before.mean)) / np.sqrt(np.asarray(ask(before, "variance")))
    nats, top = 0.5 * float(gradient @ step.vector), after if step.definite else None
    return OptimisationError(nats, float(moved.max()), step.definite, top)
