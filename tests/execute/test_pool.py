"""Calls on an executor: the numbers of calls done here, whatever happens to workers."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import quenched as qd
import simulators
from quenched.execute import CallFailed, Pool

START = np.zeros(4)


@pytest.fixture(scope="module")
def workers():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def serial():
    return qd.fit(qd.from_value_and_grad(simulators.logistic), START, progress=False)


def same(one, other):
    np.testing.assert_array_equal(one.posterior.mean, other.posterior.mean)
    np.testing.assert_array_equal(one.covariance, other.covariance)
    assert (one.bound, one.check_bound, one.n_evaluations) == (other.bound, other.check_bound, other.n_evaluations)


def fitted(function, executor, **options):
    return qd.fit(qd.from_value_and_grad(function), START, executor=executor, progress=False, **options)


def test_processes_give_the_bits_of_calls_done_here(workers, serial):
    fit = fitted(simulators.logistic, workers)
    same(fit, serial)
    assert fit.settings["executor"] == "ProcessPoolExecutor"
    assert fit.settings["calls"] == serial.settings["calls"] >= fit.n_evaluations


def test_threads_take_closures(serial):
    with ThreadPoolExecutor(2) as pool:
        same(fitted(lambda w: simulators.logistic(w), pool), serial)


def test_data_travel_once_to_each_worker(workers):
    data = {"x": np.tile(simulators.DESIGN, (40, 1)), "y": np.tile(simulators.LABELS, 40)}  # too large for every batch
    target = qd.from_value_and_grad(simulators.with_data)
    here, there = (
        qd.fit(target, {"w": START}, data=data, draws=32, check=64, progress=False, executor=executor)
        for executor in (None, workers)
    )
    same(here, there)


def test_a_worker_that_dies_has_its_draws_computed_again(tmp_path, monkeypatch, serial):
    monkeypatch.setenv("QUENCHED_TEST_MARKER", str(tmp_path / "died"))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        fit = fitted(simulators.dies_once, pool)
    assert (tmp_path / "died").exists()
    assert fit.settings["lost"] > 0
    same(fit, serial)


def test_a_call_that_raises_names_the_draw_and_the_parameters(workers):
    with pytest.raises(
        CallFailed, match=r"ArithmeticError: no convergence at (.|\n)*at draw \d+ of \d+, with parameters"
    ) as told:
        fitted(simulators.raises, workers)
    assert told.value.parameters[0] > 0.8
    with pytest.raises(ArithmeticError) as here:
        fitted(simulators.raises, None)
    assert any("with parameters" in note for note in here.value.__notes__)


def test_a_pool_that_was_shut_down_is_done_without(serial):
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    pool.shutdown()
    with pytest.warns(UserWarning, match="shut down"):
        same(fitted(simulators.logistic, pool), serial)


def test_batches_are_long_enough_to_be_worth_sending():
    pool = Pool(ThreadPoolExecutor(4))
    assert pool._size(64) == 4
    pool.seconds = 1e-6
    assert pool._size(64) == 16  # one batch for each worker
    pool.seconds = 1.0
    assert pool._size(8) == 1


@pytest.mark.parametrize(
    ("target", "executor", "word"),
    [
        (lambda w: -0.5 * (w**2).sum(), ThreadPoolExecutor(1), "compiled"),
        (qd.from_value_and_grad(simulators.logistic), "pool", "submit"),
    ],
)
def test_misuse_is_told(target, executor, word):
    with pytest.raises(ValueError, match=f"executor.*{word}"):
        qd.fit(target, START, executor=executor, progress=False)
