"""Points and weights for integrals over a few outer parameters (Rue, Martino and Chopin 2009, Sec. 6.5).

In z, with θ = mode + V Λ^½ z from the eigenvectors of the inverse negative Hessian at the mode, log p(θ) is near −½ z·z. A grid is taken in
z itself, as far out as the density has not fallen away. A central composite design has the mode, the corners ±1 of a cube (of
which a fraction of resolution V is enough) and a star on the axes, all of them on a sphere of radius 1.1 √m; it is stretched along each half
of each axis by what the density shows there. Its weights make the integrals of 1 and of z zᵀ right for a Gaussian.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.families import count_monomials, monomials

_STEP = 0.5  # of the grid
_FALLEN = 8.0  # nats below the mode, where the grid ends
_FURTHEST = 32  # steps
_HIGHEST = 8  # degree of the polynomial through the points of a grid
_MOST_POINTS = 5000
_SPHERE = 1.1  # radius of the composite design, over √m
_LOOK = np.sqrt(2.0)  # how far out the halves of axes are looked at
_STRETCH = 4.0  # the most that a half axis is stretched or shortened
_BACKGROUND = 0.01  # weight of points in the tails, relative to the mode

LogDensities = Callable[[np.ndarray], np.ndarray]  # of many points, (n, m) → (n,)


@dataclass(frozen=True, eq=False)
class Rotated:
    """Coordinates in which the log density is near −½ z·z."""

    mode: np.ndarray
    root: np.ndarray  # V Λ^½
    top: float  # the log density at the mode

    @property
    def dim(self) -> int:
        return len(self.mode)

    @property
    def log_volume(self) -> float:
        return float(np.linalg.slogdet(self.root)[1])

    def points(self, z: np.ndarray) -> np.ndarray:
        return self.mode + z @ self.root.T


def rotated(mode: np.ndarray, covariance: np.ndarray, top: float) -> Rotated:
    """From the mode and the inverse of the negative Hessian there."""
    values, vectors = np.linalg.eigh(covariance)
    return Rotated(mode, vectors * np.sqrt(np.maximum(values, 1e-300)), top)


@dataclass(frozen=True, eq=False)
class OuterDesign:
    """Points with weights: ∫ p(θ) f(θ) dθ ≈ exp(log_evidence) Σ weight f(point); and a smooth log density through them."""

    kind: str
    axes: Rotated
    points: np.ndarray  # (n, m)
    weights: np.ndarray  # they sum to one
    log_evidence: float
    halves: np.ndarray  # scales of the two halves of each axis, (m, 2)
    residual: np.ndarray | None = None  # coefficients of what is left of the log density, and up to where it was seen
    degree: int = 0
    box: np.ndarray | None = None  # (2, m)

    def log_density(self, theta: Array) -> Array:
        """Of one outer point, smooth: a Gaussian whose half axes differ, and on a grid a polynomial besides."""
        z = jnp.linalg.solve(self.axes.root, theta - self.axes.mode)
        value = self.axes.top - 0.5 * jnp.sum((z / jnp.where(z > 0.0, self.halves[:, 1], self.halves[:, 0])) ** 2)
        if self.residual is None or self.box is None:
            return value
        near = jnp.clip(z, self.box[0], self.box[1])
        return value + monomials(near, self.degree) @ self.residual


def grid(axes: Rotated, log_densities: LogDensities) -> OuterDesign:
    """All points of a grid in z between the ends of its axes.

    Raises
    ------
    ValueError
        When they are too many.
    """
    ends = [tuple(_reach(axes, log_densities, place, sign) for sign in (-1, 1)) for place in range(axes.dim)]
    n = int(np.prod([high - low + 1 for low, high in ends]))
    if n > _MOST_POINTS:
        raise ValueError(
            f'design="grid": it would have {n} points in {axes.dim} outer coordinates, more than {_MOST_POINTS}; use '
            'design="composite".'
        )
    z = _STEP * np.array(list(product(*(range(low, high + 1) for low, high in ends))), float)
    points = axes.points(z)
    values = log_densities(points)
    seen = np.isfinite(values)
    log_weights = np.where(seen, values, -np.inf)
    total = np.logaddexp.reduce(log_weights)
    evidence = float(total + axes.dim * np.log(_STEP) + axes.log_volume)
    halves = np.ones((axes.dim, 2))
    degree = max(d for d in range(1, _HIGHEST + 1) if d == 1 or 2 * count_monomials(axes.dim, d) <= seen.sum())
    left = values[seen] - axes.top + 0.5 * np.sum(z[seen] ** 2, axis=1)
    importance = np.sqrt(np.exp(np.minimum(values[seen] - axes.top, 0.0)) + _BACKGROUND)
    features = np.asarray(monomials(z[seen], degree))
    residual = np.linalg.lstsq(features * importance[:, None], left * importance, rcond=1e-10)[0]
    box = _STEP * np.array(ends, float).T
    return OuterDesign("grid", axes, points, np.exp(log_weights - total), evidence, halves, residual, degree, box)


def _reach(axes: Rotated, log_densities: LogDensities, place: int, sign: int) -> int:
    """Steps along a half axis after which the density has fallen away."""
    steps = np.arange(1, _FURTHEST + 1)
    z = np.zeros((_FURTHEST, axes.dim))
    z[:, place] = sign * _STEP * steps
    fallen = ~(log_densities(axes.points(z)) > axes.top - _FALLEN)
    return sign * int(steps[np.argmax(fallen)] if fallen.any() else _FURTHEST)


def composite(axes: Rotated, log_densities: LogDensities) -> OuterDesign:
    """The central composite design."""
    m = axes.dim
    units = np.repeat(np.eye(m), 2, axis=0) * np.tile([-1.0, 1.0], m)[:, None]
    drops = axes.top - log_densities(axes.points(_LOOK * units))
    scales = _LOOK / np.sqrt(2.0 * np.maximum(np.nan_to_num(drops, nan=1.0, posinf=1e300), 1e-12))
    halves = np.clip(scales, 1.0 / _STRETCH, _STRETCH).reshape(m, 2)
    sphere = _SPHERE * np.concatenate([corners(m), np.sqrt(m) * units])
    u = np.concatenate([np.zeros((1, m)), sphere])
    along = np.where(u > 0.0, halves[:, 1], np.where(u < 0.0, halves[:, 0], halves.mean(axis=1)))
    points = axes.points(u * along)
    values = log_densities(points)
    radius = _SPHERE**2
    log_share = np.full(len(u), 0.5 * m * radius - np.log(len(sphere) * (radius - 1.0)))
    log_share[0] = 0.0
    log_weights = np.where(np.isfinite(values), values, -np.inf) + log_share + np.sum(np.log(along), axis=1)
    total = np.logaddexp.reduce(log_weights)
    # On a Gaussian the shares add up to f² / (f² − 1) times its top, where its integral is (2π)^(m/2) times that.
    evidence = float(total + 0.5 * m * np.log(2.0 * np.pi) + np.log1p(-1.0 / radius) + axes.log_volume)
    return OuterDesign("composite", axes, points, np.exp(log_weights - total), evidence, halves)


def corners(m: int) -> np.ndarray:
    """Corners ±1 of a cube, or a fraction of them of resolution V: products of up to four columns are no constant.

    Columns are Walsh functions whose numbers are chosen one after the other such that no four of them cancel.
    """
    chosen: list[int] = []
    candidate = 0
    while len(chosen) < m:
        candidate += 1
        some = [other for k in (1, 2, 3) for other in combinations(chosen, k)]
        if all(np.bitwise_xor.reduce(np.array(other)) != candidate for other in some):
            chosen.append(candidate)
    bits = int(max(chosen)).bit_length()
    rows = np.arange(2**bits)
    parity = lambda number: np.array([int(row & number).bit_count() % 2 for row in rows])
    return np.stack([1.0 - 2.0 * parity(number) for number in chosen], axis=1)
