"""Several starts: where they begin, and which distinct optima they lead to."""

from collections.abc import Iterable

import numpy as np

from quenched.draws import Purpose, generator
from quenched.fitting.ascent import Ascent
from quenched.outcome import Optimum

_SAME_OPTIMUM = 0.5  # posterior standard deviations, root mean square over coordinates
_SAME_BOUND = 0.1  # nats


def around(point: np.ndarray, n: int, seed: int) -> np.ndarray:
    """The point itself and others around it, as wide as a model's starting values usually are on the real line."""
    jitter = 2.0 * generator(seed, Purpose.STARTS).standard_normal((n, len(point)))
    jitter[0] = 0.0
    return point + jitter


def distinct(ascents: Iterable[Ascent]) -> tuple[Ascent, tuple[Optimum, ...]]:
    """The best of some ascents, and the optima they ended in, the best first."""
    found: list[tuple[Ascent, int]] = []
    for ascent in ascents:
        for index, (other, count) in enumerate(found):
            if _same(ascent, other):
                found[index] = (max(ascent, other, key=lambda a: a.bound), count + 1)
                break
        else:
            found.append((ascent, 1))
    found.sort(key=lambda pair: -pair[0].bound)
    return found[0][0], tuple(Optimum(a.bound, np.asarray(a.posterior.mean), count) for a, count in found)


def _same(one: Ascent, other: Ascent) -> bool:
    away = np.asarray(one.posterior.standardise(other.posterior.mean[None])[0])
    return abs(one.bound - other.bound) < _SAME_BOUND and float(np.sqrt(np.mean(away**2))) < _SAME_OPTIMUM
