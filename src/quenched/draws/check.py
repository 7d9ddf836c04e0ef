"""The check draws of a seed: points that no fit is trained on, the first of which are made once."""

from collections.abc import Iterator
from functools import lru_cache
from threading import Lock

import numpy as np

from quenched.draws.draws import check_draws
from quenched.draws.streams import Purpose, generator

CHECK_BATCH = 640  # at a time
MOST_CHECKED = 2560  # that a fit keeps its log ratios of
_NUMBERS_KEPT = 2**18  # draws times coordinates, of a batch that is kept


class CheckDraws:
    """From another stream of the seed than the draws of a fit; the first ones are kept for whoever asks again."""

    def __init__(self, dim: int, seed: int):
        self.dim, self.seed = dim, seed
        self._random, self._kept, self._lock = generator(seed, Purpose.CHECK), [], Lock()
        self._most = MOST_CHECKED // CHECK_BATCH if CHECK_BATCH * dim <= _NUMBERS_KEPT else 0

    def batches(self, n: int) -> Iterator[np.ndarray]:
        """The first n of them, a batch at a time."""
        keeps = n <= self._most * CHECK_BATCH
        random = self._random if keeps else generator(self.seed, Purpose.CHECK)
        for place, first in enumerate(range(0, n, CHECK_BATCH)):
            size = min(CHECK_BATCH, n - first)
            yield self._batch(place)[:size] if keeps else check_draws(size, self.dim, random)

    def _batch(self, place: int) -> np.ndarray:
        with self._lock:  # fits in several threads may share it
            while place >= len(self._kept):
                self._kept.append(check_draws(CHECK_BATCH, self.dim, self._random))
                self._kept[-1].setflags(write=False)
            return self._kept[place]


@lru_cache(maxsize=2)
def check_draws_of(dim: int, seed: int) -> CheckDraws:
    """Those of the last seeds: a fit asks for them when it checks and when it judges, and the next fit for the same again."""
    return CheckDraws(dim, seed)
