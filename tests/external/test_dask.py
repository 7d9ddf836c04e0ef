"""A real Dask cluster of worker processes on this machine."""

import os
import threading
import time

import numpy as np
import pytest

import quenched as qd
import simulators

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def same(one, other):
    np.testing.assert_array_equal(one.posterior.mean, other.posterior.mean)
    np.testing.assert_array_equal(one.covariance, other.covariance)
    assert (one.bound, one.check_bound) == (other.bound, other.check_bound)


def test_dask_gives_the_bits_of_calls_done_here(client):
    here, there = (
        qd.fit(qd.from_value_and_grad(lambda w: simulators.logistic(w)), np.zeros(4), executor=executor, progress=False)
        for executor in (None, client)
    )
    same(here, there)
    assert there.settings["executor"] == "ClientExecutor"
    assert there.settings["workers"] == 2


def test_a_call_that_raises_is_named(client):
    target = qd.from_value_and_grad(simulators.raises)
    with pytest.raises(RuntimeError, match=r"ArithmeticError: no convergence(.|\n)*at draw \d+ of"):
        qd.fit(target, np.zeros(4), executor=client.get_executor(), progress=False)


def test_a_worker_that_is_killed_half_way_loses_nothing(client):
    here = qd.fit(qd.from_value_and_grad(simulators.logistic), np.zeros(4), progress=False)
    victim, killed = next(iter(client.run(os.getpid).values())), threading.Event()

    def kill():
        time.sleep(2.0)
        os.kill(victim, 9)
        killed.set()

    threading.Thread(target=kill).start()
    there = qd.fit(qd.from_value_and_grad(simulators.slow), np.zeros(4), executor=client.get_executor(), progress=False)
    assert killed.is_set()  # while the fit was under way
    same(here, there)
