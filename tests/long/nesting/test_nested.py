"""Nested fits against a hierarchical model that one integral solves: sd of effects, effects, noise known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import quenched as qd
from quenched.nesting.outer import Outer, make_outer
from quenched.nesting.split import split
from quenched.nesting.whole import CHECK
from quenched.transforms import describe_space

GROUP = np.repeat(np.arange(6), 3)
Y = np.array([1.9, 2.5, 1.2, -0.4, 0.3, -0.9, 0.8, 1.5, 0.2, -1.8, -2.2, -0.9, 0.4, 0.1, 1.1, 2.9, 2.2, 3.4])
START = {"effect": np.zeros(6), "level": 0.0, "log_sd": 0.0}


def normal(x, mean, sd):
    return -0.5 * ((x - mean) / sd) ** 2 - jnp.log(sd) - 0.5 * jnp.log(2.0 * jnp.pi)


def of_row(seen, y):
    return normal(y, seen["level"] + seen["effect"], 1.0)


def of_effect(seen):
    return normal(seen["effect"], 0.0, jnp.exp(seen["log_sd"]))


def of_level(seen):
    return normal(seen["level"], 0.0, 3.0)


def of_log_sd(seen):
    return normal(seen["log_sd"], 0.0, 1.0)


def written_out(parameters, data):
    rows = normal(data, parameters["level"] + parameters["effect"][GROUP], 1.0)
    effects = normal(parameters["effect"], 0.0, jnp.exp(parameters["log_sd"]))
    return jnp.sum(rows) + jnp.sum(effects) + of_level(parameters) + of_log_sd(parameters)


TERMS = qd.sum_of(
    qd.each(of_row, Y, sees={"effect": GROUP, "level": qd.whole}),
    qd.each(of_effect, sees={"effect": qd.each_entry, "log_sd": qd.whole}),
    qd.each(of_level, sees={"level": qd.whole}),
    qd.each(of_log_sd, sees={"log_sd": qd.whole}),
)


def exact():
    """Evidence, and mean and sd of log_sd and level, on a grid of log_sd."""
    grid = np.linspace(-5.0, 4.0, 801)
    same = GROUP[:, None] == GROUP
    log_weights, levels = [], []
    for log_sd in grid:
        within = np.eye(len(Y)) + np.exp(2.0 * log_sd) * same
        log_weights.append(multivariate_normal(np.zeros(len(Y)), within + 9.0).logpdf(Y) - 0.5 * log_sd**2)
        precision = np.sum(np.linalg.inv(within)) + 1.0 / 9.0
        levels.append((np.sum(np.linalg.solve(within, Y)) / precision, 1.0 / precision))
    log_weights = np.array(log_weights) - 0.5 * np.log(2.0 * np.pi)
    weights = np.exp(log_weights)
    evidence = np.log(np.trapezoid(weights, grid))
    weights = weights / weights.sum()
    centre, spread = np.array(levels).T
    mean, level = weights @ grid, weights @ centre
    return {
        "evidence": evidence,
        "log_sd": (mean, np.sqrt(weights @ (grid - mean) ** 2)),
        "level": (level, np.sqrt(weights @ (spread + (centre - level) ** 2))),
    }


@pytest.fixture(scope="package")
def by_terms():
    return qd.nested(TERMS, START, progress=False)


def test_marginals_and_evidence_are_those_of_the_integral(by_terms):
    truth = exact()
    assert by_terms.settings["outer"] == ["log_sd"]  # the level is Gaussian given it, and stays inside
    assert by_terms.converged
    for name in ("log_sd", "level"):
        mean, sd = truth[name]
        assert by_terms.mean[name] == pytest.approx(mean, abs=0.03 * sd)
        assert by_terms.sd[name] == pytest.approx(sd, rel=0.05)
    assert by_terms.evidence == pytest.approx(truth["evidence"], abs=0.03)
    samples = by_terms.sample(20_000, seed=1)
    assert samples["level"].std() == pytest.approx(truth["level"][1], rel=0.05)


def test_a_nested_fit_is_saved_and_loaded(by_terms, tmp_path):
    loaded = qd.load(by_terms.save(tmp_path / "nested.npz"))
    for name in START:
        np.testing.assert_array_equal(loaded.mean[name], by_terms.mean[name])
        np.testing.assert_array_equal(loaded.sample(5)[name], by_terms.sample(5)[name])
    assert loaded.evidence == by_terms.evidence
    assert loaded.attach(TERMS).origin is not None  # which finds the same bound
    assert "log_sd" in str(loaded)


def of_scale(seen):
    return seen["log_sd"] - jnp.exp(seen["log_sd"])


def test_the_bound_is_that_of_fresh_draws():
    """Of a standard deviation that may as well be zero, with a long tail: where it is small the density of the effects is large."""
    random, group = np.random.default_rng(5), np.repeat(np.arange(20), 2)
    y = 0.3 * random.standard_normal(20)[group] + random.standard_normal(40)
    target = qd.sum_of(
        qd.each(lambda seen, y: normal(y, seen["effect"], 1.0), y, sees={"effect": group}),
        qd.each(of_effect, sees={"effect": qd.each_entry, "log_sd": qd.whole}),
        qd.each(of_scale, sees={"log_sd": qd.whole}),
    )
    fit = qd.nested(target, {"effect": np.zeros(20), "log_sd": -1.0}, progress=False)
    assert fit.sd["log_sd"] > 1.0
    assert fit.bound == pytest.approx(fit.check_bound, abs=0.04)


def test_draws_that_only_judge_need_not_span(by_terms):
    """A posterior of thousands of effects is judged by fewer draws than it has coordinates."""
    draws = qd.antithetic(4, by_terms.posterior.dim, seed=2)
    judged = qd.assess(TERMS, by_terms, START, draws=draws, progress=False)
    assert judged.n_draws == 4
    assert judged.check_bound == pytest.approx(by_terms.check_bound, abs=0.02)
    with pytest.raises(ValueError, match="do not span"):
        qd.fit(TERMS, START, draws=draws, family="full", progress=False)


def test_what_is_transformed_comes_back(by_terms):
    member = by_terms.posterior.member
    z = np.random.default_rng(3).standard_normal((7, member.dim))
    with jax.enable_x64(True):
        points = np.asarray(member.transform(z))
        np.testing.assert_allclose(member.standardise(points), z, atol=1e-6)
        jacobian = jax.vmap(jax.jacfwd(lambda one: member.transform(one[None])[0]))(z)
        np.testing.assert_allclose(np.linalg.slogdet(jacobian)[1], member.log_slope(z), atol=1e-8)


def test_gradients_in_the_outer_parameters_are_right():
    target = qd.sum_of(
        qd.each(
            lambda seen, y, data: data * (y * seen["effect"] - jnp.logaddexp(0.0, seen["effect"])),
            Y > 0.5,
            sees={"effect": GROUP},
        ),
        qd.each(of_effect, sees={"effect": qd.each_entry, "log_sd": qd.whole}),
        qd.each(of_log_sd, sees={"log_sd": qd.whole}),
    )
    with jax.enable_x64(True):
        space, point = describe_space({"effect": np.zeros(6), "log_sd": 0.0})
        outer = make_outer(target, split(space, ["log_sd"]), point, np.float64(1.5), 0)
        at = lambda x: outer.solved(np.array([[x]]))
        step = 1e-4
        differences = (at(0.3 + step).bound - at(0.3 - step).bound) / (2.0 * step)
        np.testing.assert_allclose(at(0.3).gradient[0], differences, rtol=1e-6)


def test_misuse_is_named():
    for outer, says in (
        ([], "names no parameter"),
        (["log_ds"], "did you mean 'log_sd'"),
        (list(START), "nothing is left"),
    ):
        with pytest.raises(ValueError, match=says):
            qd.nested(written_out, START, outer=outer, data=Y)
    with pytest.raises(ValueError, match="outer: is missing"):
        qd.nested(written_out, START, data=Y)


def test_a_nested_fit_whose_time_is_up_solves_few_problems_more(monkeypatch):
    """The limit is that of all fits within, and of what is made from them."""
    solved, points = Outer.solved, []
    monkeypatch.setattr(Outer, "solved", lambda self, thetas: points.append(len(thetas)) or solved(self, thetas))
    options = {"outer": ["log_sd"], "progress": False}
    fit = qd.nested(TERMS, START, max_seconds=1e-3, **options)
    hurried, points[:] = sum(points), []
    assert fit.status == "max_seconds"
    assert "resume with start=fit.mean." in fit.verdict  # what can be typed: it does not go on from a fit
    assert np.isfinite([fit.bound, fit.check_bound]).all()
    qd.nested(TERMS, START, **options)
    assert hurried < 0.5 * sum(points)
    assert hurried <= 2 * 64 + 1 + CHECK + 16  # the first fit, the start, its check, and the posterior of all
