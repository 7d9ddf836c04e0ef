"""The monitor of many fits: the check draws of `monitor.check`, the same for all, and as many as each needs."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.draws import stream
from quenched.families import Member
from quenched.fitting.growth import CHECK_BATCH
from quenched.fitting.many.compiling import compiled
from quenched.fitting.many.rows import rows
from quenched.fitting.many.scene import Scene
from quenched.objective import log_q
from quenched.targets import Form, Hyper


class Checks(NamedTuple):
    """Check bounds and their standard errors."""

    bound: np.ndarray
    error: np.ndarray


def check_many(
    scene: Scene,
    problems: np.ndarray,
    posterior: Member,
    hyper: Hyper,
    *,
    n: int,
    batch: int,
    decided: Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray],
) -> Checks:
    """Mean and standard error of log p − log q, batch by batch, for the fits that are not decided yet.

    `posterior` and `hyper` are rows in the order of `problems`; `decided` is told which of them, their check bounds and
    errors, and the draws so far.
    """
    random = np.random.default_rng(stream(scene.seed, 1))
    mean, squares, seen = np.zeros(len(problems)), np.zeros(len(problems)), 0
    open_, error = np.arange(len(problems)), np.full(len(problems), np.inf)
    while seen < n and len(open_):
        fresh = random.standard_normal((min(batch, n - seen), scene.problem.dim))
        ratios = _ratios_of(scene, problems[open_], rows(posterior, open_), rows(hyper, open_), fresh)
        mean[open_], squares[open_] = _joined(seen, mean[open_], squares[open_], ratios)
        seen += len(fresh)
        error[open_] = np.sqrt(squares[open_] / max(seen - 1, 1) / seen)
        open_ = open_[~decided(open_, mean[open_], error[open_], seen)]
    return Checks(mean, error)


def _ratios_of(scene: Scene, problems: np.ndarray, posterior: Member, hyper: Hyper, fresh: np.ndarray) -> np.ndarray:
    """log p − log q at one batch of check draws, (fits, draws)."""
    size = scene.points_at_a_time
    used = -(-len(fresh) // size)
    z = np.zeros((max(-(-CHECK_BATCH // size), used) * size, fresh.shape[1]))
    z[: len(fresh)] = fresh
    chunks = z.reshape(-1, size, fresh.shape[1])
    program = partial(_ratios, scene.programs.inside.values, scene.problem.form, chunks, used)
    return scene.apply(problems, program, posterior, hyper).reshape(len(problems), -1)[:, : len(fresh)]


@compiled(static_argnums=(0, 1))
def _ratios(values, form: Form, z: Array, used: Array, posterior: Member, hyper: Hyper, data: Any) -> Array:
    def one(posterior, hyper, data):
        def fill(index, so_far):
            points = posterior.transform(z[index])
            log_p = form.offset(hyper) + form.weight(hyper) * values(points, data, hyper.free)
            log_p = log_p + form.log_prior(points, hyper)
            return so_far.at[index].set(log_p - log_q(posterior, z[index]))

        return jax.lax.fori_loop(0, used, fill, jnp.zeros(z.shape[:2]))

    return jax.vmap(one)(posterior, hyper, data)


def _joined(seen: int, mean: np.ndarray, squares: np.ndarray, ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sum of squared deviations with more values (Chan, Golub and LeVeque 1983)."""
    n = ratios.shape[1]
    with np.errstate(invalid="ignore", over="ignore"):  # a ratio may be minus infinity
        centre = ratios.mean(axis=1)
        away = centre - mean
        own = np.sum((ratios - centre[:, None]) ** 2, axis=1)
        if seen == 0:
            return centre, own
        return mean + away * n / (seen + n), squares + own + away**2 * seen * n / (seen + n)
