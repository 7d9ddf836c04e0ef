"""Workers that die: what they were doing is found, and named."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import simulators
from quenched.execute import CallFailed, Pool


class Kills:
    def __call__(self, w, data):
        return simulators.kills(w)


def test_a_call_that_kills_every_worker_is_named():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool, pytest.raises(CallFailed) as told:
        list(Pool(pool)(Kills(), [np.full(4, place / 2) for place in range(4)], None))
    assert told.value.draw == 2
    assert told.value.parameters[0] > 0.8
