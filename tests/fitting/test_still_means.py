"""An ascent of a sum of terms goes on while its means move, however little its steps have to gain."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import quenched as qd
from quenched.fitting import terms

SIDE = 40
RANDOM = np.random.default_rng([3, SIDE])
PLACES = np.arange(SIDE**2).reshape(SIDE, SIDE)
ONE = np.concatenate([PLACES[:-1].ravel(), PLACES[:, :-1].ravel()])
OTHER = np.concatenate([PLACES[1:].ravel(), PLACES[:, 1:].ravel()])
X, Y = np.meshgrid(np.linspace(0.0, 3.0, SIDE), np.linspace(0.0, 3.0, SIDE))
FIELD = np.sin(X) * np.cos(Y) + 0.3 * RANDOM.standard_normal((SIDE, SIDE))
COUNTS = RANDOM.poisson(np.exp(1.0 + 0.7 * FIELD.ravel())).astype(float)


def edge(seen):
    return -0.5 * jnp.exp(seen["log_precision"]) * (seen["x"][0] - seen["x"][1]) ** 2


TARGET = qd.sum_of(
    qd.each(lambda seen, y: y * seen["x"] - jnp.exp(seen["x"]), COUNTS, sees={"x": qd.each_entry}),
    qd.each(edge, sees={"x": (ONE, OTHER), "log_precision": qd.whole}),
    qd.each(
        lambda seen: 0.5 * seen["log_precision"] - 0.05 * seen["x"] ** 2,
        sees={"x": qd.each_entry, "log_precision": qd.whole},
    ),
    qd.each(lambda seen: norm.logpdf(seen["log_precision"], 0.0, 2.0), sees={"log_precision": qd.whole}),
)


def fitted():
    return qd.fit(TARGET, {"x": np.zeros(SIDE**2), "log_precision": 0.0}, draws=32, progress=False)


def test_a_precision_that_is_learned_is_where_the_bound_is_highest(monkeypatch):
    """A map of counts: its steps gain 1e-5 nats each while the log precision is still 0.05 posterior sds from its place."""
    fit = fitted()
    monkeypatch.setattr(terms, "_AT_MOST", (1e-10, 0.0))
    top = fitted()
    assert fit.converged
    assert fit.mean["log_precision"] == pytest.approx(top.mean["log_precision"], abs=0.01 * top.sd["log_precision"])
    assert fit.n_objective_evaluations < top.n_objective_evaluations
