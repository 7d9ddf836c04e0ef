"""The monitor and the growth of the draws."""

import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd
from quenched.optimise import LBFGS, Minimiser


def heavy(w, data):
    """Product of Student densities (3 degrees of freedom) of correlated coordinates: far from Gaussian."""
    mixed = data @ w
    return -2.0 * jnp.sum(jnp.log1p(mixed**2 / 3.0))


MIXING = np.eye(6) + 0.5 * np.random.default_rng(0).standard_normal((6, 6))
TOLERANCE = 0.002
grow = {"data": MIXING, "progress": False}


@pytest.fixture(scope="module")
def grown():
    return qd.fit(heavy, np.zeros(6), tolerance=TOLERANCE, max_draws=4096, seed=4, **grow)


def test_draws_grow_until_they_cost_less_than_the_tolerance(grown):
    sizes = grown.history.n_draws
    assert grown.n_rounds > 1
    assert sizes[0] == 32
    assert set(sizes[1:] / sizes[:-1]) <= {2, 4, 8}
    assert grown.n_draws == sizes[-1]
    assert grown.history.shortfall[0] > 0.25 * TOLERANCE  # a first guess has to be better than that
    assert (grown.history.shortfall[1:-1] > TOLERANCE).all()
    assert grown.shortfall <= TOLERANCE
    assert grown.draws_suffice
    assert f"where {TOLERANCE:.2g} are tolerated" in grown.verdict


def test_what_was_learned_of_the_curvature_is_kept_when_draws_grow(grown, monkeypatch):
    monkeypatch.setattr(LBFGS, "again", Minimiser.again)
    forgetful = qd.fit(heavy, np.zeros(6), tolerance=TOLERANCE, max_draws=4096, seed=4, **grow)
    assert forgetful.n_draws == grown.n_draws
    assert forgetful.bound == pytest.approx(grown.bound, abs=0.02 * TOLERANCE)
    assert grown.n_evaluations < 0.9 * forgetful.n_evaluations


def test_what_draws_have_cost_a_warp_is_half_of_what_it_loses_on_others():
    warped = qd.fit(heavy, np.zeros(6), family="warped", max_draws=128, **grow)
    last = warped.history[-1]
    assert last.shortfall == pytest.approx(0.5 * (max(last.bound - last.check_bound, 0.0) + last.check_error))


def test_the_shortfall_is_what_better_draws_gain():
    """Against a fit with so many draws that they cost nothing, on draws that neither has seen."""
    fine = qd.fit(heavy, np.zeros(6), draws=8192, **grow)
    z = np.random.default_rng(1).standard_normal((100_000, 6))
    target = lambda w: -2.0 * np.sum(np.log1p((w @ MIXING.T) ** 2 / 3.0), axis=1)
    bound = lambda fit: np.mean(
        target(fit.posterior.transform(z)) - fit.posterior.log_density(fit.posterior.transform(z))
    )
    lost, guessed = [], []
    for seed in range(8):
        fit = qd.fit(heavy, np.zeros(6), draws=64, seed=seed, **grow)
        lost.append(bound(fine) - bound(fit))
        guessed.append(fit.shortfall)
    assert 0.25 < np.median(guessed) / np.median(lost) < 4.0


def test_growing_is_the_same_as_asking_for_that_many(grown):
    """The raw draws are a prefix and the whole set is matched again, so the way there leaves no trace."""
    direct = qd.fit(heavy, np.zeros(6), draws=grown.n_draws, tolerance=TOLERANCE, seed=4, **grow)
    np.testing.assert_allclose(direct.bound, grown.bound, atol=0.02 * TOLERANCE)
    np.testing.assert_allclose(direct.mean, grown.mean, atol=2e-3)
    assert direct.n_rounds == 1


def test_growth_ends_at_max_draws_and_the_verdict_says_so():
    fit = qd.fit(heavy, np.zeros(6), tolerance=1e-5, check=2000, max_draws=128, **grow)
    assert fit.n_draws == 128
    assert fit.converged
    assert not fit.draws_suffice
    assert "The draws are too few" in fit.verdict
    assert "where 1e-05 are tolerated" in fit.verdict
    assert "use more (now 128)" in fit.verdict


def test_max_draws_below_the_usual_first_number_is_kept():
    fit = qd.fit(heavy, np.zeros(6), max_draws=33, **grow)
    assert fit.n_draws == 32
    assert fit.converged


def test_a_wide_tolerance_needs_no_growth():
    fit = qd.fit(heavy, np.zeros(6), tolerance=5.0, **grow)
    assert fit.n_rounds == 1
    assert "The draws suffice" in fit.verdict
    assert "where 5 are tolerated" in fit.verdict


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
    fits = [problem.fit(draws=qd.matched(32, 1, seed=0), check=1024, seed=seed) for seed in range(40)]
    spread = np.std([fit.check_bound for fit in fits], ddof=1)
    assert 0.6 < spread / np.mean([fit.check_error for fit in fits]) < 1.6
