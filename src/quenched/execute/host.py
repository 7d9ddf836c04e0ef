"""NumPy functions that return value and gradient: called point by point, in this process."""

from collections.abc import Callable
from typing import Any

import numpy as np

from quenched.execute.executor import Evaluation, Executor

_STEP = 1e-4  # of a central difference, in standard deviations: error about 1e-8 relative


class Host(Executor):
    """Calls value_and_gradient(vector, data) on the host.

    A Hessian is made of central differences of the gradient, with steps that follow the scale of each coordinate.
    """

    def __init__(self, value_and_gradient: Callable[[np.ndarray, Any], tuple[float, np.ndarray]], chunk: int):
        self.value_and_gradient = value_and_gradient
        self.chunk = chunk

    def evaluate(self, points, counts, data, free):
        rows, used = np.asarray(points), np.asarray(counts) > 0
        values, gradients = np.zeros(len(rows)), np.zeros(rows.shape)
        for index in np.flatnonzero(used):
            values[index], gradients[index] = self.value_and_gradient(rows[index], data)
        return Evaluation(values, gradients, np.zeros(np.shape(free)))  # pyright: ignore

    value_cost = 1

    def values(self, points, data, free):
        rows = np.asarray(points)
        first = self.value_and_gradient(rows[0], data)[0]
        # Points that only fill up a chunk repeat the first, and a call may take long.
        others = [first if np.array_equal(row, rows[0]) else self.value_and_gradient(row, data)[0] for row in rows[1:]]
        return np.array([first, *others])

    def second_order(self, point, spread, data, free):
        columns = []
        for index, size in enumerate(_STEP * spread):
            step = np.zeros_like(point)
            step[index] = size
            ahead = self.value_and_gradient(point + step, data)[1]
            behind = self.value_and_gradient(point - step, data)[1]
            columns.append((ahead - behind) / (2.0 * size))
        return *self.value_and_gradient(point, data), np.array(columns)

    def second_order_cost(self, dim):
        return 1 + 2 * dim
