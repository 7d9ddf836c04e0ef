"""A few directions in which everything may correlate, on top of a standard deviation for each: diagonal plus low rank.

w = m + D H (S z_a, z_b): the first k coordinates z_a of a draw are stretched by a small triangle S and turned by the
orthogonal H into k directions Q of the whole space; D are standard deviations. The covariance is D (I + Q (S Sᵀ − I) Qᵀ) D.
As many numbers are drawn as there are parameters, so that z and w determine each other; and as the stretched numbers
are always the first k of a draw, no direction of a large spread can hide where no draw sees it.

H is a Cayley transform of the `tilt` B: with (x, y) = z it takes z to (2u − x, y + 2 B u), (I + BᵀB) u = x − Bᵀy, in as
many operations as B has numbers. B = 0 is no turn at all.
"""

from functools import lru_cache
from typing import ClassVar

import numpy as np

from quenched.arrays import Array, namespace
from quenched.families.gaussian import Family, Gaussian, with_equal_axes
from quenched.families.nearest_low_rank import nearest
from quenched.families.positive_definite import cholesky_or_nan
from quenched.families.roles import correlation, location, spread
from quenched.families.sparse import MOST_DENSE
from quenched.families.triangle import pack, packed_size, unpack_with
from quenched.frozen import static
from quenched.numbers import whole_number

# Coordinates up to which draws are matched all together, which makes Gaussian targets exact. Beyond, directions stay as they
# are found at the start: with fewer draws than coordinates they would turn to where no draw is.
_MATCHED = 1024
_MORE_DIRECTIONS = 4  # times as many, where these are not enough


class LowRankGaussian(Gaussian):
    """q = N(mean, D (I + Q (S Sᵀ − I) Qᵀ) D).

    `log_sd` is log D; `log_stretch` and `mixing` are the triangle S, its diagonal by logarithms and the rest packed; `tilt`
    holds B (dim − k, k), row by row.
    """

    mean: Array = location()
    log_sd: Array = spread()
    log_stretch: Array = correlation()
    mixing: Array = correlation()
    tilt: Array = correlation()
    rank: int = static()

    @property
    def groups(self):
        return _groups(self.dim, self.rank)

    @property
    def family(self):
        return LowRank(self.rank)

    @property
    def stretch(self) -> Array:
        """S."""
        return unpack_with(namespace(self.mixing).exp(self.log_stretch), self.mixing)

    @property
    def directions(self) -> Array:
        """Q, (dim, k)."""
        xp = namespace(self.tilt)
        return _turned(self._tilt, xp.eye(self.rank, self.dim)).T

    @property
    def _tilt(self) -> Array:
        return self.tilt.reshape(*self.tilt.shape[:-1], self.dim - self.rank, self.rank)

    @property
    def scale(self) -> Array:
        self._insist_small("scale")
        return (self._spread(namespace(self.tilt).eye(self.dim))).T

    @property
    def covariance(self) -> Array:
        self._insist_small("covariance")
        return self.covariance_times(namespace(self.tilt).eye(self.dim))

    def _insist_small(self, name: str) -> None:
        if self.dim > MOST_DENSE:
            raise ValueError(
                f"{name}: it would have {self.dim}² entries; ask for posterior.variance() or posterior.marginal(names)."
            )

    def covariance_times(self, vectors):
        xp = namespace(self.tilt)
        sds, directions, stretch = xp.exp(self.log_sd)[:, None], self.directions, self.stretch
        scaled = sds * vectors
        seen = directions.T @ scaled
        return sds * (scaled + directions @ (stretch @ (stretch.T @ seen) - seen))

    def transform(self, draws):
        return self.mean + self._spread(draws)

    def _spread(self, draws: Array) -> Array:
        xp = namespace(self.tilt)
        first = draws[..., : self.rank] @ self.stretch.T
        stretched = xp.concatenate([first, draws[..., self.rank :]], axis=-1)
        return xp.exp(self.log_sd) * _turned(self._tilt, stretched)

    def standardise(self, points):
        xp = namespace(self.tilt)
        turned = _turned(-self._tilt, (points - self.mean) * xp.exp(-self.log_sd))
        first = turned[..., : self.rank] @ _inverse(self.stretch).T
        return xp.concatenate([first, turned[..., self.rank :]], axis=-1)

    def compose(self, inner):
        """Not the composition of the maps, which is of twice the rank, but of their parts."""
        xp = namespace(self.tilt)
        stretch = self.stretch
        tilt = self.tilt
        if self.groups is None:
            # A turn of a direction by an angle costs as much more as the direction is wider or narrower than the rest.
            wider = stretch - _inverse(stretch).T
            slower = _inverse(cholesky_or_nan(xp.eye(self.rank) + wider @ wider.T))
            tilt = tilt + (inner._tilt @ slower.T).reshape(tilt.shape)
        return LowRankGaussian(
            self.mean + self._spread(inner.mean),
            self.log_sd + inner.log_sd,
            self.log_stretch + inner.log_stretch,
            pack(stretch @ inner.stretch),
            tilt,
            self.rank,
        )

    def shifted(self, shift):
        return LowRankGaussian(self.mean + shift, self.log_sd, self.log_stretch, self.mixing, self.tilt, self.rank)

    def log_determinant(self):
        return self.log_sd.sum(axis=-1) + self.log_stretch.sum(axis=-1)

    def variance(self):
        xp, directions = namespace(self.tilt), self.directions
        wider = ((directions @ self.stretch) ** 2).sum(axis=-1) - (directions**2).sum(axis=-1)
        return xp.exp(2.0 * self.log_sd) * (1.0 + wider)


