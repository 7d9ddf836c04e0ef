"""NumPy functions on the host, called point by point: here, or wherever `calls` has them done."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quenched.execute.deadline import timed_call
from quenched.execute.executor import Evaluation, Executor
from quenched.interrupts import interrupts_at_once

_STEP = 1e-4  # of a central difference of gradients, in standard deviations: error about 1e-8 relative


@dataclass(frozen=True, eq=False)
class HostFunction:
    """A user's function of natural parameters, in three steps, of which the middle one may be done elsewhere."""

    natural: Callable[[np.ndarray], Any]  # the parameters at a vector on the real line
    call: Callable[[Any, Any], Any]  # the user's answer to (parameters, data); can be pickled if their function can
    read: Callable[
        [np.ndarray, Any, Any], tuple[float, np.ndarray]
    ]  # value and gradient, of (vector, parameters, answer)
    gives_gradient: bool = True
    batched: bool = False  # all three take many vectors at a time, as rows


class Calls(ABC):
    """Calls a user's function many times, and counts them."""

    count: int = 0

    @abstractmethod
    def __call__(self, call: Callable[[Any, Any], Any], many: Sequence[Any], data: Any) -> Iterable[Any]:
        """The answers to all parameters, in their order.

        Raises
        ------
        Exception
            What the function raised, with the place among `many` and the parameters.
        """


class InTurn(Calls):
    """One after the other, in this process."""

    def __call__(self, call, many, data):
        for place, parameters in enumerate(many):
            self.count += 1
            try:
                with interrupts_at_once(), timed_call():
                    answer = call(parameters, data)
            except Exception as error:
                error.add_note(where(place, len(many), parameters))
                raise
            yield answer


def where(place: int, n: int, parameters: Any) -> str:
    """Which call it was, in words."""
    return f"at draw {place} of {n}, with parameters {parameters!r}"


class Host(Executor):
    """Calls a function that returns value and gradient.

    A Hessian is made of central differences of the gradient, with steps that follow the scale of each coordinate.
    """

    value_cost = 1

    def __init__(self, function: HostFunction, chunk: int, calls: Calls):
        self.function, self.chunk, self.calls = function, chunk, calls

    def evaluate(self, points, counts, data, free):
        rows, used = np.asarray(points), np.asarray(counts) > 0
        values, gradients = np.zeros(len(rows)), np.zeros(rows.shape)
        values[used], gradients[used] = self.gradients(rows[used], data)
        return Evaluation(values, gradients, np.zeros(np.shape(free)))  # pyright: ignore

    def values(self, points, data, free):
        # Points that only fill up a chunk repeat the first, and a call may take long.
        rows = np.asarray(points)
        other = (rows != rows[0]).any(axis=1)
        other[0] = True
        found = self.at(rows[other], data)[0]
        return found[np.where(other, np.cumsum(other) - 1, 0)]

    def second_order(self, point, spread, data, free):
        steps = _STEP * np.diag(spread)
        values, gradients = self.gradients(np.concatenate([point[None], point + steps, point - steps]), data)
        ahead, behind = np.split(gradients[1:], 2)
        return float(values[0]), gradients[0], (ahead - behind) / (2.0 * _STEP * spread[:, None])

    def second_order_cost(self, dim):
        return 1 + 2 * dim

    def gradients(self, rows: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Values and gradients at some vectors."""
        return self.at(rows, data)

    def at(self, rows: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """What one call at each of some vectors tells: values, and gradients if the function gives them."""
        function = self.function
        if function.batched and len(rows):
            many = function.natural(rows)
            (answer,) = self.calls(function.call, [many], data)
            return function.read(rows, many, answer)  # pyright: ignore
        many = [function.natural(row) for row in rows]
        answers = self.calls(function.call, many, data)
        read = [function.read(*one) for one in zip(rows, many, answers, strict=True)]
        values, gradients = zip(*read, strict=True) if read else ((), ())
        return np.array(values), np.array(gradients).reshape(len(rows), -1)
