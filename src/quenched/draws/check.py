"""Check draws: points that no fit is trained on."""

from collections.abc import Iterator
from functools import lru_cache
from threading import Lock

import numpy as np

from quenched.draws.sobol import sobol_normals
from quenched.draws.streams import Purpose, generator

CHECK_BLOCK = 64
CHECK_BATCH = 10 * CHECK_BLOCK  # at a time
_NUMBERS_KEPT = 2**20  # draws times coordinates, of the batches that are kept


def check_draws(n: int, dim: int, random: np.random.Generator) -> np.ndarray:
    """Points that no fit is trained on, from `generator(seed, Purpose.CHECK)`: the next ones with every call.

    Every `CHECK_BLOCK` of them are Sobol points with a scramble of their own: the means of blocks are unbiased and
    independent of each other, and vary less than those of independent points.
    """
    return sobol_normals(CHECK_BLOCK, dim, random, copies=-(-n // CHECK_BLOCK)).reshape(-1, dim)[:n]


class CheckDraws:
    """Those of a seed; the first ones are made once, however often they are asked for."""

    def __init__(self, dim: int, seed: int):
        self.dim, self.seed = dim, seed
        self._random, self._kept, self._lock = generator(seed, Purpose.CHECK), list[np.ndarray](), Lock()
        self._most = _NUMBERS_KEPT // (CHECK_BATCH * dim)  # batches

    def first(self, n: int) -> np.ndarray:
        """The first n of them, all at once."""
        return np.concatenate([np.zeros((0, self.dim)), *self.batches(n)])

    def batches(self, n: int) -> Iterator[np.ndarray]:
        """The first n of them, a batch at a time."""
        sizes = [min(CHECK_BATCH, n - first) for first in range(0, n, CHECK_BATCH)]
        if len(sizes) <= self._most:
            yield from (batch[:size] for batch, size in zip(self._first_batches(len(sizes)), sizes, strict=True))
            return
        random = generator(self.seed, Purpose.CHECK)
        yield from (check_draws(size, self.dim, random) for size in sizes)

    def _first_batches(self, count: int) -> list[np.ndarray]:
        with self._lock:  # fits in several threads may have the same seed
            missing = count - len(self._kept)
            if missing > 0:
                made = check_draws(missing * CHECK_BATCH, self.dim, self._random)
                made.setflags(write=False)
                self._kept += np.split(made, missing)
            return self._kept[:count]


@lru_cache(maxsize=4)
def check_draws_of(dim: int, seed: int) -> CheckDraws:
    """Those of a seed, shared by a fit, its result and the next fit."""
    return CheckDraws(dim, seed)
