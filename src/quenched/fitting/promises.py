"""What a function on the host promises, tried before a fit: one value at one point, and a gradient that is the value's own.

A gradient that is off by a factor leads to a posterior that looks converged and is too wide or too narrow. So values are compared
with gradients along two directions: v(b) − v(a) with half the sum of the gradients at both ends, which is exact for every
quadratic, however long the step. Steps are centred at points beside the start, which may be a mode, where nothing changes, or a
kink. What does not agree is tried again on shorter steps about the same points: a gradient that is wrong stays wrong by the same
ratio, while a step that was too long comes to agree, and rounding agrees with nothing.
"""

from typing import NamedTuple

import numpy as np

from quenched.draws import Purpose, generator
from quenched.execute import Host
from quenched.objective import Problem

_NOISE = (1e-3, 1e-6)  # nats, and part of the value, by which two values at one point may differ
_DIRECTIONS = 2
_STEP = 1e-2  # of a coordinate, or of one if that is more: the longest step
_PROMISED = 0.1  # nats that a step should bring, where the gradient is so large that it is shorter
_SHORTER = 8.0
_TIMES = 4  # that a step is made shorter, while there is doubt
_OFF = 0.05  # of the parts of a gradient along a direction: what is called wrong, if it is also
_RELATIVE = 0.02  # of the change
_STEADY = 0.25  # of what is off: by how much two steps may differ in it
_ROUNDING = 1e3  # times the precision of the values: below, a change is not known
_NAMED = 8  # parameters that are tried one by one, where the gradient is wrong


class Change(NamedTuple):
    """The change of the value along a step, and what the gradients promise."""

    found: float
    promised: float
    parts: float  # root of the sum of squares of what each coordinate promises
    known: float  # change below which rounding rules

    @property
    def ratio(self) -> float:
        return self.promised / self.found if self.found else np.inf

    @property
    def certain(self) -> bool:
        return bool(np.isfinite([self.found, self.promised]).all()) and self.largest > self.known

    @property
    def largest(self) -> float:
        return max(abs(self.found), abs(self.promised))

    @property
    def off(self) -> float:
        """What is promised too much, as part of the change."""
        return (self.promised - self.found) / self.largest

    @property
    def agrees(self) -> bool:
        away = abs(self.promised - self.found)
        return away <= max(_OFF * self.parts, _RELATIVE * self.largest)