def _inverse(matrix: Array) -> Array:
    """NaN where there is none, as JAX has it: a fit that runs away is told so, not broken off."""
    try:
        return namespace(matrix).linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.full(matrix.shape, np.nan)


def _turned(tilt: Array, points: Array) -> Array:
    """H times every row, for the tilt B; its inverse is H for −B."""
    xp, rank = namespace(tilt), tilt.shape[-1]
    first, rest = points[..., :rank], points[..., rank:]
    inner = _inverse(xp.eye(rank) + tilt.T @ tilt)
    half = (first - rest @ tilt) @ inner.T
    return xp.concatenate([2.0 * half - first, rest + 2.0 * half @ tilt.T], axis=-1)


class LowRank(Family):
    """Every parameter has its own standard deviation, and all may correlate along a few directions.

    For many parameters without a structure that is known: with `rank` directions it holds (rank + 2) numbers for each.
    It is exact for Gaussians whose covariance is diagonal plus one of this rank; what a few directions cannot say stays
    as in the diagonal family, whose standard deviations are too small where parameters correlate.

    Parameters
    ----------
    rank
        Number of directions.

    Examples
    --------
    >>> covariance = np.diag(np.linspace(1.0, 3.0, 40)) + 1.0  # one direction that all share
    >>> precision = np.linalg.inv(covariance)
    >>> fit = qd.fit(lambda w: -0.5 * w @ precision @ w, np.zeros(40), family=qd.LowRank(1))
    >>> np.allclose(fit.sd, np.sqrt(np.diag(covariance)), rtol=1e-3)
    True
    """

    rank: int = 10
    affine: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "rank", whole_number("rank", self.rank, 1))

    @property
    def name(self) -> str:
        """What the settings of a fit call it."""
        return f"low rank ({self.rank})"

    def groups(self, sizes):
        return _groups(sum(sizes), self.rank)

    def first_draws(self, sizes):
        """As few as make Gaussian targets exact; where that would be very many, a number that does not grow with them."""
        dim = sum(sizes)
        return max(64, 2 * dim) if dim <= _MATCHED else max(256, 8 * (self.rank + 1))

    def directions(self, dim):
        return min(self.rank, dim)

    def advice(self, dim):
        return f"family=qd.LowRank({_MORE_DIRECTIONS * self.rank}), or write it as a sum of terms (qd.sum_of)"

    def member(self, mean, precision, sizes):
        mean, precision = with_equal_axes(mean, precision, 2)
        rank = min(self.rank, mean.shape[-1])
        stack = precision.reshape(-1, *precision.shape[-2:])
        parts = [nearest(one, rank) for one in stack]
        return self.along(mean, *(np.array([part[i] for part in parts]) for i in range(3)))

    def isotropic(self, mean, scale, sizes):
        mean, scale = with_equal_axes(mean, scale, 1)
        rank, dim, count = min(self.rank, mean.shape[-1]), mean.shape[-1], int(np.prod(mean.shape[:-1]))
        straight = np.broadcast_to(np.eye(dim, rank), (count, dim, rank))
        return self.along(mean, scale.reshape(count, dim), straight, np.ones((count, rank)))

    def along(self, mean, sds, directions, stretches):
        """Or a stack of members, from flat stacks of their parts."""
        leading, dim, rank = mean.shape[:-1], mean.shape[-1], min(self.rank, mean.shape[-1])
        sds, stretches = sds.reshape(*leading, dim), stretches.reshape(*leading, rank)
        directions = directions.reshape(*leading, dim, rank)
        log_stretch, mixing = np.empty((*leading, rank)), np.empty((*leading, packed_size(rank)))
        tilt = np.empty((*leading, (dim - rank) * rank))
        for place in np.ndindex(leading):
            triangle, tilt[place] = _parts(directions[place], stretches[place])
            log_stretch[place], mixing[place] = np.log(np.diag(triangle)), pack(triangle)
        return LowRankGaussian(mean, np.log(sds), log_stretch, mixing, tilt, rank)


def _parts(directions: np.ndarray, stretches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """S and B: the directions are first turned among themselves, so that their top becomes symmetric."""
    rank = directions.shape[1]
    left, _, right = np.linalg.svd(directions[:rank])
    among = right.T @ left.T
    turned = directions @ among
    top = 0.5 * (turned[:rank] + turned[:rank].T)
    tilt = np.linalg.solve(np.eye(rank) + top, turned[rank:].T).T
    square = (among.T * stretches**2) @ among
    return np.linalg.cholesky(0.5 * (square + square.T)), tilt.ravel()


@lru_cache(maxsize=8)
def _groups(dim: int, rank: int):
    """The stretched coordinates with each of the others, where not all can be matched together."""
    if dim <= _MATCHED:
        return None
    first = tuple(range(min(rank, dim)))
    return tuple((*first, other) for other in range(len(first), dim))
