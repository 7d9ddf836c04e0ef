"""The monitor and the growth of the draws."""

import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd


def heavy(w, data):
    """Product of Student densities (3 degrees of freedom) of correlated coordinates: far from Gaussian."""
    mixed = data @ w
    return -2.0 * jnp.sum(jnp.log1p(mixed**2 / 3.0))


MIXING = np.eye(6) + 0.5 * np.random.default_rng(0).standard_normal((6, 6))
TOLERANCE = 0.1
grow = {"data": MIXING, "progress": False}


@pytest.fixture(scope="module")
def grown():
    return qd.fit(heavy, np.zeros(6), tolerance=TOLERANCE, max_draws=4096, seed=4, **grow)


def test_draws_double_until_the_gap_is_below_the_tolerance(grown):
    sizes = grown.history.n_draws
    assert grown.n_rounds > 1
    assert sizes[0] == 64
    np.testing.assert_array_equal(sizes[1:], 2 * sizes[:-1])
    assert grown.n_draws == sizes[-1]
    doubt = np.abs(grown.history.bound - grown.history.check_bound) + 2.0 * grown.history.check_error
    assert (doubt[:-1] > TOLERANCE).all()
    assert doubt[-1] <= TOLERANCE
    assert grown.draws_suffice
    assert f"within the tolerance of {TOLERANCE} nats" in grown.verdict


def test_growing_is_the_same_as_asking_for_that_many(grown):
    """The raw draws are a prefix and the whole set is matched again, so the way there leaves no trace."""
    direct = qd.fit(heavy, np.zeros(6), draws=grown.n_draws, tolerance=TOLERANCE, seed=4, **grow)
    np.testing.assert_allclose(direct.bound, grown.bound, atol=1e-6)
    np.testing.assert_allclose(direct.mean, grown.mean, atol=1e-3)
    assert direct.n_rounds == 1


def test_growth_ends_at_max_draws_and_the_verdict_says_so():
    fit = qd.fit(heavy, np.zeros(6), tolerance=1e-4, check=2000, max_draws=128, **grow)
    assert fit.n_draws == 128
    assert fit.converged
    assert not fit.draws_suffice
    assert "The draws may suffice for the tolerance of 0.0001 nats, as far as can be told" in fit.verdict
    # Independent draws make the bound optimistic beyond doubt.
    few = qd.fit(heavy, np.zeros(6), tolerance=1e-4, check=2000, draws=qd.iid(80, 6), **grow)
    assert "The draws are too few for the tolerance of 0.0001 nats" in few.verdict
    assert "use more draws (now 80)" in few.verdict


def test_max_draws_below_the_usual_first_number_is_kept():
    fit = qd.fit(heavy, np.zeros(6), max_draws=33, **grow)
    assert fit.n_draws == 32
    assert fit.converged


def test_a_wide_tolerance_needs_no_growth():
    fit = qd.fit(heavy, np.zeros(6), tolerance=5.0, **grow)
    assert fit.n_rounds == 1
    assert "The draws suffice" in fit.verdict
    assert "within the tolerance of 5 nats" in fit.verdict


def test_fixed_draws_never_grow():
    for draws in (12, qd.matched(12, 6)):
        fit = qd.fit(heavy, np.zeros(6), tolerance=1e-6, draws=draws, **grow)
        assert fit.n_draws == 12
        assert fit.n_rounds == 1


def test_the_gap_is_the_difference_of_the_two_bounds(grown):
    assert grown.gap == grown.bound - grown.check_bound
    last = grown.history[-1]
    assert (last.bound, last.check_bound, last.check_error) == (grown.bound, grown.check_bound, grown.check_error)
    assert last.n_evaluations == grown.n_evaluations


def test_the_check_has_the_number_of_draws_asked_for():
    """A host function is called that many times more, and the fit itself stays as it is."""
    calls, fits = [], []

    def function(w):
        calls[-1] += 1
        return -float(np.sum(w**4)), -4.0 * w**3

    for n in (10, 37):
        calls.append(0)
        fits.append(qd.fit(qd.from_value_and_grad(function), np.ones(2), draws=8, check=n, progress=False))
    assert fits[0].bound == fits[1].bound
    # The last chunk is filled up, to a multiple of the draws evaluated at a time.
    assert 37 - 10 - 8 < calls[1] - calls[0] < 37 - 10 + 8


def test_the_error_of_the_check_is_honest():
    """The spread of check bounds over independent check draws is what the error says."""
    problem = problems.PROBLEMS["skew_normal"]
    fits = [problem.fit(draws=qd.matched(32, 1, seed=0), check=100, seed=seed) for seed in range(40)]
    spread = np.std([fit.check_bound for fit in fits], ddof=1)
    assert 0.6 < spread / np.mean([fit.check_error for fit in fits]) < 1.6
