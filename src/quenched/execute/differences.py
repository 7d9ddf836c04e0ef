"""Functions that give a value and no gradient: simulators. Derivatives are differences of values at common draws.

The steps follow the cloud of points at which a gradient is asked for: along its own axes, a small part of its spread. A bound
is a mean over these points, so that what it cannot see within such a step does not matter to it, and a simulator with a
little noise of its own is not mistaken for a steep one.
"""

import numpy as np

from quenched.execute.host import Host

_STEP = 0.01  # of a gradient, in standard deviations of the points
_HESSIAN_STEP = 0.03  # the same of second differences, whose rounding error is larger
_FEWEST = 3  # points per coordinate from which their axes are known


class ValuesOnly(Host):
    """Calls a function that returns a value. One gradient takes two calls per coordinate besides the value."""

    def gradients(self, rows, data):
        axes = _STEP * _axes(rows)
        n, dim = rows.shape
        steps = np.concatenate([np.zeros((1, dim)), axes, -axes])
        values = self.at((rows[:, None] + steps).reshape(-1, dim), data)[0].reshape(n, -1)
        ahead, behind = np.split(values[:, 1:], 2, axis=1)
        return values[:, 0], np.linalg.solve(axes, 0.5 * (ahead - behind).T).T

    def second_order(self, point, spread, data, free):
        dim = len(point)
        steps = _HESSIAN_STEP * np.diag(spread)
        first, second = np.triu_indices(dim, 1)
        moves = np.concatenate(
            [np.zeros((1, dim)), steps, -steps, steps[first] + steps[second], -steps[first] - steps[second]]
        )
        values = self.at(point + moves, data)[0]
        here, ahead, behind, both, neither = np.split(values, np.cumsum([1, dim, dim, len(first)]))
        curves = np.diag(ahead - 2.0 * here + behind)
        # f(x+a+b) + f(x−a−b) − 2 f(x) is the curvature along a + b: that of a, of b, and twice the mixed one.
        along = both - 2.0 * here + neither
        curves[first, second] = curves[second, first] = 0.5 * (along - np.diag(curves)[first] - np.diag(curves)[second])
        sizes = _HESSIAN_STEP * spread
        return float(here[0]), 0.5 * (ahead - behind) / sizes, curves / np.outer(sizes, sizes)

    def second_order_cost(self, dim):
        return -(-(1 + dim + dim * dim) // (1 + 2 * dim))  # in gradients, each of 1 + 2 dim calls


def _axes(rows: np.ndarray) -> np.ndarray:
    """The axes of a cloud of points, in rows; of few points, those of the coordinates."""
    n, dim = rows.shape
    spread = rows.std(axis=0) if n > 1 else np.zeros(dim)
    spread = np.where(spread > 0, spread, 0.1 * np.maximum(np.abs(rows).mean(axis=0), 1.0)) if n else np.ones(dim)
    if n < _FEWEST * dim:
        return np.diag(spread)
    scaled = (rows - rows.mean(axis=0)) / spread
    variances, basis = np.linalg.eigh(scaled.T @ scaled / n)
    return (basis * np.sqrt(np.maximum(variances, 1e-12))).T * spread
