"""The paper's formulas in NumPy, written from its text: nothing of the library is used here.

Sec. 2: the bound, its two gradients, the two updates of the precisions, Algorithm 1. And Møller (1993), the minimiser
that it calls, from its own paper.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np


class Setting(NamedTuple):
    """A model with its Jacobian, data, and draws."""

    f: Callable  # f(w, x) -> (N,)
    jacobian: Callable  # (N, M)
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray  # (S, M)


def wave(w, x):
    """A model that is not linear in its three parameters."""
    return w[0] * np.sin(w[1] * x) + np.tanh(w[2] * x)


def wave_jacobian(w, x):
    return np.stack([np.sin(w[1] * x), w[0] * x * np.cos(w[1] * x), x / np.cosh(w[2] * x) ** 2], axis=1)


def bound(setting: Setting, mu, L, alpha, beta) -> float:
    """The finite-sample bound, with the constants that the paper leaves out: N/2 log 2π and M/2."""
    n, m = len(setting.y), len(mu)
    likelihood = 0.0
    for draw in setting.z:
        residual = setting.y - setting.f(mu + L @ draw, setting.x)
        likelihood += 0.5 * n * np.log(beta) - 0.5 * beta * residual @ residual
    kl = 0.5 * (np.trace(alpha * L.T @ L) + alpha * mu @ mu - m - np.linalg.slogdet(alpha * L @ L.T)[1])
    return likelihood / len(setting.z) - 0.5 * n * np.log(2.0 * np.pi) - kl


def gradients(setting: Setting, mu, L, alpha, beta) -> tuple[np.ndarray, np.ndarray]:
    """With respect to mu and to L."""
    of_mu, of_L = np.zeros(len(mu)), np.zeros(L.shape)
    for draw in setting.z:
        w = mu + L @ draw
        pull = beta * setting.jacobian(w, setting.x).T @ (setting.y - setting.f(w, setting.x))
        of_mu += pull / len(setting.z)
        of_L += np.outer(pull, draw) / len(setting.z)
    return of_mu - alpha * mu, of_L - alpha * L + np.linalg.pinv(L).T


def updates(setting: Setting, mu, L) -> tuple[float, float]:
    """Prior and noise precision."""
    squares = sum(np.sum((setting.y - setting.f(mu + L @ z, setting.x)) ** 2) for z in setting.z)
    alpha = len(mu) / (mu @ mu + np.trace(L @ L.T))
    return float(alpha), float(len(setting.z) * len(setting.y) / squares)


class Attempt(NamedTuple):
    """The state of scaled conjugate gradients after it has tried a move."""

    position: np.ndarray
    damping: float
    success: bool
    n_evaluations: int


def moller(function, gradient, start, sigma=1e-5, damping=1e-6, worst=-np.inf) -> Iterator[Attempt]:
    """Scaled conjugate gradients, attempt by attempt; no comparison is taken to be below `worst`."""
    x = np.asarray(start, float)
    residual = direction = -gradient(x)
    fresh, k, count = True, 1, 1
    while True:
        size = direction @ direction
        if fresh:
            step = sigma / np.sqrt(size)
            curvature = direction @ (gradient(x + step * direction) - gradient(x)) / step
            damping_bar = 0.0
            count += 1
        curvature += (damping - damping_bar) * size
        if curvature <= 0:
            damping_bar = 2.0 * (damping - curvature / size)
            curvature = -curvature + damping * size
            damping = damping_bar
        mu = direction @ residual
        alpha = mu / curvature
        comparison = 2.0 * curvature * (function(x) - function(x + alpha * direction)) / mu**2
        comparison = max(comparison, worst) if np.isfinite(comparison) else worst
        count += 1
        if comparison >= 0:
            x = x + alpha * direction
            new = -gradient(x)
            damping_bar, fresh = 0.0, True
            restart = k % len(x) == 0
            direction = new if restart else new + (new @ new - new @ residual) / mu * direction
            direction = direction if direction @ new > 0 else new  # not Møller's, but everybody's: always descend
            residual = new
            k += 1
            if comparison >= 0.75:
                damping *= 0.25
        else:
            damping_bar, fresh = damping, False
        if comparison < 0.25:
            damping += curvature * (1.0 - comparison) / size
        yield Attempt(x, damping, comparison >= 0, count)


def climb(target, start, n_steps):
    """Where `n_steps` successes, or two evaluations for each and one to begin, lead.

    The exponential of the scale overflows at times; as in the library, no failure counts for more than -4.
    """
    function, gradient = target
    position, successes = np.asarray(start, float), 0
    for attempt in moller(lambda x: -function(x), lambda x: -gradient(x), start, worst=-4.0):
        if attempt.n_evaluations > 2 * n_steps + 1:
            return position
        position, successes = attempt.position, successes + attempt.success
        if successes == n_steps:
            return position


def algorithm_one(setting: Setting, mu, c=0.1, precision=0.1, n_steps=10) -> Iterator[tuple]:
    """Algorithm 1 round by round: (bound, mu, L, alpha, beta), the start first.

    L is lower triangular and its diagonal is moved in the logarithm, so that it cannot change its sign.
    """
    mu, m = np.asarray(mu, float), len(mu)
    L, alpha, beta = c * np.eye(m), precision, precision
    below = np.tril_indices(m, -1)

    def scale(vector):
        matrix = np.diag(np.exp(vector[:m]))
        matrix[below] = vector[m:]
        return matrix

    def of_mean(L, alpha, beta):
        return lambda w: bound(setting, w, L, alpha, beta), lambda w: gradients(setting, w, L, alpha, beta)[0]

    def of_scale(mu, alpha, beta):
        def slope(vector):
            matrix = scale(vector)
            _, of_L = gradients(setting, mu, matrix, alpha, beta)
            return np.concatenate([np.diag(of_L) * np.diag(matrix), of_L[below]])

        return lambda vector: bound(setting, mu, scale(vector), alpha, beta), slope

    while True:
        yield bound(setting, mu, L, alpha, beta), mu, L, alpha, beta
        mu = climb(of_mean(L, alpha, beta), mu, n_steps)
        flat = np.concatenate([np.log(np.diag(L)), L[below]])
        L = scale(climb(of_scale(mu, alpha, beta), flat, n_steps))
        alpha, beta = updates(setting, mu, L)
