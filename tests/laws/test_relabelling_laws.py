"""Sums of terms: rows in another order and parameters with other numbers give the same answer, draws and all."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.scipy.stats import norm
from scipy import sparse

import quenched as qd

PEOPLE, ITEMS, SITES = 7, 4, 6
RANDOM = np.random.default_rng([7, 3])
PERSON, ITEM = np.divmod(np.arange(PEOPLE * ITEMS), ITEMS)
ANSWER = (RANDOM.random(PEOPLE * ITEMS) < 0.6).astype(float)
DESIGN = RANDOM.standard_normal((24, 4)) * (RANDOM.random((24, 4)) < 0.6)
COUNT = RANDOM.poisson(2.0, 24).astype(float)
CHAIN = RANDOM.poisson(3.0, SITES).astype(float)


def answers(seen, row):
    score = jnp.exp(seen["slope"]) * (seen["ability"] - seen["difficulty"])
    return row * score - jnp.logaddexp(0.0, score)


def crossed(rows, names, answer=ANSWER):
    """Items see two leaves, which are renumbered together; rows of the prior have no data."""
    person, item = names(PEOPLE), names(ITEMS)
    order = rows(len(answer))
    target = qd.sum_of(
        qd.each(
            answers,
            answer[order],
            sees={"ability": person[PERSON[order]], "difficulty": item[ITEM[order]], "slope": item[ITEM[order]]},
        ),
        qd.each(
            lambda seen: norm.logpdf(seen["ability"], 0.0, jnp.exp(seen["log_sd"])),
            sees={"ability": qd.each_entry, "log_sd": qd.whole},
        ),
        qd.each(
            lambda seen: norm.logpdf(seen["difficulty"]) + norm.logpdf(seen["slope"], 0.0, 0.5),
            sees={"difficulty": qd.each_entry, "slope": qd.each_entry},
        ),
        qd.each(lambda seen: norm.logpdf(seen["log_sd"], -0.5, 0.5), sees={"log_sd": qd.whole}),
    )
    start = {"ability": np.zeros(PEOPLE), "difficulty": np.zeros(ITEMS), "slope": np.zeros(ITEMS), "log_sd": 0.0}
    return target, start, {"ability": person, "difficulty": item, "slope": item}


def alike(rows, names):
    """People with the same answers, who cannot be told apart."""
    return crossed(rows, names, np.tile(ANSWER[:ITEMS], PEOPLE))


def counts(seen, row):
    score = seen["w"][0] + seen["w"][1] * jnp.tanh(seen["u"])
    return row * score - jnp.exp(score)


def designed(rows, names, store=np.asarray):
    """Two linear predictors of weights that go together, one of them times an effect."""
    weight, group, order = names(4), names(5), rows(24)
    columns = np.argsort(weight)
    target = qd.sum_of(
        qd.each(
            counts,
            COUNT[order],
            sees={"w": qd.dot(store(DESIGN[order][:, columns])), "u": group[np.arange(24) % 5][order]},
        ),
        qd.each(lambda seen: jnp.sum(norm.logpdf(seen["w"], 0.0, 0.5)), sees={"w": qd.each_entry}),
        qd.each(lambda seen: norm.logpdf(seen["u"], 1.0, 0.5), sees={"u": qd.each_entry}),
    )
    return target, {"w": np.zeros((4, 2)), "u": np.zeros(5)}, {"w": weight, "u": group}


def designed_sparse(rows, names):
    """The same, of a sparse matrix."""
    return designed(rows, names, sparse.csr_array)


def chain(rows, names):
    """Rows that see a site and the next, in this order."""
    site, order = names(SITES), rows(SITES - 1)
    link = np.arange(SITES - 1)[order]
    target = qd.sum_of(
        qd.each(
            lambda seen, row: row * seen["h"] - jnp.exp(seen["h"]),
            CHAIN[np.argsort(site)],
            sees={"h": qd.each_entry},
        ),
        qd.each(
            lambda seen: norm.logpdf(seen["h"][1], seen["rate"] * seen["h"][0], 0.5),
            sees={"h": (site[link], site[link + 1]), "rate": qd.whole},
        ),
        qd.each(lambda seen: norm.logpdf(seen["rate"], 0.5, 0.3), sees={"rate": qd.whole}),
        qd.each(lambda seen: norm.logpdf(seen["h"], 1.0, 2.0), sees={"h": site[:1]}),
    )
    return target, {"h": np.zeros(SITES), "rate": 0.5}, {"h": site}


def answer_of(model, rows, names, **options):
    target, start, numbers = model(rows, names)
    fit = qd.fit(target, start, draws=16, tolerance=1e-6, check=16, progress=False, throw=False, **options)
    as_before = lambda tree: {name: value[numbers[name]] if name in numbers else value for name, value in tree.items()}
    return fit.bound, as_before(fit.mean), as_before(fit.sd)


PLAIN: dict[object, tuple] = {}


@pytest.mark.parametrize("model", [crossed, alike, designed, designed_sparse, chain])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_order_of_rows_and_numbers_of_parameters_make_no_difference(model, seed):
    random = np.random.default_rng(seed)
    if model not in PLAIN:
        PLAIN[model] = answer_of(model, np.arange, np.arange)
    bound, mean, sd = PLAIN[model]
    other, means, sds = answer_of(model, random.permutation, random.permutation)
    assert other == pytest.approx(bound, abs=1e-6)
    for name in mean:
        np.testing.assert_allclose(means[name], mean[name], atol=1e-6)
        np.testing.assert_allclose(sds[name], sd[name], atol=1e-6)


def nested(rows, names, groups=40, each=3):
    """More groups with the same content than may share their draws."""
    group, order = names(groups), rows(groups * each)
    belongs, content = np.divmod(np.arange(groups * each), each)
    target = qd.sum_of(
        qd.each(
            lambda seen, row: row * (score := seen["u"] * jnp.exp(seen["log_sd"])) - jnp.exp(score),
            content[order].astype(float),
            sees={"u": group[belongs[order]], "log_sd": qd.whole},
        ),
        qd.each(lambda seen: norm.logpdf(seen["u"]), sees={"u": qd.each_entry}),
        qd.each(lambda seen: norm.logpdf(seen["log_sd"]), sees={"log_sd": qd.whole}),
    )
    return target, {"u": np.zeros(groups), "log_sd": 0.0}, {"u": group}


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_many_that_are_alike_swap_their_answers_at_most(seed):
    random = np.random.default_rng(seed)
    bound, mean, _ = answer_of(nested, np.arange, np.arange)
    other, means, _ = answer_of(nested, random.permutation, random.permutation)
    assert other == pytest.approx(bound, abs=1e-6)
    assert means["log_sd"] == pytest.approx(mean["log_sd"], abs=1e-6)
    np.testing.assert_allclose(np.sort(means["u"]), np.sort(mean["u"]), atol=1e-6)
    assert len(np.unique(mean["u"].round(8))) > 8  # their errors do not add up
