"""The fitted posterior in NumPy, and its moments in natural units.

Everything here is computed in double precision, whatever JAX is set to where it is asked for.
"""

from collections.abc import Callable
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.draws import Draws, Purpose, generator, make, stream
from quenched.families import Member, ask
from quenched.transforms import Parameters, Space, real

_NATURAL_DRAWS = 4096  # for moments in natural units; costs no evaluation of the log density
_NATURAL_NUMBERS = 10**7  # draws times coordinates, at the most
_AT_A_TIME = 16  # posteriors whose moments are taken by draws


class Posterior:
    """The fitted posterior, a Gaussian or a warped one, over the raveled parameters on the real line, in NumPy."""

    def __init__(self, member: Member):
        self.member = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), member)

    def __repr__(self) -> str:
        return f"{type(self.member).__name__}(dim={self.dim})"

    @property
    def dim(self) -> int:
        """Coordinates on the real line."""
        return self.member.dim

    @cached_property
    def mean(self) -> np.ndarray:
        """m: also of a warped posterior, whose terms have mean zero."""
        with jax.enable_x64(True):  # a field needs no program, but some families put theirs together
            return np.asarray(self.member.mean)

    @cached_property
    def scale(self) -> np.ndarray:
        """L, lower triangular, with covariance L Lᵀ; of a warped posterior, the factor of its own covariance."""
        return self._ask("scale")

    @cached_property
    def covariance(self) -> np.ndarray:
        """L Lᵀ, dense."""
        return self._ask("covariance")

    @cached_property
    def variance(self) -> np.ndarray:
        """Diagonal of the covariance, without forming it."""
        return self._ask("variance")

    def entropy(self) -> float:
        """In nats."""
        return float(self._ask("entropy"))

    def log_density(self, w: Any) -> np.ndarray:
        """log q at one point (dim,) or at every row of (n, dim)."""
        points = np.asarray(w, dtype=np.float64)
        if points.shape[-1:] != (self.dim,) or points.ndim > 2:
            raise ValueError(f"w has shape {points.shape}; give ({self.dim},) or (n, {self.dim}).")
        return self._ask("log_density", np.atleast_2d(points)).reshape(points.shape[:-1])

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """Independent samples on the real line, (n, dim)."""
        return self.transform(generator(seed, Purpose.SAMPLES).standard_normal((n, self.dim)))

    def transform(self, draws: np.ndarray) -> np.ndarray:
        """The point of every row z: mean + scale z, or its warped image."""
        return self._ask("transform", np.asarray(draws))

    def _ask(self, name: str, *inputs: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(ask(self.member, name, *inputs))


def to_natural(space: Space, vectors: np.ndarray) -> Parameters:
    """Rows on the real line to a pytree in natural units with a leading axis."""
    if space.joint is not None and space.joint.on_host:
        return space.joint.to_natural(space.unravel_rows(vectors))
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, _all_to_natural(space, vectors))


@partial(jax.jit, static_argnums=0)
def _all_to_natural(space: Space, vectors: Any) -> Parameters:
    return jax.vmap(space.to_natural)(vectors)


def moment_draws(dim: int) -> Draws:
    """The draws by which moments in natural units are taken."""
    n = int(np.clip(_NATURAL_NUMBERS // dim, 64, _NATURAL_DRAWS) // 2 * 2)
    return make("matched" if 2 * dim <= n else "antithetic", n, dim, stream(0, Purpose.MOMENTS))


def natural_moments(posterior: Posterior, space: Space) -> tuple[Parameters, Parameters]:
    """Means and standard deviations in natural units: exact for real parameters, by draws for the others."""
    one = natural_moments_of_many(jax.tree.map(lambda leaf: leaf[None], posterior.member), space)
    return jax.tree.map(lambda leaf: leaf[0], one)


def natural_moments_of_many(members: Member, space: Space) -> tuple[Parameters, Parameters]:
    """The same of a stack of posteriors, with its axis first."""
    draws = moment_draws(space.dim).points if space.constrained else None
    if space.joint is not None and space.joint.on_host:
        return _moments_on_host(members, space, draws)
    with jax.enable_x64(True):
        return jax.tree.map(np.array, _moments(space, members, draws))


def _moments_on_host(members: Member, space: Space, draws: Any) -> tuple[Parameters, Parameters]:
    found = []
    for place in range(len(jax.tree.leaves(members)[0])):
        member = Posterior(jax.tree.map(lambda leaf: leaf[place], members))  # noqa: B023
        natural = to_natural(space, member.transform(draws))
        found.append(tuple(jax.tree.map(lambda leaf: of(leaf, axis=0), natural) for of in (np.mean, np.std)))  # noqa: B023
    return jax.tree.map(lambda *rows: np.stack(rows), *found)


def natural_quantiles(posterior: Posterior, space: Space, levels: tuple[float, ...]) -> Parameters:
    """Quantiles in natural units, with the levels along a leading axis.

    Exact for the numbers of a Gaussian that go their own way: they increase with their coordinate on the real line. By
    draws for the others.
    """
    heights = np.array([NormalDist().inv_cdf(level) for level in levels])
    points = posterior.mean + heights[:, None] * np.sqrt(posterior.variance)
    chosen = jax.tree.leaves(to_natural(space, points))
    by_draws = [bool(leaf.transform.axes) or not posterior.member.affine for leaf in space.leaves]
    if any(by_draws):
        natural = jax.tree.leaves(to_natural(space, posterior.transform(moment_draws(space.dim).points)))
        drawn = lambda values: np.quantile(values, levels, axis=0)
        chosen = [drawn(b) if wanted else a for wanted, a, b in zip(by_draws, chosen, natural, strict=True)]
    return jax.tree.unflatten(space.structure, chosen)


@partial(jax.jit, static_argnums=0)
def _moments(space: Space, members: Member, draws: Any) -> tuple[Parameters, Parameters]:
    """Of each in turn, a few at a time; without draws, those on the real line."""
    is_real = jax.tree.unflatten(space.structure, [leaf.transform == real for leaf in space.leaves])

    def moments(member: Member) -> tuple[Parameters, Parameters]:
        mean, sd = space.unravel(member.mean), space.unravel(jnp.sqrt(member.variance()))
        if draws is None:
            return mean, sd
        natural = jax.vmap(space.to_natural)(member.transform(draws))
        pick = lambda exact, of: jax.tree.map(lambda free, a, b: a if free else of(b, axis=0), is_real, exact, natural)
        return pick(mean, jnp.mean), pick(sd, jnp.std)

    return jax.lax.map(moments, members, batch_size=_AT_A_TIME)


class Derived(NamedTuple):
    """A function of the parameters under a posterior; each shaped like the function's value."""

    mean: Any
    mean_error: Any  # due to the samples
    sd: Any
    lower: Any  # 5 %
    median: Any
    upper: Any  # 95 %


def derived(function: Callable[[Parameters], Any], samples: Parameters) -> Derived:
    """Moments and quantiles of a function over samples with a leading axis."""
    with jax.enable_x64(True):
        values = jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda parameters: function(parameters)))(samples))
    n = len(jax.tree.leaves(samples)[0])
    over = lambda take: jax.tree.map(take, values)
    quantile = lambda level: over(lambda value: np.quantile(value, level, axis=0))
    return Derived(
        over(lambda value: value.mean(axis=0)),
        over(lambda value: value.std(axis=0, ddof=1) / np.sqrt(n)),
        over(lambda value: value.std(axis=0, ddof=1)),
        quantile(0.05),
        quantile(0.5),
        quantile(0.95),
    )
