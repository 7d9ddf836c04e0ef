"""The outer problem: where its searches begin, its long tails, and how much may be inside."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenched as qd
from long.nesting.test_nested import GROUP, Y, normal, of_effect, of_row
from quenched.nesting import NestedOptions, pose
from quenched.nesting.newton import Conditionals
from quenched.nesting.remembered import Remembered

START = {"effect": np.zeros(6), "level": 0.0, "log_sd": 0.0}


def test_the_nearest_solution_is_where_a_search_begins():
    remembered = Remembered(1, 1, least=2)
    old, new = np.array([[0.0], [5.0]]), np.array([[0.2], [9.0]])
    remembered.keep(old, Conditionals(old.T, 1.0 + old.T), np.array([True, True]))
    remembered.keep(new, Conditionals(new.T, 1.0 + new.T), np.array([True, False]))
    near = remembered.near(np.array([[0.15], [4.9], [9.0]]), np.ones(1))
    assert near is not None
    np.testing.assert_array_equal(near.known, [True, True, False])  # what failed is not remembered, what is far no help
    np.testing.assert_array_equal(near.conditionals.mean[0, :2], [0.2, 5.0])
    assert Remembered(10_000, 10**8, least=2).near(old, np.ones(1)) is None  # nor is what would fill the memory


BINARY = qd.sum_of(
    qd.each(
        lambda seen, y: y * seen["effect"] - jnp.logaddexp(0.0, seen["effect"]), 1.0 * (Y > 0.5), sees={"effect": GROUP}
    ),
    qd.each(of_effect, sees={"effect": qd.each_entry, "log_sd": qd.whole}),
    qd.each(lambda seen: normal(seen["log_sd"], 0.0, 1.0), sees={"log_sd": qd.whole}),
)


def test_searches_near_a_solution_are_short():
    problem = pose(BINARY, {"effect": np.zeros(6), "log_sd": 0.0}, ["log_sd"], NestedOptions(progress=False)).problem
    thetas = np.linspace(-2.0, 1.0, 20)[:, None]
    first = problem.solved(thetas)
    again = problem.solved(thetas + 1e-4)
    assert again.n_steps.max() < first.n_steps.max()
    assert again.error.max() < 1e-6
    np.testing.assert_allclose(problem.solved(thetas).bound, first.bound, rtol=1e-12)


def test_rows_with_slopes_of_their_own_depend_on_one_number():
    """Effects times what differs from row to row: the same as a predictor of which the coefficients are known."""
    x, binary = np.linspace(-1.0, 1.0, len(Y)), 1.0 * (Y > 0.5)
    logistic = lambda predictor, y: y * predictor - jnp.logaddexp(0.0, predictor)

    def of_slopes(seen, row):
        level, slope = seen["effect"]
        return logistic(level + slope * row["x"], row["y"])

    def posed(*rows):
        effects = qd.each(
            lambda seen: jnp.sum(normal(seen["effect"] * jnp.exp(-seen["log_sd"]), 0.0, 1.0) - seen["log_sd"]),
            sees={"effect": qd.each_entry, "log_sd": qd.whole},
        )
        outer = qd.each(lambda seen: normal(seen["log_sd"], 0.0, 1.0), sees={"log_sd": qd.whole})
        start = {"effect": np.zeros((6, 2)), "log_sd": 0.0}
        return pose(qd.sum_of(*rows, effects, outer), start, ["log_sd"], NestedOptions(progress=False)).problem

    places = [np.flatnonzero(group == GROUP) for group in range(6)]
    own = posed(qd.each(of_slopes, {"x": x, "y": binary}, sees={"effect": GROUP}))
    one_by_one = posed(
        *(
            qd.each(
                lambda seen, y, at=at: logistic(seen["effect"][0] + at * seen["effect"][1], y),
                binary[[n]],
                sees={"effect": [group]},
            )
            for group, rows in enumerate(places)
            for n, at in zip(rows, x[rows], strict=True)
        )
    )
    assert own.handed.arrays.terms[0].z.shape[1] == 1
    thetas = np.linspace(-1.0, 0.5, 4)[:, None]
    np.testing.assert_allclose(own.values(thetas), one_by_one.values(thetas), rtol=1e-9)


def of_half_normal(seen):
    """A standard deviation that may be zero: the density of its logarithm falls off like an exponential."""
    return normal(jnp.exp(seen["log_sd"]), 0.0, 2.0) + seen["log_sd"]


SMALL = qd.sum_of(
    qd.each(of_row, 0.4 * Y, sees={"effect": GROUP, "level": qd.whole}),
    qd.each(of_effect, sees={"effect": qd.each_entry, "log_sd": qd.whole}),
    qd.each(lambda seen: normal(seen["level"], 0.0, 3.0), sees={"level": qd.whole}),
    qd.each(of_half_normal, sees={"log_sd": qd.whole}),
)


def test_long_tails_are_found_and_followed():
    """Against a grid: half of the mass of log_sd is where the effects are as good as none."""
    posed = pose(SMALL, START, ["log_sd"], NestedOptions(progress=False))
    grid = np.linspace(-14.0, 3.0, 681)
    logs = posed.problem.values(grid[:, None])
    weights = np.exp(logs - logs.max())
    evidence = np.log(weights.sum() * (grid[1] - grid[0])) + logs.max()
    weights /= weights.sum()
    mean = weights @ grid
    sd = np.sqrt(weights @ (grid - mean) ** 2)
    fit = qd.nested(SMALL, START, ["log_sd"], progress=False)
    tails = fit.posterior.member.tails
    assert tails[2] > 0.3
    assert tails[3] == 0.0
    assert fit.mean["log_sd"] == pytest.approx(mean, abs=0.1 * sd)
    assert fit.sd["log_sd"] == pytest.approx(sd, rel=0.1)
    assert fit.sample(20_000)["log_sd"].std() == pytest.approx(sd, rel=0.1)
    assert fit.settings["log_evidence"] == pytest.approx(evidence, abs=0.05)
    z = np.random.default_rng(3).standard_normal((5, 8))
    with jax.enable_x64(True):
        member = fit.posterior.member
        np.testing.assert_allclose(member.standardise(np.asarray(member.transform(z))), z, atol=1e-6)


def test_gradients_hold_where_tails_are_shortened():
    problem = pose(SMALL, START, ["log_sd"], NestedOptions(progress=False)).problem
    problem = replace(problem, tails=np.array([[-0.5], [0.6], [1.5], [0.2]]))
    at = lambda x: problem.log_densities({"log_sd": np.array(x)})
    points = np.array([-1.5, -0.4, 1.0])
    values, slopes = at(points)
    assert np.isfinite(values).all()
    ahead, behind = (at(points + step)[0] for step in (1e-4, -1e-4))
    np.testing.assert_allclose(np.ravel(slopes["log_sd"]), (ahead - behind) / 2e-4, rtol=1e-6, atol=1e-6)


def crossed(n):
    rows = np.arange(n)
    effect = lambda name: qd.each(
        lambda seen: normal(seen[name], 0.0, jnp.exp(seen["log_sd"])),
        sees={name: qd.each_entry, "log_sd": qd.whole},
    )
    return lambda other: qd.sum_of(
        qd.each(lambda seen, y: normal(y, seen["a"] + seen["b"], 1.0), np.zeros(n), sees={"a": rows, "b": other}),
        effect("a"),
        effect("b"),
        qd.each(lambda seen: normal(seen["log_sd"], 0.0, 1.0), sees={"log_sd": qd.whole}),
    )


def test_thousands_are_possible_inside_where_few_go_together():
    start = lambda n, m: {"a": np.zeros(n), "b": np.zeros(m), "log_sd": 0.0}
    posed = pose(crossed(1500)(np.zeros(1500, int)), start(1500, 1), ["log_sd"], NestedOptions(progress=False))
    assert posed.problem.inner.algebra.layout.n_entries < 10_000
    scattered = np.random.default_rng(1).integers(0, 600, 6000)
    with pytest.raises(ValueError, match="6600 parameters are left inside"):
        qd.nested(crossed(6000)(scattered), start(6000, 600), ["log_sd"], progress=False)