class Examined:
    """One function at one start, and how often it was called."""

    def __init__(self, problem: Problem, executor: Host, point: np.ndarray):
        self.problem, self.executor, self.point, self.calls = problem, executor, point, 0
        self.widest = _STEP * np.maximum(np.abs(point), 1.0)

    def at(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.calls += len(rows)
        return self.executor.at(rows, self.problem.data)

    def changes(self, middles: np.ndarray, steps: np.ndarray) -> list[Change]:
        """Along some steps, each about a middle of its own."""
        values, gradients = self.at(np.concatenate([middles - 0.5 * steps, middles + 0.5 * steps]))
        (behind, ahead), slopes = np.split(values, 2), np.split(gradients, 2)
        with np.errstate(all="ignore"):
            parts = 0.5 * (slopes[0] + slopes[1]) * steps
            known = _ROUNDING * _precision(values) * np.maximum(np.abs(behind), np.abs(ahead))
            rows = zip(ahead - behind, parts.sum(axis=1), map(_length, parts), known, strict=True)
            return [Change(*map(float, row)) for row in rows]


def examine(problem: Problem, point: np.ndarray) -> int:
    """Try the promises of a function on the host at a start; answers with the gradient evaluations that this took.

    Nothing is said where nothing can be known: the start is not finite, or the values are so large that differences of them are
    rounding.

    Raises
    ------
    ValueError
        When two values at one point differ, or when the gradient is not the value's own.
    """
    executor = problem.executor(2)
    if not isinstance(executor, Host):
        return 0
    examined = Examined(problem, executor, point)
    values, gradients = examined.at(np.stack([point, point]))
    if not (np.isfinite(values).all() and np.isfinite(gradients).all()):
        return examined.calls
    _insist_on_one_value(values, gradients)
    if problem.target.gives_gradient:
        _insist_on_gradient(examined, values, gradients[0])
        return examined.calls
    return 1


def _insist_on_one_value(values: np.ndarray, gradients: np.ndarray) -> None:
    away, most = abs(values[1] - values[0]), np.max(np.abs(values))
    if away > max(_NOISE[0], _NOISE[1] * most):
        raise ValueError(
            f"fun: returned {values[0]:.10g} and then {values[1]:.10g} at the same parameters. The log density must be a "
            "function of its parameters: fix the seed of its random numbers, switch off dropout, and use all rows of the data "
            "rather than some of them at a time."
        )
    if np.max(np.abs(gradients[1] - gradients[0]), initial=0.0) > 1e-3 * np.max(np.abs(gradients), initial=0.0):
        raise ValueError(
            "fun: returned two different gradients at the same parameters. The gradient must be a function of the parameters: fix "
            "the seed of its random numbers, and use all rows of the data rather than some of them at a time."
        )


def _insist_on_gradient(examined: Examined, values: np.ndarray, gradient: np.ndarray) -> None:
    shape = (_DIRECTIONS, len(examined.point))
    random = generator(0, Purpose.GRADIENT)
    beside, directions = random.uniform(-1.0, 1.0, shape), random.uniform(0.4, 1.0, shape)
    directions *= random.choice([-1.0, 1.0], shape[1])
    directions[1, ::2] *= -1.0  # where the parts of a gradient cancel along the one, they do not along the other
    size = _length(examined.widest * gradient)
    wanted = max(_PROMISED, 1e3 * _ROUNDING * _precision(values) * abs(values[0]))
    scale = examined.widest * min(1.0, wanted / size if size > 0.0 else 1.0)
    middles, steps = examined.point + scale * beside, scale * directions
    first = examined.changes(middles, steps)
    if all(change.agrees or not change.certain for change in first):
        return
    wrong = [_steadily_wrong(examined, *one) for one in zip(middles, steps, first, strict=True)]
    if found := [change.ratio for change in wrong if change is not None]:
        raise ValueError(_told(found, _of_each(examined, middles[0], scale)))


def _steadily_wrong(examined: Examined, middle: np.ndarray, step: np.ndarray, first: Change) -> Change | None:
    """A change that no shorter step explains; None where one does, or where nothing is certain."""
    before = first
    for _ in range(_TIMES):
        step = step / _SHORTER
        (change,) = examined.changes(middle[None], step[None])
        if not (change.certain and before.certain):
            before = change
            continue
        if change.agrees:
            return None
        flat = abs(change.found) < 0.01 * abs(change.promised)  # or quantised: then longer steps would show a change
        if abs(change.off - before.off) < _STEADY * abs(change.off) and not (
            flat and abs(first.off - change.off) > 0.1
        ):
            return change
        before = change
    return None


def _of_each(examined: Examined, middle: np.ndarray, scale: np.ndarray) -> dict[str, float]:
    """The ratios of the first parameters, by name, of those that are known."""
    looked = min(len(middle), _NAMED)
    steps = np.diag(scale / _SHORTER**2)[:looked]
    changes = examined.changes(np.repeat(middle[None], looked, axis=0), steps)
    names = examined.problem.space.coordinate_names()
    return {name: one.ratio for name, one in zip(names, changes, strict=False) if one.certain}


def _told(along: list[float], of_each: dict[str, float]) -> str:
    ratios = [*along, *of_each.values()]
    one = np.ptp(ratios) <= 0.1 * np.max(np.abs(ratios)) if np.isfinite(ratios).all() else False
    if one and abs(ratios[0] + 1.0) < 0.1:
        remedy = "Its sign is wrong: is it that of minus the log density?"
    elif one:
        remedy = "Look for a factor that only one of the two has."
    else:
        remedy = "Look for a term without its derivative, or for entries in another order."
    times = " and ".join(_ratio(ratio) for ratio in (along[:1] if one else along))
    bad = [f"{name} {_ratio(ratio)}" for name, ratio in of_each.items() if not abs(ratio - 1.0) < _OFF]
    by_name = f" By parameter: {', '.join(bad)}." if bad and not one else ""
    return (
        f"fun: the gradient that it returns is not that of its value. Beside the start it promises {times} the change of the value "
        f"that is found, along {'two random directions' if len(along) > 1 else 'a random direction'}.{by_name} {remedy}"
    )


def _ratio(value: float) -> str:
    return f"{value + 0.0:.3g} times" if np.isfinite(value) else "inf times (it does not change)"


def _length(vector: np.ndarray) -> float:
    """Euclidean, also where its square is too large for a number."""
    most = float(np.max(np.abs(vector), initial=0.0))
    return most * float(np.sqrt(np.sum((vector / most) ** 2))) if 0.0 < most < np.inf else most


def _precision(values: np.ndarray) -> float:
    """Relative, of the values: single, if they are all numbers of single precision."""
    with np.errstate(over="ignore"):
        single = bool(np.all(values == values.astype(np.float32)))
    return float(np.finfo(np.float32 if single and np.any(values) else np.float64).eps)
