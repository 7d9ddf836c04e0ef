"""The summary: quantiles beside means, and a table in which no parameter hides behind a long one."""

import builtins

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import quenched as qd
import registry
from fits import SD, make_fit
from quenched.posterior import Posterior, natural_quantiles
from quenched.results import rows_of, rows_shown
from quenched.transforms import describe_space

EVERYTHING = {
    "free": (qd.real, stats.norm(1.0, SD), 1.0),
    "scale": (qd.positive, stats.lognorm(SD, scale=2.0), 2.0),
    "late": (qd.above(3.0), stats.lognorm(SD, loc=3.0, scale=1.0), 4.0),
}
LEVELS = (0.05, 0.5, 0.95)


def rows_by_name(fit):
    return {row["name"]: row for row in rows_of(fit)}


def test_quantiles_are_exact_where_numbers_go_their_own_way():
    start = {name: value for name, (_, _, value) in EVERYTHING.items()} | {"early": -1.0}
    transforms = {name: transform for name, (transform, _, _) in EVERYTHING.items()} | {"early": qd.below(0.0)}
    rows = rows_by_name(make_fit(start, transforms=transforms))
    for name, (_, exact, _) in EVERYTHING.items():
        np.testing.assert_allclose([rows[name][f"{level:.0%}"] for level in LEVELS], exact.ppf(LEVELS), rtol=1e-12)
    early = stats.lognorm(SD, scale=1.0)
    found = [rows["early"][f"{level:.0%}"] for level in LEVELS]
    np.testing.assert_allclose(found, [-early.ppf(1.0 - level) for level in LEVELS], rtol=1e-12)


@pytest.mark.parametrize("name", sorted(registry.TRANSFORMS))
def test_quantiles_are_those_of_samples(name):
    transform, shape = registry.TRANSFORMS[name]
    start = np.asarray(transform.to_natural(0.3 * np.ones(transform.real_shape(shape))))
    fit = make_fit(start, transforms=transform)
    samples = fit.sample(20_000, seed=3)
    found = natural_quantiles(fit.posterior, fit.space, LEVELS)
    np.testing.assert_allclose(found, np.quantile(samples, LEVELS, axis=0), atol=0.1 * fit.sd.max())


def test_quantiles_of_a_posterior_that_is_no_gaussian():
    member = registry.random_member(qd.Warped(), 2, seed=5, warp=0.4)
    posterior, space = Posterior(member), describe_space(np.zeros(2))[0]
    found = natural_quantiles(posterior, space, LEVELS)
    drawn = np.quantile(posterior.sample(40_000, seed=1), LEVELS, axis=0)
    gaussian = posterior.mean + np.outer(stats.norm.ppf(LEVELS), np.sqrt(posterior.variance()))
    np.testing.assert_allclose(found, drawn, atol=0.08 * np.sqrt(posterior.variance().max()))
    assert np.abs(found - drawn).max() < 0.5 * np.abs(gaussian - drawn).max()


def test_the_summary_is_the_same_twice():
    start = {"w": np.array([0.2, 0.8])}
    assert rows_of(make_fit(start, transforms=qd.simplex)) == rows_of(make_fit(start, transforms=qd.simplex))


# The table.


def table_of(fit):
    """Between the answer, which comes first, and the facts."""
    lines = str(fit).splitlines()
    lines = lines[lines.index("") + 1 :]
    return lines[1 : lines.index("")]


def test_short_ones_come_first_and_long_ones_are_cut_in_the_middle():
    fit = make_fit({"lam": np.ones(50), "beta": np.zeros(50), "sigma": 1.0, "tau": 0.1})
    lines = table_of(fit)
    assert len(lines) == 30
    names = [line.split()[0] for line in lines]
    assert names[:4] == ["sigma", "tau", "beta[0]", "beta[1]"]
    assert [lines[14], *names[15:17]] == ["... 37 more", "beta[49]", "lam[0]"]
    assert names[-2:] == ["...", "lam[49]"]
    assert [row["name"] for row in fit.summary()][:2] == ["beta[0]", "beta[1]"]  # rows keep the order of the parameters
    assert len(fit.summary()) == 102


