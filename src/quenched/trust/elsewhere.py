"""Another mode, of which a posterior around one does not know: looked for along rays from its mean.

A Gaussian around one of two modes fits it well, and weights of its own draws say so, the more the further apart the two are. But
the log density of a single mode falls along a ray; where it rises again, past a valley, there is another, or the ray has crossed the
bend of a ridge. Rays go along every parameter, and to where the ratios at check draws and further out, which another mode lifts on
its side, are largest.
"""

import numpy as np

from quenched.posterior import Posterior
from quenched.transforms import Space

# Sds at which a ray is looked at.
_STEPS = np.array([*np.arange(2.0, 6.1, 0.5), 7, 8, 9, 10, 12, 14, 16, 19, 22, 26, 30])
_VALLEY = 0.5  # nats that lie between two modes, seen from either
_WORTH = 0.15  # of an sd, which another mode, were it as wide as this one, would add
_TOP = (1, 8, 32, 128)  # check draws of the largest ratios, to whose mean a ray goes
_FURTHEST = 16  # draws further out of the largest ratios, to each of which one goes


def rays(axes: np.ndarray, draws: np.ndarray, log_ratios: np.ndarray, n: int) -> np.ndarray:
    """The mean and points on rays, on the scale on which the posterior is a standard normal; the first n draws are check draws."""
    upwards, beyond = (_upwards(draws[part], log_ratios[part]) for part in (slice(n), slice(n, None)))
    # By ranks too: a few large ratios would drown the others, which know the direction as well.
    means = [np.mean(upwards[:top], axis=0) for top in _TOP if len(upwards)]
    towards = np.stack([*means, np.linspace(1.0, -1.0, len(upwards)) @ upwards, *beyond[:_FURTHEST]])
    towards /= np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), np.finfo(float).tiny)
    ways = np.concatenate([axes, -axes, towards])
    return np.concatenate([np.zeros((1, axes.shape[1])), (ways[:, None] * _STEPS[:, None]).reshape(-1, axes.shape[1])])


def _as_far_as_rays(posterior: Posterior, points: np.ndarray) -> np.ndarray:
    """Which points lie within as many of the posterior's own sds as rays are long; a warp throws some much further."""
    if posterior.member.affine:
        return np.ones(len(points), bool)
    with np.errstate(over="ignore", invalid="ignore"):
        away = np.abs(posterior.transform(points) - posterior.mean) / np.sqrt(posterior.variance())
    return np.max(away, axis=1) <= _STEPS[-1]


def most_points(n_axes: int) -> int:
    """How many these are at the most."""
    return 1 + (2 * n_axes + len(_TOP) + 1 + _FURTHEST) * len(_STEPS)


def _upwards(draws: np.ndarray, log_ratios: np.ndarray) -> np.ndarray:
    """Those within the support, the largest ratio first."""
    inside = np.isfinite(log_ratios)
    return draws[inside][np.argsort(-log_ratios[inside], kind="stable")]


def elsewhere(
    space: Space, posterior: Posterior, points: np.ndarray, log_ratios: np.ndarray, believed: np.ndarray | None = None
) -> str:
    """Say where another mode is, by the log ratios at points of `rays`; empty where none was seen.

    A ray ends where its ratios are not `believed`: large terms that cancel leave noise first, and further out nothing of the data.
    """
    heights = log_ratios - 0.5 * np.sum(points**2, axis=1)
    if not np.isfinite(heights[0]):
        return ""
    rises = heights[1:].reshape(-1, len(_STEPS)) - heights[0]
    known = ~np.isnan(rises) & ~np.isposinf(rises)  # the others are neither a mode nor a valley
    known &= _as_far_as_rays(posterior, points[1:]).reshape(rises.shape)
    if believed is not None:
        known &= np.logical_and.accumulate(believed[1:].reshape(rises.shape), axis=1)
    valleys = np.minimum.accumulate(np.where(known, rises, np.inf), axis=1)
    rises = np.where(known, rises, -np.inf)
    apart = np.minimum(rises, 0.0) > valleys + _VALLEY  # what only rises is the same mode, and skewed
    with np.errstate(over="ignore"):
        share = 1.0 / (1.0 + np.exp(-np.where(apart, rises, -np.inf)))
    worth = np.sqrt(1.0 + share * _STEPS**2) - 1.0  # by the second moment about the mean
    best = int(np.argmax(worth))
    if not worth.ravel()[best] > _WORTH:
        return ""
    place = posterior.transform(points[best + 1][None])[0]
    away = (place - posterior.mean) / np.sqrt(posterior.variance())
    which = int(np.argmax(np.abs(away)))
    height, valley = rises.ravel()[best], valleys.ravel()[best]
    return (
        f"the log density falls by {-valley:.2g} nats and rises again {abs(away[which]):.1f} sds "
        f"{'above' if away[which] > 0.0 else 'below'} the mean of {space.coordinate_names()[which]} (at {place[which]:.3g} on the "
        f"real line), to {abs(height):.2g} nats {'above' if height > 0.0 else 'below'} what it is at the mean: "
        "another mode, or a ridge that bends"
    )
