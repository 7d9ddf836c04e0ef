"""Solve with a curvature that is only known by its products: conjugate gradients."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Solution(NamedTuple):
    """Where conjugate gradients ended."""

    vector: np.ndarray
    n_products: int
    converged: bool
    definite: bool  # no direction of negative curvature was met


def solve(
    times: Callable[[np.ndarray], np.ndarray], right: np.ndarray, *, tolerance: float, max_products: int
) -> Solution:
    """x with A x = right, to a residual of `tolerance` relative to the right-hand side.

    It ends early at a direction in which A is not positive; what was reached until then is returned.
    """
    x, residual = np.zeros_like(right), right.copy()
    direction = residual.copy()
    square = float(residual @ residual)
    enough = tolerance**2 * square
    for count in range(max_products):
        if square <= enough:
            return Solution(x, count, converged=True, definite=True)
        image = times(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:
            return Solution(x, count + 1, converged=False, definite=False)
        x = x + (square / curvature) * direction
        residual = residual - (square / curvature) * image
        before, square = square, float(residual @ residual)
        direction = residual + (square / before) * direction
    return Solution(x, max_products, converged=square <= enough, definite=True)
