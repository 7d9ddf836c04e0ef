"""Solve with a curvature that is only known by its products: conjugate gradients, many right-hand sides side by side."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Solution(NamedTuple):
    """Where conjugate gradients ended."""

    vector: np.ndarray
    residual: np.ndarray  # the right-hand side minus A times the vector
    converged: bool
    definite: bool  # no direction of negative curvature was met


def solve(
    times: Callable[[np.ndarray], np.ndarray], right: np.ndarray, *, tolerance: float, max_products: int
) -> Solution:
    """x with A x = right, to a residual of `tolerance` relative to the right-hand side.

    It ends early at a direction in which A is not positive; what was reached until then is returned.
    """
    one = lambda rows: times(rows[0])[None]
    return solve_all(one, right[None], width=1, tolerance=tolerance, max_products=max_products)[0]


def solve_all(
    times: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    *,
    width: int,
    tolerance: float,
    max_products: int,
    tell: Callable[[int], None] = lambda n_ended: None,
) -> list[Solution]:
    """The same for every row of `right`.

    `times` takes rows, always `width` of them: when one has ended, the next takes its place, so that no product waits
    for the slowest. `tell` hears how many have ended.
    """
    waiting, ended = _Queue(right), {}
    owner, count = np.full(width, -1), np.zeros(width, int)  # the right-hand side in each place, and its products
    x, residual, direction = np.zeros((3, width, right.shape[1]))
    square, enough = np.zeros((2, width))
    while True:
        for place in np.flatnonzero(owner < 0):
            owner[place], count[place] = waiting.next(ended), 0
            x[place] = 0.0
            residual[place] = direction[place] = 0.0 if owner[place] < 0 else right[owner[place]]
            square[place] = residual[place] @ residual[place]
            enough[place] = tolerance**2 * square[place]
        tell(len(ended))
        if (owner < 0).all():
            return [ended[row] for row in range(len(right))]
        image, at_work = times(direction), owner >= 0
        curvature = np.sum(direction * image, axis=1)
        positive, count = curvature > 0.0, count + 1
        step = np.divide(square, curvature, out=np.zeros(width), where=positive)[:, None]
        x, residual, before = x + step * direction, residual - step * image, square
        square = np.sum(residual**2, axis=1)
        direction = residual + np.divide(square, before, out=np.zeros(width), where=before > 0.0)[:, None] * direction
        for place in np.flatnonzero(at_work & (~positive | (square <= enough) | (count >= max_products))):
            converged, definite = bool(positive[place] & (square[place] <= enough[place])), bool(positive[place])
            ended[int(owner[place])] = Solution(x[place].copy(), residual[place].copy(), converged, definite)
            owner[place] = -1


class _Queue:
    """Right-hand sides that wait for a place."""

    def __init__(self, right: np.ndarray):
        self.right, self.rows = right, iter(range(len(right)))

    def next(self, ended: dict[int, Solution]) -> int:
        """The next that is not solved by zero; -1 if there is none."""
        for row in self.rows:
            if self.right[row].any():
                return row
            ended[row] = Solution(np.zeros_like(self.right[row]), self.right[row], converged=True, definite=True)
        return -1
