"""Data sets of many problems, and what it means that two fits are the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import problems
import quenched as qd

SAME = 1e-6  # nats, and posterior standard deviations


def several(name: str, n: int):
    """Data sets like that of a problem: rows are shuffled, labels redrawn, numbers shaken."""
    problem, generator = problems.PROBLEMS[name], np.random.default_rng(7)
    if name == "eight_schools":
        spread = np.sqrt(problems.SCHOOLS["errors"] ** 2 + 100.0)
        effects = 5.0 + spread * generator.standard_normal((n, 8))
        return {"effects": effects, "errors": np.tile(problems.SCHOOLS["errors"], (n, 1))}
    if "features" in problem.data:
        picked = [
            generator.integers(len(problem.data["features"]), size=len(problem.data["features"])) for _ in range(n)
        ]
        return {key: np.stack([value[rows] for rows in picked]) for key, value in problem.data.items()}
    shaken = lambda leaf: leaf * generator.uniform(0.9, 1.2, (n, *np.shape(leaf)))
    return jax.tree.map(shaken, problem.data)


def skewed(w, data):
    return jnp.sum(data["y"] * (data["x"] @ w) - jnp.exp(data["x"] @ w)) - 0.5 * jnp.sum(w**2)


def counts(n: int, dim: int = 2):
    generator = np.random.default_rng(4)
    return {"x": generator.standard_normal((n, 12, dim)), "y": generator.poisson(2.0, (n, 12)).astype(float)}


def assert_same(one: qd.Fit, other: qd.Fit) -> None:
    assert one.status == other.status
    assert one.n_draws == other.n_draws
    assert one.bound == pytest.approx(other.bound, abs=SAME)
    assert one.check_bound == pytest.approx(other.check_bound, abs=SAME)
    assert one.check_error == pytest.approx(other.check_error, abs=SAME)
    z = np.random.default_rng(5).standard_normal((8, len(one.posterior.mean)))
    np.testing.assert_allclose(other.posterior.member.standardise(one.posterior.transform(z)), z, atol=SAME)
    np.testing.assert_array_equal(one.history.n_draws, other.history.n_draws)
