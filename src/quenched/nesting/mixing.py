"""Anderson acceleration of a fixed-point iteration, in many lanes side by side.

Of the last steps a combination is sought whose residual is least; the next point is where that combination leads. Near the
fixed point this is a quasi-Newton method in a few directions.
"""

from typing import NamedTuple

import jax.numpy as jnp

from quenched.arrays import Array
from quenched.nesting.algebra import sweep

_KEPT = 3
_RIDGE = 1e-10  # relative, against steps that are parallel


class Recent(NamedTuple):
    """The last point and residual, and the differences of those before; arrays (numbers, lanes)."""

    point: Array
    residual: Array
    points: tuple[Array, ...]  # differences, the newest first
    residuals: tuple[Array, ...]
    n: Array  # points seen, (lanes,)

    @property
    def full_enough(self) -> Array:
        """Whether there is anything to mix."""
        return self.n >= 2


def nothing_recent(like: Array) -> Recent:
    """Before the first step."""
    none = jnp.zeros_like(like)
    return Recent(none, none, (none,) * _KEPT, (none,) * _KEPT, jnp.zeros(like.shape[-1:], int))


def mix(recent: Recent, point: Array, residual: Array) -> tuple[Array, Recent]:
    """The next point, and what is remembered."""
    fresh = recent.n >= 1
    d_point, d_residual = (
        jnp.where(fresh, a - b, 0.0) for a, b in ((point, recent.point), (residual, recent.residual))
    )
    points, residuals = (d_point, *recent.points[:-1]), (d_residual, *recent.residuals[:-1])
    gram = jnp.stack([jnp.stack([jnp.sum(a * b, axis=0) for b in residuals]) for a in residuals])
    size = jnp.trace(gram) / _KEPT
    ridge = jnp.eye(_KEPT)[:, :, None] * (_RIDGE * size + jnp.finfo(gram.dtype).tiny)
    unused = jnp.eye(_KEPT)[:, :, None] * (jnp.diagonal(gram).T == 0.0)[:, None]  # their share is zero
    _, inverse = sweep(gram + ridge + unused * jnp.where(size > 0.0, size, 1.0))
    wanted = jnp.stack([jnp.sum(a * residual, axis=0) for a in residuals])
    share = jnp.sum(inverse * wanted, axis=1)
    ahead = point + residual - sum(g * (p + r) for g, p, r in zip(share, points, residuals, strict=True))
    return ahead, Recent(point, residual, points, residuals, recent.n + 1)
