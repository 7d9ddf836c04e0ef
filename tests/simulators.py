"""Functions on the host that worker processes can import: some are slow, some fail, some take their worker with them."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

DESIGN = np.random.default_rng([7, 1]).standard_normal((60, 4))
LABELS = np.where(
    np.random.default_rng([7, 2]).random(60) < 1 / (1 + np.exp(-DESIGN @ [1.0, -0.5, 0.3, 0.0])), 1.0, -1.0
)


def logistic(w):
    """Logistic regression with a standard-normal prior: value and gradient."""
    margins = LABELS * (DESIGN @ w)
    value = -np.logaddexp(0.0, -margins).sum() - 0.5 * w @ w
    return value, DESIGN.T @ (LABELS / (1.0 + np.exp(margins))) - w


def logistic_value(w):
    return logistic(w)[0]


def with_data(parameters, data):
    margins = data["y"] * (data["x"] @ parameters["w"])
    gradient = data["x"].T @ (data["y"] / (1.0 + np.exp(margins))) - parameters["w"]
    return -np.logaddexp(0.0, -margins).sum() - 0.5 * parameters["w"] @ parameters["w"], {"w": gradient}


def dies_once(w, marker=None):
    """Kills its worker the first time that a file does not exist."""
    path = Path(os.environ["QUENCHED_TEST_MARKER"])
    if w[0] > 0.3 and not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return logistic(w)


def kills(w):
    """Kills its worker at some parameters, always."""
    if w[0] > 0.8:
        os.kill(os.getpid(), signal.SIGKILL)
    return logistic(w)


def raises(w):
    if w[0] > 0.8:
        raise ArithmeticError(f"no convergence at {w[0]:.3f}")
    return logistic(w)


def slow(w):
    time.sleep(0.01)
    return logistic(w)


def counts(w, data):
    """A Poisson regression in JAX. It kills the worker that traces it first, if asked to."""
    _die_once()
    predictor = DESIGN @ w
    return jnp.sum(data * predictor - jnp.exp(predictor)) - 0.5 * jnp.sum(w**2)


def counts_on_host(w, data):
    """The same in NumPy, with its gradient."""
    _die_once()
    predictor = DESIGN @ w
    rate = np.exp(predictor)
    return np.sum(data * predictor - rate) - 0.5 * w @ w, DESIGN.T @ (data - rate) - w


def _die_once():
    """Kill this process if it is a worker, and nobody has died yet."""
    marker = os.environ.get("QUENCHED_TEST_MARKER")
    if marker and multiprocessing.parent_process() is not None and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def many_counts(n):
    """Data of many genes."""
    random = np.random.default_rng([7, 3])
    return random.poisson(np.exp(DESIGN @ (0.5 * random.standard_normal((4, n)))).T).astype(float)


def nearly_quadratic(w):
    """A correlated posterior with a little skew, of a simulator without gradient."""
    z = np.cumsum(w) - np.arange(len(w))
    return -0.5 * z @ z - 0.002 * np.sum(z**3) - 0.002 * np.sum(z**4)
