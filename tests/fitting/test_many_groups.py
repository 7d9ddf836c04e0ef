"""Many groups: too many numbers to be weighed at once, so groups are integrated over, and the few they share are weighed."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm, poisson

import quenched as qd
from quenched.trust import Trust

GROUPS, EACH = 400, 4
START = {"level": 0.0, "log_sd": 0.0, "effect": np.zeros(GROUPS)}


def counts_of(level, sd):
    random = np.random.default_rng([14, 2])
    return random.poisson(np.exp(level + sd * random.standard_normal(GROUPS)), (EACH, GROUPS)).T


def row(seen, counts):
    return jnp.sum(poisson.logpmf(counts, jnp.exp(seen["effect"])))


def effect(seen):
    return norm.logpdf(seen["effect"], seen["level"], jnp.exp(seen["log_sd"]))


def outer(seen):
    return norm.logpdf(seen["level"], 0.0, 3.0) + norm.logpdf(seen["log_sd"], 0.0, 1.0)


def fitted(counts):
    target = qd.sum_of(
        qd.each(row, counts, sees={"effect": qd.each_entry}),
        qd.each(effect, sees={"effect": qd.each_entry, "level": qd.whole, "log_sd": qd.whole}),
        qd.each(outer, sees={"level": qd.whole, "log_sd": qd.whole}),
    )
    return qd.fit(target, START, progress=False)


@pytest.fixture(scope="module")
def right():
    return fitted(counts_of(1.5, 0.5))


@pytest.fixture(scope="module")
def wrong():
    """Many groups have no count at all, and their effects are far from Gaussian."""
    return fitted(counts_of(-1.0, 1.0))


def exactly(counts):
    """Log evidence, and mean and sd of `log_sd`: by quadrature over each effect, and a grid over the two they share."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    levels, scales = np.meshgrid(np.linspace(-1.4, -0.5, 61), np.linspace(-0.4, 0.35, 61), indexing="ij")
    effects = levels[..., None] + np.exp(scales)[..., None] * nodes
    kinds, n = np.unique(np.sort(counts, axis=1), axis=0, return_counts=True)
    log_p = norm.logpdf(levels, 0.0, 3.0) + norm.logpdf(scales, 0.0, 1.0)
    for kind, times in zip(kinds, n, strict=True):
        rows = sum(np.asarray(poisson.logpmf(count, np.exp(effects))) for count in kind)
        log_p = log_p + times * np.log(np.exp(rows) @ weights / weights.sum())
    mass = np.exp(log_p - log_p.max())
    evidence = np.log(mass.sum() * (0.9 / 60) * (0.75 / 60)) + log_p.max()
    mean = np.sum(mass * scales) / mass.sum()
    return evidence, mean, np.sqrt(np.sum(mass * (scales - mean) ** 2) / mass.sum())


def test_a_right_posterior_of_many_groups_is_trusted(right, tmp_path):
    assert np.std(right.log_ratios) > 0.7  # all at once cannot be weighed
    assert right.collapsed.n_outer == right.n_weighed == 2
    assert right.answer.trust is Trust.BOTH
    assert "2 that the others share" in right.verdict
    loaded = qd.load(right.save(tmp_path / "fit.npz"))
    assert str(loaded) == str(right)
    assert right.diagnose(progress=False).answer.trust is Trust.BOTH


def test_a_wrong_one_is_not_and_the_weights_say_by_how_much(wrong):
    evidence, mean, sd = exactly(counts_of(-1.0, 1.0))
    assert abs(wrong.evidence - evidence) < 0.1
    assert wrong.check_bound < evidence - 2.0
    assert abs(mean - wrong.mean["log_sd"]) > 0.3 * wrong.sd["log_sd"]
    assert wrong.answer.trust is Trust.NEITHER
    place = wrong.space.coordinate_names().index("log_sd")
    moved = wrong.mean["log_sd"] + wrong.collapsed.shift[place] * wrong.sd["log_sd"]
    np.testing.assert_allclose(moved, mean, atol=0.1 * sd)
    np.testing.assert_allclose(wrong.collapsed.ratio[place] * wrong.sd["log_sd"], sd, rtol=0.1)
    assert "importance weights move the mean of log_sd" in wrong.verdict


def test_what_hardly_fewer_numbers_share_is_not_integrated_over():
    """Twenty people meet ten items: without the items' ten numbers people are alone, but ten of thirty are hardly few."""
    person, item = (part.ravel() for part in np.meshgrid(np.arange(20), np.arange(10), indexing="ij"))
    answers = (np.random.default_rng(3).random(200) < 0.8).astype(float)

    def answer(seen, row):
        score = jnp.exp(seen["log_slope"]) * seen["ability"]
        return row * score - jnp.logaddexp(0.0, score)

    target = qd.sum_of(
        qd.each(answer, answers, sees={"ability": person, "log_slope": item}),
        qd.each(lambda seen: norm.logpdf(seen["ability"], 0.0, 2.0), sees={"ability": qd.each_entry}),
        qd.each(lambda seen: norm.logpdf(seen["log_slope"]), sees={"log_slope": qd.each_entry}),
    )
    fit = qd.fit(target, {"ability": np.zeros(20), "log_slope": np.zeros(10)}, draws=32, progress=False, throw=False)
    assert fit.converged
    assert fit.weights.share < 0.8
    assert fit.collapsed is None


def test_where_one_number_alone_is_off_the_others_are_trusted_by_name(wrong):
    """Of the groups and their level nothing moves; of the wrong one the level does, too, so that none is called right."""
    fit = fitted(counts_of(0.0, 0.7))
    assert fit.answer.trust is Trust.NEITHER  # by the worst
    assert fit.verdict.startswith("Trust means and sds but those of log_sd: importance weights move the mean of log_sd")
    assert "of the other 401 no mean by more than 0.0" in fit.verdict
    assert wrong.verdict.startswith("Trust neither means nor sds: ")
