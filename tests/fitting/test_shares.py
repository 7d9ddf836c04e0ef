"""Many fits in shares: equal whatever happens to workers, saved as they come, found again, and joined."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quenched as qd
import simulators
from quenched.fitting import shares
from quenched.fitting.alone import Alone
from quenched.objective import make_problem
from quenched.targets import Hyper
from quenched.transforms import describe_space

OPTIONS = {"check": 64, "progress": False}
TARGET = qd.from_value_and_grad(simulators.counts_on_host)


def fitted(data, target=TARGET, **options):
    return qd.fit_many(target, np.zeros(4), data, **OPTIONS, **options)


def same(one, other):
    for name, column in one.table().items():
        np.testing.assert_array_equal(column, other.table()[name], err_msg=name)


@pytest.fixture
def data(monkeypatch):
    monkeypatch.setattr(shares, "_FEWEST", 2)
    return simulators.many_counts(6)


def test_a_worker_that_is_killed_loses_nothing(data, tmp_path, monkeypatch):
    here = fitted(data)
    monkeypatch.setenv("QUENCHED_TEST_MARKER", str(tmp_path / "died"))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = fitted(data, executor=pool, checkpoint=tmp_path / "saved")
    assert (tmp_path / "died").exists()
    assert there.settings["lost"] > 0
    same(here, there)
    assert len(list((tmp_path / "saved").iterdir())) == 3
    np.testing.assert_array_equal(there[3].origin.problem.data, data[3])  # the fits have their log density


def test_what_was_saved_is_not_fitted_again(data, tmp_path):
    calls = []
    target = qd.from_value_and_grad(lambda w, counts: calls.append(w) or simulators.counts_on_host(w, counts))
    first = fitted(data, target, checkpoint=tmp_path)
    seen = len(calls)
    same(first, fitted(data, target, checkpoint=tmp_path))
    assert len(calls) - seen == first.n_draws[::2].sum()  # whose they are: the bound of one of each share
    other = data.copy()
    other[2] += 1.0
    changed = fitted(other, target, checkpoint=tmp_path)
    np.testing.assert_array_equal(changed.bound == first.bound, [True, True, False, True, True, True])


def curved(w, y, hyper=None):
    rate = 0.0 if hyper is None else hyper["rate"]
    return -0.5 * ((y - w) ** 2).sum() * jnp.exp(rate) + 0.5 * y.size * rate - rate**2 - w**4


WAYS = {
    "full": {},
    "diagonal": {"family": "diagonal"},
    "warped": {"family": "warped"},
    "alternating": {"method": qd.Alternating()},
    "constrained": {"transforms": qd.positive},
    "learned": {"hyper": {"rate": 0.0}},
}


def of_many(log_density, folder, **options):
    some = np.linspace(1.0, 2.0, 8).reshape(4, 2)
    return qd.fit_many(log_density, 0.5, some, checkpoint=folder, max_draws=64, **OPTIONS, **options)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_saved_is_found_however_it_was_fitted(way, tmp_path, monkeypatch):
    monkeypatch.setattr(shares, "_FEWEST", 2)
    target = qd.with_gaussian_prior(curved) if way == "learned" else curved
    first = of_many(target, tmp_path, **WAYS[way])
    monkeypatch.setattr(shares.Share, "__call__", None)  # nothing is fitted
    same(first, of_many(target, tmp_path, **WAYS[way]))


@pytest.mark.parametrize(
    ("target", "changed"),
    [
        (lambda w, y: curved(w, y) - 0.1 * w, {}),
        (curved, {"transforms": qd.positive}),
        (curved, {"method": qd.Joint(max_evaluations=3)}),
        (qd.with_gaussian_prior(curved, prior_precision=9.0), {}),
        (qd.with_gaussian_prior(curved), {}),  # learned, of which nothing was saved
    ],
)
def test_what_is_saved_of_something_else_is_not_taken(target, changed, tmp_path):
    of_many(curved, tmp_path / "before")
    same(of_many(target, tmp_path / "before", **changed), of_many(target, tmp_path / "fresh", **changed))


def test_hyperparameters_find_their_way_back():
    target = qd.with_gaussian_prior(lambda w, y, hyper: -0.5 * ((y - w) ** 2).sum() * hyper["precision"])
    space, _ = describe_space(np.zeros(2), None)
    problem = make_problem(target, space, np.zeros(2), {"offsets": np.zeros(2), "precision": 1.0})
    rows = Hyper(np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0]), np.ones(2))
    for found, known in zip(problem.read_hyper(problem.describe_hyper(rows), 2), rows, strict=True):
        np.testing.assert_array_equal(found, known)


def test_only_fits_of_one_kind_are_joined(data):
    one, other = (fitted(data[:2], family=family) for family in ("full", "diagonal"))
    same(qd.Fits.joined([one[:1], one[1:]]), one)
    with pytest.raises(ValueError, match="place 1 is of another kind"):
        qd.Fits.joined([one, other])


@given(st.integers(1, 5_000), st.sampled_from([16, 64]))
def test_shares_hold_each_problem_once_and_are_alike(n, fewest):
    cuts = shares._cuts(n, fewest)
    assert [0, *(stop for _, stop in cuts)] == [*(first for first, _ in cuts), n]
    sizes = [stop - first for first, stop in cuts]
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= 256
    assert min(sizes) >= min(fewest, n)


def test_shares_of_small_problems_go_side_by_side(tmp_path, monkeypatch):
    alone = []
    monkeypatch.setattr(Alone, "climb", lambda *inputs: alone.append(inputs))
    data = np.linspace(-1.0, 1.0, 130)
    together = qd.fit_many(lambda w, y: -0.5 * (w - y) ** 2, 0.0, data, checkpoint=tmp_path, **OPTIONS)
    assert not alone
    assert len(list(tmp_path.iterdir())) == 2
    np.testing.assert_allclose(together.mean, data, atol=0.05)  # sds: within what is worth an ascent