def test_of_a_long_one_the_rows_that_other_draws_move_most_come_first():
    concern = np.zeros(52)
    concern[[17, 40]] = 0.2, 0.3
    concern[5] = np.nan
    places, hidden = rows_shown([50, 2], 10, concern)
    assert places == [50, 51, 40, 17, 0, 1, 2, 3, 4, "... 43 more, moved less"]
    assert not hidden
    assert rows_shown([5, 2], 10, np.arange(7.0))[0] == [5, 6, 0, 1, 2, 3, 4]  # one that fits is in its order


def test_a_diagnosed_fit_shows_the_worst_of_a_long_vector():
    fit = qd.fit(lambda w: jnp.sum(w - jnp.exp(w * jnp.linspace(0.2, 1.5, 40))), np.zeros(40), progress=False)
    diagnosis = fit.diagnose(progress=False)
    errors = diagnosis.mean_error / fit.sd
    names = [line.split()[0] for line in table_of(fit)]
    assert names[0] == f"parameters[{np.argmax(errors)}]"
    assert names[28] == f"parameters[{np.argsort(-errors)[28]}]"
    assert names[29:] == ["..."]


def test_what_finds_no_place_is_counted():
    lines = table_of(make_fit({f"p{place:02d}": 0.0 for place in range(40)}))
    assert len(lines) == 31
    assert lines[-1] == "... 10 more parameters"


@registry.law
@given(st.lists(st.integers(0, 80), min_size=1, max_size=50))
def test_the_rows_shown_are_few_and_fair(sizes):
    places, hidden = rows_shown(sizes)
    assert len(places) <= 30
    numbers = [place for place in places if not isinstance(place, str)]
    assert len(set(numbers)) == len(numbers)
    left_out = [int(place.split()[1]) for place in places if isinstance(place, str)]
    assert all(n > 1 for n in left_out)
    owner = np.repeat(np.arange(len(sizes)), sizes)[numbers]
    seen, there = set(owner.tolist()), {place for place, size in enumerate(sizes) if size}
    assert hidden == len(there - seen)
    if seen and hidden:  # only the longest are hidden
        assert max(sizes[place] for place in seen) <= min(sizes[place] for place in there - seen)
    if not hidden:
        assert len(numbers) + sum(left_out) == sum(sizes)
    if sum(sizes) <= 30:
        assert len(numbers) == sum(sizes)


# As a DataFrame.


def test_a_summary_is_a_frame_where_there_is_pandas():
    pytest.importorskip("pandas")
    fit = make_fit({"mu": 1.0, "w": np.zeros(2)})
    frame = fit.summary().to_frame()
    assert list(frame.index) == ["mu", "w[0]", "w[1]"]
    assert list(frame.columns) == ["mean", "sd", "5%", "50%", "95%"]
    assert frame.loc["mu", "50%"] == pytest.approx(1.0)


def test_without_pandas_the_error_says_so(monkeypatch):
    real_import = builtins.__import__

    def without_pandas(name, *rest, **others):
        if name == "pandas":
            raise ImportError(name)
        return real_import(name, *rest, **others)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match="needs pandas: pip install pandas"):
        make_fit({"mu": 1.0}).summary().to_frame()


def test_a_summary_of_thousands_of_parameters_waits_for_no_diagnosis():
    target = qd.sum_of(qd.each(lambda seen: -0.5 * seen["w"] ** 2, sees={"w": qd.each_entry}))
    fit = qd.fit(target, {"w": np.zeros(2_001)}, progress=False)
    summary = fit.summary()
    assert "mean_error" not in summary[0]
    assert "fit.diagnose()" in str(summary)
    assert fit.diagnosis is None
    few = qd.fit(target, {"w": np.zeros(3)}, progress=False).summary()
    assert "mean_error" in few[0]
    assert "may take longer" not in str(few)
