"""What is run in processes of its own, since it would hang for ever if it failed."""

import jax
import numpy as np

import quenched as qd
from matrices import FACTORISED, log_density
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
