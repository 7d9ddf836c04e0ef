"""What is run in processes of its own, since it would hang for ever if it failed."""

import jax
import numpy as np

import quenched as qd
from matrices import FACTORISED, data, kernel, log_density
from quenched.execute import Effort, trace


def evaluate_often(times: int) -> None:
    points = 0.3 * np.random.default_rng(0).standard_normal((32, 3))
    with jax.enable_x64(True):
        for name in FACTORISED:
            programs = trace(log_density(name, 50))
            for _ in range(times):
                found = programs.evaluate(Effort.ALL, points, np.ones(32), None, np.zeros(0))
            print("returned" if np.isfinite(found.gradients).all() else name)


def fit_and_diagnose(name: str, n: int) -> None:
    density = log_density(name, n)
    fit = qd.fit(lambda w: density(w), np.zeros(3), max_draws=64)
    fit.diagnose()
    print(fit.status)


def fit_many(name: str, n: int) -> None:
    density = log_density(name, n)
    fits = qd.fit_many(lambda w, shift: density(w + shift), np.zeros(3), data=np.linspace(0, 1, 5), max_draws=64)
    print(bool(np.isfinite(fits.bound).all()))


def fit_terms(name: str, n: int) -> None:
    """Rows that each have LAPACK called for them."""
    around, value = np.random.default_rng(0).standard_normal((60, n)), FACTORISED[name]
    row = qd.each(lambda seen, y: value(kernel(seen["w"], n), y), 0.1 * around + data(n), sees={"w": qd.whole})
    prior = qd.each(lambda seen: -0.5 * seen["w"] @ seen["w"], sees={"w": qd.whole})
    for seed in range(4):
        fit = qd.fit(qd.sum_of(row, prior), {"w": np.zeros(3)}, seed=seed, max_draws=64)
    print(fit.status)


def derived_and_nested(name: str, n: int) -> None:
    """What is asked of samples, and inner fits."""
    density = log_density(name, n)
    fit = qd.fit(lambda w: density(w), np.zeros(3), max_draws=64)
    for _ in range(20):
        found = fit.of(lambda w: FACTORISED[name](kernel(w, n), data(n)))
    print(bool(np.isfinite(found.mean)))
    nested = qd.nested(
        lambda p: density(jax.numpy.append(p["a"], p["b"])), {"a": np.zeros(1), "b": np.zeros(2)}, outer=["a"]
    )
    print(nested.status)
