"""Sums of terms: the same log density as one written out, what each row sees, and words for every bad structure."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from jax.scipy.stats import norm

import quenched as qd
from quenched.diagnostics import check_structure
from quenched.objective import make_problem
from quenched.targets import local_terms
from quenched.transforms import describe_space
from registry import FAMILIES

RANDOM = np.random.default_rng([7, 11])
N, STUDENTS, COLUMNS = 30, 5, 3
DESIGN = RANDOM.standard_normal((N, COLUMNS))
STUDENT = np.concatenate([np.arange(STUDENTS), RANDOM.integers(0, STUDENTS, N - STUDENTS)])
LINKS = RANDOM.integers(0, 3, (N, 2))
ROWS = {"y": RANDOM.integers(0, 2, N).astype(float), "slope": RANDOM.standard_normal((N, 2))}
START = {
    "student": np.zeros(STUDENTS),
    "scale": 1.0,
    "beta": np.zeros((COLUMNS, 2)),
    "cuts": np.array([-1.0, 0.5]),
    "low": np.array([1.0, 2.0, 3.0]),
}
TRANSFORMS = {"scale": qd.positive, "cuts": qd.ordered, "low": qd.above([0.0, 1.0, 2.0])}


def likelihood(seen, row):
    score = seen["student"] + seen["beta"] @ row["slope"] + seen["low"][0] - 0.5 * seen["low"][1] + seen["cuts"][1]
    return row["y"] * score - jnp.logaddexp(0.0, score)


def effect(seen):
    return norm.logpdf(seen["student"], 0.0, seen["scale"])


def prior(seen):
    return sum(jnp.sum(norm.logpdf(value)) for value in seen.values())


def written_out(p, data):
    score = p["student"][STUDENT] + jnp.sum((DESIGN @ p["beta"]) * data["slope"], axis=1)
    score = score + p["low"][LINKS[:, 0]] - 0.5 * p["low"][LINKS[:, 1]] + p["cuts"][1]
    others = sum(jnp.sum(norm.logpdf(p[name])) for name in ("beta", "cuts", "scale", "low"))
    effects = jnp.sum(norm.logpdf(p["student"], 0.0, p["scale"]))
    return jnp.sum(data["y"] * score - jnp.logaddexp(0.0, score)) + effects + others


def terms(order=slice(None), design=DESIGN):
    """The sum with its rows in some order."""
    sees = {
        "student": STUDENT[order],
        "beta": qd.dot(design[order]),
        "low": (LINKS[order, 0], LINKS[order, 1]),
        "cuts": qd.whole,
    }
    return qd.sum_of(
        qd.each(likelihood, {name: rows[order] for name, rows in ROWS.items()}, sees=sees),
        qd.each(effect, sees={"student": qd.each_entry, "scale": qd.whole}),
        qd.each(prior, sees=dict.fromkeys(("beta", "cuts", "scale", "low"), qd.whole)),
    )


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "warped"])
def test_a_sum_of_terms_is_the_log_density_written_out(name):
    family = FAMILIES[name](sum(np.size(leaf) for leaf in START.values()))
    options = {"transforms": TRANSFORMS, "family": family, "draws": 64, "check": 32, "progress": False}
    one = qd.fit(terms(design=scipy.sparse.csr_array(DESIGN)), START, **options)
    other = qd.fit(written_out, START, data=ROWS, **options)
    assert one.bound == pytest.approx(other.bound, abs=1e-6)
    np.testing.assert_allclose(one.posterior.mean, other.posterior.mean, atol=1e-4)
    np.testing.assert_allclose(one.covariance, other.covariance, atol=1e-4)


def test_rows_on_the_real_line_add_up_to_the_density_there():
    order = np.random.default_rng(1).permutation(N)
    with jax.enable_x64(True):
        space, vector = describe_space(START, TRANSFORMS)
        vector = vector + 0.3 * np.random.default_rng(0).standard_normal(space.dim)
        target = terms()
        problem = make_problem(target, space, None, None)
        whole = float(jax.jit(problem.function)(vector, problem.data, jnp.zeros(0)))
        local = local_terms(target.terms, target.data, space)
        rows = [np.asarray(jax.vmap(term.log_density)(term.gather(vector), term.held)) for term in local]
        assert sum(values.sum() for values in rows) == pytest.approx(whole, rel=1e-12)
        assert [term.size for term in local] == [1 + 2 + 2 + 2, 2, 6 + 2 + 1 + 3, 2, 1, 1]
        parameters = space.to_natural(vector)
        by_row = jax.jit(target.terms.log_densities)(parameters, (target.data, None))
        for one, other in zip(rows, by_row, strict=False):
            np.testing.assert_allclose(one, other, rtol=1e-10)
        permuted = terms(order)
        again = jax.jit(permuted.terms.log_densities)(parameters, (permuted.data, None))
        np.testing.assert_allclose(again[0], np.asarray(by_row[0])[order], rtol=1e-10)


def shared(seen, row, *, data, hyper):
    return -0.5 * (row - data * seen["w"]) ** 2 - 0.5 * jnp.exp(hyper) * seen["w"] ** 2 + 0.5 * hyper


def test_functions_are_given_data_and_hyper_if_they_ask_for_them():
    target = qd.sum_of(qd.each(shared, np.arange(4.0), sees={"w": qd.each_entry}))
    fit = qd.fit(
        target, {"w": np.zeros(4)}, data=np.asarray(2.0), hyper=np.asarray(0.0), family="diagonal", progress=False
    )
    precision = 4.0 + np.exp(float(fit.hyper))
    np.testing.assert_allclose(fit.mean["w"], 2.0 * np.arange(4.0) / precision, atol=1e-3)
    np.testing.assert_allclose(fit.sd["w"], precision**-0.5, rtol=1e-3)
    data = np.array([1.0, 2.0])
    many = qd.fit_many(target, {"w": np.zeros(4)}, data=data, hyper=np.asarray(0.0), family="diagonal", progress=False)
    assert many.bound[1] == pytest.approx(fit.bound, abs=1e-3)


def one(sees, data=None, start=None, **options):
    """Fit a sum of one term."""
    function = (lambda seen, row: -row) if data is not None else (lambda seen: 0.0)
    start = {"a": np.zeros(3), "b": 0.0} if start is None else start
    return qd.fit(qd.sum_of(qd.each(function, data, sees=sees)), start, progress=False, **options)


MASKED = np.ma.masked_array([0.0, 1.0], mask=[True, False])


def column_too_many():
    matrix = scipy.sparse.csr_array(np.ones((2, 3)))
    matrix.indices[0] = 77
    return matrix


BAD = {
    "no each": (lambda: qd.sum_of(), "there are none"),
    "not an each": (lambda: qd.sum_of(lambda seen: 0.0), "place 0"),
    "not callable": (lambda: qd.each(3, sees={"a": qd.whole}), "function=3"),
    "sees nothing": (lambda: qd.each(effect, sees={}), "a term that sees no parameter"),
    "rows differ in number": (lambda: one({"a": [0, 1, 2]}, np.zeros(4)), "data has 4"),
    "rows differ in what they see": (
        lambda: one({"a": [[0, 1], [2]]}),
        r"differ in how many entries they see \(1, 2\)",
    ),
    "indices of two lengths": (lambda: one({"a": ([0, 1], [2])}), r"lengths \[1, 2\]"),
    "missing leaf": (lambda: one({"c": [0]}), "no parameter 'c'; start has 'a', 'b'"),
    "out of range": (lambda: one({"a": [0, 3]}), "goes up to 3, but the leaf has 3"),
    "from the end": (lambda: one({"a": [0, -1]}), "-1 in row 1"),
    "a mask": (lambda: one({"a": [True, False, True]}), "flatnonzero"),
    "no codes of categories": (lambda: one({"a": pd.Series(["x", "y"], dtype="category")}), r"index.cat.codes"),
    "labels": (lambda: one({"a": np.array(["x", "y"])}), "return_inverse"),
    "labels as objects": (lambda: one({"a": ["x", "y"]}), "return_inverse"),
    "no argument for the row": (
        lambda: qd.each(lambda seen: 0.0, np.zeros(3), sees={"a": qd.each_entry}),
        r"called as function\(seen, row\), since there are data .* takes \(seen\)",
    ),
    "an argument for a row that is not there": (
        lambda: qd.each(lambda seen, row, *, hyper: 0.0, sees={"a": qd.each_entry}),
        r"function\(seen, hyper=hyper\), since there are no data .* missing a required argument: 'row'",
    ),
    "not whole": (lambda: one({"a": [0.5]}), "float64"),
    "a number without entries": (lambda: one({"a": [0, 1, 2], "b": [0, 0, 0]}), "'b' is a single number"),
    "design of another size": (lambda: one({"a": qd.dot(np.ones((4, 2)))}), "2 columns, but the leaf has 3"),
    "design not finite": (lambda: qd.dot([[np.nan]]), "not finite"),
    "design of complex numbers": (lambda: qd.dot([[1j]]), "imaginary part"),
    "sparse design of complex numbers": (lambda: qd.dot(scipy.sparse.csr_array([[1j]])), "imaginary part"),
    "design with a mask": (lambda: qd.dot(MASKED[None]), "masked values"),
    "sparse design with a column too many": (lambda: qd.dot(column_too_many()), "no sparse matrix that can be read"),
    "index with a mask": (lambda: one({"a": MASKED.astype(int)}), "masked values"),
    "indices with a mask": (lambda: one({"a": ([0, 1], MASKED.astype(int))}), "masked values"),
    "design no matrix": (lambda: qd.dot([1.0]), r"shape \(1,\)"),
    "entries that differ": (lambda: one({"a": qd.each_entry}, np.zeros(4)), "a: 3, its rows: 4"),
    "NaN": (lambda: one({"a": qd.each_entry}, np.array([0.0, np.nan, 0.0])), "first at index"),
    "unseen leaf": (lambda: one({"a": qd.each_entry}), "no term sees 'b'"),
    "unseen entry": (lambda: one({"a": [0, 2], "b": qd.whole}), r"no row of any term sees a\[1\]"),
    "designs that leave a direction": (
        lambda: one({"a": qd.dot([[1.0, 1.0, 0.0], [1.0, 1.0, 2.0]]), "b": qd.whole}),
        r"do not tell a\[\d\], a\[\d\] apart",
    ),
    "data that nobody asks for": (lambda: one({"a": qd.whole, "b": qd.whole}, data=None, hyper=0.5), "hyper: no term"),
    "hyper is missing": (
        lambda: qd.fit(qd.sum_of(qd.each(shared, np.zeros(2), sees={"w": qd.each_entry})), {"w": np.zeros(2)}),
        "data: is missing",
    ),
    "not one number": (
        lambda: qd.fit(
            qd.sum_of(qd.each(lambda seen: -(seen["a"] ** 2), sees={"a": qd.whole})),
            {"a": np.zeros(3)},
            progress=False,
            family="diagonal",
        ),
        r"shape \(3,\) for one row",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_structure_is_named(name):
    act, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        act()


def test_a_wrong_structure_is_found_out_and_the_pair_is_named():
    check_structure(terms(), written_out, START, data=ROWS, transforms=TRANSFORMS)
    unsaid = lambda p, data: written_out(p, data) - 0.1 * p["student"][1] * p["student"][4]
    with pytest.raises(ValueError, match=r"student\[[14]\] and student\[[14]\] meet in no term"):
        check_structure(terms(), unsaid, START, data=ROWS, transforms=TRANSFORMS)
    both_ways = lambda p, data: written_out(p, data) - 0.1 * (p["student"][1] * p["student"][4]) ** 2
    steep = {**START, "scale": 0.01}  # second derivatives of 1e6 beside those that are missing
    for density, start in ((both_ways, START), (both_ways, steep), (unsaid, steep)):
        with pytest.raises(ValueError, match=r"student\[[14]\] and student\[[14]\] meet in no term"):
            check_structure(terms(), density, start, data=ROWS, transforms=TRANSFORMS)
    at_odds = lambda p, data: written_out(p, data) - 0.1 * (p["student"][1] * p["scale"]) ** 2
    with pytest.raises(ValueError, match=r"(student\[1\]∂scale|scale∂student\[1\]) is .*; let a term see both"):
        check_structure(terms(), at_odds, START, data=ROWS, transforms=TRANSFORMS)
    sloping = lambda p, data: written_out(p, data) + 0.1 * p["student"][3]
    with pytest.raises(ValueError, match=r"slope in student\[3\] differs by 0.1"):
        check_structure(terms(), sloping, START, data=ROWS, transforms=TRANSFORMS)
    with pytest.raises(ValueError, match="has no structure"):
        check_structure(written_out, written_out, START, data=ROWS)
    with pytest.raises(ValueError, match="no parameter 'student'"):
        check_structure(terms(), written_out, np.zeros(2), data=ROWS)
    with pytest.raises(ValueError, match="data: y has 1 NaN"):
        check_structure(terms(), written_out, START, data={**ROWS, "y": np.where(np.arange(N) == 3, np.nan, ROWS["y"])})


@pytest.mark.parametrize("classes", [1, 12])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_row_of_zeros_in_a_design_sees_a_number_that_does_not_vary(classes, sparse):
    """As of a category that the others are compared with: it adds a constant. Factors are written out, or LAPACK's."""
    design, y = np.array([[1.0, 0.5], [0.0, 0.0], [-0.3, 1.0]]), RANDOM.standard_normal((3, classes))
    rows = qd.each(
        lambda seen, y: -0.5 * jnp.sum((y - seen["w"]) ** 2),
        y,
        sees={"w": qd.dot(scipy.sparse.csr_array(design) if sparse else design)},
    )
    prior = qd.each(lambda seen: -0.5 * jnp.sum(seen["w"] ** 2), sees={"w": qd.each_entry})
    fit = qd.fit(qd.sum_of(rows, prior), {"w": np.zeros((2, classes))}, progress=False)
    covariance = np.linalg.inv(design.T @ design + np.eye(2))
    np.testing.assert_allclose(fit.mean["w"], covariance @ design.T @ y, atol=1e-6)
    np.testing.assert_allclose(fit.sd["w"], np.sqrt(np.diag(covariance))[:, None] * np.ones(classes), atol=1e-6)
