"""Several starts: where they begin, and which distinct optima they lead to."""

import numpy as np

from quenched.draws import Purpose, generator
from quenched.families import Member, ask
from quenched.results import Optimum

WIDTH = 2.0  # of the starts around a point: what a model's starting values usually are on the real line
_SAME_OPTIMUM = 0.5  # posterior standard deviations, root mean square over coordinates
_SAME_BOUND = 0.1  # nats


def around(point: np.ndarray, n: int, seed: int) -> np.ndarray:
    """The point itself and others around it."""
    jitter = WIDTH * generator(seed, Purpose.STARTS).standard_normal((n, len(point)))
    jitter[0] = 0.0
    return point + jitter


def distinct(posteriors: list[Member], bounds: list[float]) -> tuple[int, tuple[Optimum, ...]]:
    """Which of some tops is the highest, and the optima among them, the best first."""
    found: list[tuple[int, int]] = []
    for place in np.argsort(-np.asarray(bounds), kind="stable").tolist():
        for rank, (best, count) in enumerate(found):
            if _same(posteriors[place], bounds[place], posteriors[best], bounds[best]):
                found[rank] = (best, count + 1)
                break
        else:
            found.append((place, 1))
    optima = (Optimum(bounds[best], np.asarray(posteriors[best].mean), count) for best, count in found)
    return found[0][0], tuple(optima)


def _same(one: Member, bound: float, other: Member, other_bound: float) -> bool:
    away = np.asarray(ask(one, "standardise", np.asarray(other.mean)[None])[0])
    return abs(bound - other_bound) < _SAME_BOUND and float(np.sqrt(np.mean(away**2))) < _SAME_OPTIMUM
