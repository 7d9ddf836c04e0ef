"""Hamiltonian Monte Carlo in the coordinates of a fitted posterior: the truth that approximations are measured by.

With w = T(z) the chains run in z, where the target is log p(T(z)) + log |T′(z)|. However good T is, they converge to the target; the
better it is, the nearer to a standard normal it is there, and the fewer steps they need. Step lengths are found while the
chains warm up, by the acceptance of all of them; steps and paths have random lengths, so that no direction returns to where it began.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.compiling import compiled
from quenched.draws import Purpose, generator
from quenched.precision import in_double
from quenched.results import Fit

_ACCEPTED = 0.9  # of the proposals
_SHORTEST = 0.2  # of a step, relative to the longest: short ones free a chain from a narrow place
_PATH = 2.4  # the longest, in standard deviations
_MOST_STEPS = 64


class Chains(NamedTuple):
    """What the chains have drawn, on the real line, and how far to believe it."""

    samples: np.ndarray  # (chains, draws, dim)
    evidence: float  # the log evidence, by bridge sampling
    evidence_error: float
    rhat: float  # the worst of all parameters
    effective: float  # the fewest effective samples of all parameters
    accepted: float
    n_gradients: int


def hamiltonian(fit: Fit, *, chains: int = 16, draws: int = 1000, warm: int = 300, seed: int = 0) -> Chains:
    """Chains for the target of a fit, in the coordinates of its posterior.

    Parameters
    ----------
    fit
        One that knows its log density.
    chains, draws, warm
        How many chains, and how many draws each keeps and throws away.
    seed
        Of everything random.
    """
    random, member, start = generator(seed, Purpose.NOISE), fit.posterior.member, fit.nuts_start()

    def log_density(z: Array) -> Array:
        return start.log_density(member.transform(z[None])[0]) + member.log_slope(z[None])[0]

    dim, total = fit.posterior.dim, warm + draws
    with in_double():
        points = jnp.asarray(0.7 * random.standard_normal((chains, dim)))
        numbers = random.standard_normal((total, chains, dim)), random.uniform(size=(total, chains + 2))
        z, accepted, n_steps = _run(log_density, points, *numbers, jnp.arange(total) < warm)
        z = np.asarray(z)[warm:]
        normal = random.standard_normal((draws * chains, dim))
        ratio = partial(_ratios, compiled(jax.vmap(log_density)))
        groups = [
            bridge(ratio(own), ratio(other))
            for own, other in zip(np.array_split(z[:, :, :].swapaxes(0, 1), 4), np.array_split(normal, 4), strict=True)
        ]
    samples = fit.posterior.transform(z.reshape(-1, dim)).reshape(z.shape).swapaxes(0, 1)
    rhat, effective = convergence(samples)
    return Chains(
        samples,
        float(np.mean(groups)),
        float(np.std(groups, ddof=1) / 2.0),
        rhat,
        effective,
        float(np.mean(np.asarray(accepted)[warm:])),
        int(np.sum(np.asarray(n_steps))) * chains,
    )


def _run(log_density: Callable[[Array], Array], points: Array, momenta: Any, uniform: Any, warming: Array) -> Any:
    value_and_slope = jax.vmap(jax.value_and_grad(log_density))

    def leap(step: Array, n: Array, place: Any) -> Any:
        def one(_, place):
            z, value, slope, momentum = place
            half = momentum + 0.5 * step * slope
            z = z + step * half
            value, slope = value_and_slope(z)
            return z, value, slope, half + 0.5 * step * slope

        return jax.lax.fori_loop(0, n, one, place)

    def draw(carried, given):
        (z, value, slope), log_step, averaged, count = carried
        momentum, chance, warm = given
        whole = jnp.exp(jnp.where(warm, log_step, averaged))
        n = jnp.clip(jnp.ceil(chance[-1] * _PATH / whole), 1, _MOST_STEPS).astype(int)
        step = whole * (_SHORTEST + (1.0 - _SHORTEST) * chance[-2])
        new, new_value, new_slope, end = leap(step, n, (z, value, slope, momentum))
        energy = new_value - value + 0.5 * jnp.sum(momentum**2 - end**2, axis=1)
        rate = jnp.where(jnp.isfinite(energy), jnp.minimum(1.0, jnp.exp(energy)), 0.0)
        taken = chance[:-2] < rate
        keep = lambda a, b: jnp.where(taken.reshape(-1, *(1,) * (a.ndim - 1)), a, b)
        place = (keep(new, z), keep(new_value, value), keep(new_slope, slope))
        count = count + 1.0
        log_step = log_step + warm * (jnp.mean(rate) - _ACCEPTED) / jnp.sqrt(count)
        share = count**-0.75
        averaged = jnp.where(warm, share * log_step + (1.0 - share) * averaged, averaged)
        return (place, log_step, averaged, count), (place[0], jnp.mean(rate), n)

    @compiled
    def run(points, momenta, uniform, warming):
        first = jnp.log(0.5 * points.shape[1] ** -0.25)
        place = (points, *value_and_slope(points))
        return jax.lax.scan(draw, (place, first, first, 0.0), (momenta, uniform, warming))[1]

    return run(points, momenta, uniform, warming)


def _ratios(log_density: Callable[[Array], Array], z: np.ndarray) -> np.ndarray:
    """log p − log q in the coordinates of q."""
    rows = z.reshape(-1, z.shape[-1])
    normal = -0.5 * np.sum(rows**2, axis=1) - 0.5 * rows.shape[1] * np.log(2.0 * np.pi)
    parts = [np.asarray(log_density(rows[first : first + 2000])) for first in range(0, len(rows), 2000)]
    return np.concatenate(parts) - normal


def bridge(of_target: np.ndarray, of_posterior: np.ndarray) -> float:
    """The log evidence by bridge sampling (Meng and Wong 1996), from log p − log q at samples of either."""
    of_posterior = of_posterior[np.isfinite(of_posterior)]
    middle, n_p, n_q = float(np.median(of_target)), len(of_target), len(of_posterior)
    p, q, guess = of_target - middle, of_posterior - middle, 0.0
    soft = lambda ratios: -np.logaddexp(np.log(n_p / (n_p + n_q)) + ratios, np.log(n_q / (n_p + n_q)) + guess)
    for _ in range(200):
        above = np.logaddexp.reduce(q + soft(q)) - np.log(n_q)
        below = np.logaddexp.reduce(soft(p)) - np.log(n_p)
        guess, before = above - below, guess
        if abs(guess - before) < 1e-10:
            break
    return float(guess + middle)


def convergence(samples: np.ndarray) -> tuple[float, float]:
    """The worst R-hat of halves of chains, and the fewest effective samples, of (chains, draws, dim)."""
    half = samples.shape[1] // 2
    halves = np.concatenate([samples[:, :half], samples[:, half : 2 * half]])
    within, means = halves.var(axis=1, ddof=1).mean(axis=0), halves.mean(axis=1)
    whole = within * (half - 1) / half + means.var(axis=0, ddof=1)
    batches = 10
    size = samples.shape[1] // batches
    cut = samples[:, : size * batches].reshape(-1, size, samples.shape[2]).mean(axis=1)
    effective = samples[:, : size * batches].reshape(-1, samples.shape[2]).var(axis=0) / (
        cut.var(axis=0, ddof=1) / len(cut)
    )
    return float(np.sqrt(whole / within).max()), float(effective.min())
