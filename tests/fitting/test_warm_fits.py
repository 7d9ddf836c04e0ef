"""What one fit leaves behind for the next: bounded, shared by threads, and never stale."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from quenched.draws import Draws, make
from quenched.lately import Lately
from quenched.objective import objective


def numbers(n: int) -> np.ndarray:
    return np.full(n, float(n))


def test_no_more_is_held_than_is_allowed_and_the_oldest_goes_first():
    made = []

    def make_and_note(n):
        made.append(n)
        return numbers(n)

    lately = Lately(make_and_note, lambda array: array.nbytes, 80)
    for n in (4, 5, 4, 3, 5, 4):  # 5 goes when 3 comes, since 4 was asked for after it; then 4 goes
        np.testing.assert_array_equal(lately(n), numbers(n))
        assert lately.bytes_held <= 80
    assert made == [4, 5, 3, 5, 4]


def test_what_is_too_large_is_made_anew_and_drives_nothing_out():
    lately = Lately(numbers, lambda array: array.nbytes, 80)
    kept = lately(2)
    assert lately(11) is not lately(11)
    assert lately(2) is kept
    assert lately.bytes_held == 16


def test_threads_that_ask_for_the_same_are_given_the_same():
    together = Barrier(8)

    def make_together(n):
        together.wait()  # all of them are at it at once
        return numbers(n)

    lately = Lately(make_together, lambda array: array.nbytes, 80)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lately, [7] * 8))
    assert all(one is found[0] for one in found)
    assert lately.bytes_held == 56


def quartic(w, data):
    return -jnp.sum(0.1 * (w - data) ** 4 + 0.5 * w**2)


def same(one, other):
    np.testing.assert_array_equal(one.posterior.mean, other.posterior.mean)
    np.testing.assert_array_equal(one.posterior.covariance, other.posterior.covariance)
    assert (one.bound, one.check_bound, one.further) == (other.bound, other.check_bound, other.further)


def test_later_fits_are_the_first_one_to_the_bit_in_every_thread():
    fit = lambda _=0: qd.fit(quartic, np.zeros(3), data=np.arange(3.0), progress=False)
    first, second = fit(), fit()
    same(first, second)
    with ThreadPoolExecutor(3) as threads:
        for other in threads.map(fit, range(6)):
            same(first, other)


def test_draws_that_are_shared_cannot_be_written_to():
    draws = make("matched", 12, 3, 4)
    assert draws.frozen
    assert make("matched", 12, 3, 4) is draws
    with pytest.raises(ValueError, match="read-only"):
        draws.points[0] = 1.0


def test_draws_of_a_persons_own_are_looked_at_every_time():
    """They may have been written to since."""
    points = np.random.default_rng(8).standard_normal((40, 3))
    draws = Draws("iid", points, 0)
    fit = lambda given: qd.fit(quartic, np.zeros(3), data=np.arange(3.0), draws=given, progress=False)
    before = fit(draws)
    points *= 0.9
    after = fit(draws)
    same(after, fit(Draws("iid", points.copy(), 0)))
    assert abs(after.bound - before.bound) > 1e-3


def test_draws_are_brought_to_the_device_once(monkeypatch):
    brought = []
    cut_up = objective.cut_up
    monkeypatch.setattr(objective, "cut_up", lambda *given, **more: brought.append(1) or cut_up(*given, **more))
    fit = lambda: qd.fit(quartic, np.zeros(3), data=np.arange(3.0), seed=977, progress=False)
    fit()
    first = len(brought)
    assert first > 0
    fit()
    assert len(brought) == first
