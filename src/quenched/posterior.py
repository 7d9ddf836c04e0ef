"""The fitted posterior in NumPy, and its moments in natural units.

Everything here is computed in double precision, whatever JAX is set to where it is asked for.
"""

import difflib
from collections.abc import Callable
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.draws import Draws, Purpose, generator, make, stream
from quenched.families import Member, ask
from quenched.numbers import given_function, real_array, whole_number
from quenched.precision import in_double
from quenched.text import shown
from quenched.transforms import Parameters, Space, real

_NATURAL_DRAWS = 4096  # for moments in natural units; costs no evaluation of the log density
_NATURAL_NUMBERS = 10**7  # draws times coordinates, at the most
_MOST_NUMBERS = 2**40  # of samples: more fit into no machine
_NODES = 48  # by which moments of single numbers are taken
_AT_A_TIME = 16  # posteriors whose moments are taken by draws


class Posterior:
    """The fitted posterior, a Gaussian or a warped one, over the raveled parameters on the real line, in NumPy."""

    def __init__(self, member: Member, space: Space | None = None):
        self.space = space  # names its coordinates, where it is known
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
        with in_double():  # a field needs no program, but some families put theirs together
            return np.asarray(self.member.mean)

    @cached_property
    def scale(self) -> np.ndarray:
        """L, lower triangular, with covariance L Lᵀ; of a warped posterior, the factor of its own covariance."""
        return self._ask("scale")

    @cached_property
    def covariance(self) -> np.ndarray:
        """L Lᵀ, dense."""
        return self._ask("covariance")

    def variance(self) -> np.ndarray:
        """Diagonal of the covariance, without forming it."""
        return self._variance

    @cached_property
    def _variance(self) -> np.ndarray:
        return self._ask("variance")

    def entropy(self) -> float:
        """In nats."""
        return float(self._ask("entropy"))

    def log_density(self, w: Any) -> np.ndarray:
        """log q at one point (dim,) or at every row of (n, dim)."""
        points = real_array("w", w)
        if points.shape[-1:] != (self.dim,) or points.ndim > 2:
            raise ValueError(f"w has shape {points.shape}; give ({self.dim},) or (n, {self.dim}).")
        return self._ask("log_density", np.atleast_2d(points)).reshape(points.shape[:-1])

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """Independent samples on the real line, (n, dim)."""
        n = whole_number("n", n, 1, _MOST_NUMBERS // self.dim)
        return self.transform(generator(seed, Purpose.SAMPLES).standard_normal((n, self.dim)))

    def transform(self, draws: np.ndarray) -> np.ndarray:
        """The point of every row z: mean + scale z, or its warped image."""
        points = real_array("draws", draws)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise ValueError(f"draws has shape {points.shape}; give (n, {self.dim}).")
        return self._ask("transform", points)

    def of(self, linear: Any) -> "Marginal":
        """Means and covariance of linear functions of the parameters on the real line.

        Parameters
        ----------
        linear
            Their coefficients, (functions, dim) or (dim,): an array, or a scipy.sparse matrix.
        """
        matrix = real_array("linear", linear.toarray() if callable(getattr(linear, "toarray", None)) else linear)
        if matrix.ndim not in (1, 2) or matrix.shape[-1] != self.dim:
            raise ValueError(f"linear has shape {matrix.shape}; give ({self.dim},) or (functions, {self.dim}).")
        covariance = np.atleast_2d(matrix) @ self._ask("covariance_times", np.atleast_2d(matrix).T)
        covariance = 0.5 * (covariance + covariance.T)
        return Marginal(matrix @ self.mean, covariance if matrix.ndim == 2 else covariance[0, 0])

    def places(self, names: Any) -> np.ndarray:
        """Where parameters stand in the raveled vector, by their names (see `marginal`)."""
        try:
            asked = [names] if isinstance(names, (str, int, np.integer)) else list(names)
        except Exception as error:  # of whatever it is, when it is looked through
            raise ValueError(f"names={shown(names)}: give one name or place, or several.") from error
        words = [name for name in asked if isinstance(name, str)]
        if words and self.space is None:
            raise ValueError(f"names={shown(names)}: this posterior does not know its parameters by name; give places.")
        known = _places_by_name(self.space, words) if self.space is not None else {}
        parts = [known[name] if isinstance(name, str) else _as_place(name) for name in asked]
        places = np.concatenate(parts) if parts else np.zeros(0)
        if places.dtype.kind not in "iu" or not 0 <= places.min() <= places.max() < self.dim:
            raise ValueError(f"names={shown(names)}: places are whole numbers from 0 to {self.dim - 1}.")
        return places

    def marginal(self, names: Any) -> "Marginal":
        """Mean and covariance of some parameters on the real line.

        Parameters
        ----------
        names
            One or several: of leaves (`"beta"`, all its numbers) and of single numbers (`"student[3]"`), or their places
            in the raveled vector.
        """
        places = self.places(names)
        units = np.zeros((len(places), self.dim))
        units[np.arange(len(places)), places] = 1.0
        return self.of(units)

    def _ask(self, name: str, *inputs: np.ndarray) -> np.ndarray:
        with in_double():
            return np.asarray(ask(self.member, name, *inputs))


def _as_place(value: Any) -> np.ndarray:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and abs(value) < 2**62
    return np.array([int(value)]) if whole else np.zeros(1)  # refused by whoever asks


class Marginal(NamedTuple):
    """Mean and covariance of some numbers on the real line."""

    mean: Any
    covariance: Any

    @property
    def sd(self) -> np.ndarray:
        """Standard deviations."""
        return np.sqrt(np.diag(self.covariance) if np.ndim(self.covariance) else self.covariance)


def _places_by_name(space: Space, names: list[str]) -> dict[str, np.ndarray]:
    begins = np.cumsum([0, *space.sizes])
    leaves = {leaf.name: np.arange(begins[i], begins[i + 1]) for i, leaf in enumerate(space.leaves)}
    missing = [name for name in names if name not in leaves]
    single = {name: place for place, name in enumerate(space.coordinate_names())} if missing else {}
    for name in missing:
        if name not in single:
            near = difflib.get_close_matches(name, [*leaves, *single], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"names: there is no parameter {name!r}; there are {', '.join(map(repr, leaves))}{hint}.")
        leaves[name] = np.array([single[name]])
    return leaves


def to_natural(space: Space, vectors: np.ndarray) -> Parameters:
    """Rows on the real line to a pytree in natural units with a leading axis."""
    if space.joint is not None and space.joint.on_host:
        return space.joint.to_natural(space.unravel_rows(vectors))
    with in_double():
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
    if posterior.member.on_host:
        return _marginal_moments(posterior, space)
    one = natural_moments_of_many(jax.tree.map(lambda leaf: leaf[None], posterior.member), space)
    return jax.tree.map(lambda leaf: leaf[0], one)


def _marginal_moments(posterior: Posterior, space: Space) -> tuple[Parameters, Parameters]:
    """Leaf by leaf: of numbers that go their own way by quadrature, of others by draws."""
    mean, sd = posterior.mean, np.sqrt(posterior.variance())
    found = jax.tree.leaves(space.unravel(mean)), jax.tree.leaves(space.unravel(sd))
    if space.constrained:
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        weights = weights / weights.sum()
        natural = jax.tree.leaves(to_natural(space, posterior.member.margins(nodes)))
        if any(leaf.transform.axes for leaf in space.leaves):
            drawn = jax.tree.leaves(to_natural(space, posterior.transform(moment_draws(space.dim).points)))
        for place, leaf in enumerate(space.leaves):
            if leaf.transform == real:
                continue
            own = drawn[place] if leaf.transform.axes else natural[place]  # pyright: ignore
            shares = np.full(len(own), 1.0 / len(own)) if leaf.transform.axes else weights
            found[0][place] = centre = np.tensordot(shares, own, 1)
            found[1][place] = np.sqrt(np.tensordot(shares, (own - centre) ** 2, 1))
    first, second = (jax.tree.unflatten(space.structure, leaves) for leaves in found)
    return first, second


def natural_moments_of_many(members: Member, space: Space) -> tuple[Parameters, Parameters]:
    """The same of a stack of posteriors, with its axis first."""
    if members.on_host:
        n = len(members.mean)
        each = [natural_moments(Posterior(jax.tree.map(lambda leaf: leaf[i], members)), space) for i in range(n)]  # noqa: B023
        return jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    draws = moment_draws(space.dim).points if space.constrained else None
    if space.joint is not None and space.joint.on_host:
        return _moments_on_host(members, space, draws)
    with in_double():
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

    Exact for numbers that go their own way, where the posterior knows their coordinates on the real line one by one: they
    increase with them. By draws for the others.
    """
    heights = np.array([NormalDist().inv_cdf(level) for level in levels])
    with in_double():
        points = posterior.member.margins(heights)
    by_draws = [bool(leaf.transform.axes) or points is None for leaf in space.leaves]
    chosen = jax.tree.leaves(to_natural(space, np.zeros((len(levels), space.dim)) if points is None else points))
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
    given_function("function", function, "function(parameters) -> number, array or pytree")
    with in_double():
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
