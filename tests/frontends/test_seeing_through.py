"""Log densities as sums of terms, read off their programs: every row sees what it needs, and no more."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

from quenched.frontends.seeing_through import see_through

RANDOM = np.random.default_rng([14, 2])
N, GROUPS = 300, 100
GROUP, OTHER = RANDOM.integers(0, GROUPS, N), RANDOM.integers(0, GROUPS, N)
DESIGN, TABLE = RANDOM.standard_normal((N, 50)), RANDOM.integers(0, 2, (GROUPS, 4))


def predictors(p):
    score = p["u"][GROUP] + DESIGN @ p["w"] + jnp.exp(p["log_sd"])
    return jnp.sum(jax.nn.log_sigmoid(score)) + jnp.sum(norm.logpdf(p["w"])) - jnp.sum(p["u"] ** 2) / p["log_sd"] ** 2


def pairs(p):
    apart = p["u"][np.stack([GROUP, OTHER], axis=1)]
    return norm.logpdf(p["u"][3]) + jnp.sum(norm.logpdf(apart[:, 0] - apart[:, 1])) - 0.5 * p["u"] @ p["u"]


def chain(p):
    first = jnp.where(jnp.all(jnp.isfinite(p["u"])), norm.logpdf(p["u"][0]), -jnp.inf)
    return first + jnp.sum(norm.logpdf(p["u"][1:], p["u"][:-1]))


def crossed(p):
    score = p["slope"] * (p["u"][:, None] - p["slope"][None, :])
    return jnp.sum(TABLE * score - jnp.logaddexp(0.0, score)) - jnp.sum(p["u"] ** 2) - jnp.sum(p["slope"] ** 2)


def classes(p):
    logits = jax.nn.log_softmax(p["u"][:, None] * p["slope"][None, :])
    return (
        jnp.sum(jnp.take_along_axis(logits, TABLE[:, :1], axis=1))
        + jnp.sum(norm.logpdf(p["u"]))
        - p["slope"] @ p["slope"]
    )


CASES = {
    predictors: (
        {"u": GROUPS, "w": 50, "log_sd": None},
        [{"u": "index", "w": "dot", "log_sd": "whole"}, {"w": "index"}, {"u": "index", "log_sd": "whole"}],
    ),
    pairs: ({"u": GROUPS}, [{"u": "index"}, {"u": "index"}, {"u": "index"}]),
    chain: ({"u": GROUPS}, [{"u": "index"}, {"u": "index"}]),
    crossed: (
        {"u": GROUPS, "slope": 4},
        [{"slope": "index", "u": "index"}, {"u": "index"}, {"slope": "index"}],
    ),
    classes: ({"u": GROUPS, "slope": 4}, [{"u": "index", "slope": "whole"}, {"u": "index"}, {"slope": "index"}]),
}


@pytest.fixture(autouse=True)
def _in_double():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("function", CASES, ids=lambda one: one.__name__)
def test_rows_see_what_they_need(function):
    sizes, expected = CASES[function]
    start = {name: np.full(() if size is None else size, 0.3) for name, size in sizes.items()}
    reading = see_through(function, start)
    assert reading.target is not None, reading.says
    found = [{part.leaf: part.kind for part in term.parts} for term in reading.target.terms.terms]
    key = lambda one: sorted(one.items())
    assert sorted(found, key=key) == sorted(expected, key=key)
    point = {name: value + 0.2 * RANDOM.standard_normal(np.shape(value)) for name, value in start.items()}
    np.testing.assert_allclose(reading.target.function(point, (reading.target.data, None)), function(point), rtol=1e-12)


def test_what_cannot_be_seen_through_says_so():
    matrix = RANDOM.standard_normal((GROUPS, GROUPS))
    reading = see_through(lambda p: -jnp.sum(jnp.tanh(matrix @ jnp.tanh(p["u"])) ** 2), {"u": np.zeros(GROUPS)})
    assert reading.target is None
    assert f"some of its terms see {GROUPS}" in reading.says
    assert see_through(predictors, {"u": np.zeros(3)}).says == ""  # too small to be worth it
