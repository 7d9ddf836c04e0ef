"""A posterior in natural units: samples, moments and quantiles there, and of any function of the parameters.

Everything here is computed in double precision, whatever JAX is set to where it is asked for.
"""

from collections.abc import Callable, Iterable
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.compiling import compiled, program
from quenched.draws import Draws, Purpose, make, stream
from quenched.families import Member
from quenched.numbers import given_function
from quenched.posterior.posterior import Posterior
from quenched.precision import in_double
from quenched.targets import explaining
from quenched.transforms import Parameters, Space, real

_NATURAL_DRAWS = 4096  # for moments in natural units; costs no evaluation of the log density
_NATURAL_NUMBERS = 10**7  # draws times coordinates, at the most
_NODES = 48  # by which moments of single numbers are taken
_AT_A_TIME = 16  # posteriors whose moments are taken by draws


def to_natural(space: Space, vectors: np.ndarray) -> Parameters:
    """Rows on the real line to a pytree in natural units with a leading axis."""
    if space.joint is not None and space.joint.on_host:
        return space.joint.to_natural(space.unravel_rows(vectors))
    with in_double():
        return jax.tree.map(np.asarray, _all_to_natural(space, vectors))


@partial(program, static_argnums=0)
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


@partial(program, static_argnums=0)
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
    """A function of the parameters under a posterior; each shaped like the function's value.

    Examples
    --------
    >>> fit = qd.fit(lambda p: -0.5 * (p["a"] ** 2 + (p["b"] - 3.0) ** 2), {"a": 0.0, "b": 0.0})
    >>> total = fit.of(lambda p: p["a"] + p["b"])
    >>> bool(abs(total.mean - 3.0) < 5 * total.mean_error), bool(total.lower < total.median < total.upper)
    (True, True)
    """

    mean: Any
    mean_error: Any  # due to the samples
    sd: Any
    lower: Any  # 5 %
    median: Any
    upper: Any  # 95 %

    def __str__(self) -> str:
        paths, _ = jax.tree_util.tree_flatten_with_path(self.mean)
        lines = [["", "mean", "±", "sd", "5%", "50%", "95%"]]
        for (path, _), *parts in zip(paths, *map(jax.tree.leaves, self), strict=True):
            name = jax.tree_util.keystr(path, simple=True, separator=".") or "value"
            for index in np.ndindex(np.shape(parts[0])):
                entry = f"{name}[{','.join(map(str, index))}]" if index else name
                lines.append([entry, *(f"{np.asarray(part)[index]:.4g}" for part in parts)])
        wide = max(len(name) for name, *_ in lines)
        return "\n".join(f"{name:{wide}}" + "".join(f"{text:>11}" for text in texts) for name, *texts in lines)


def derived(function: Callable[[Parameters], Any], samples: Iterable[Parameters]) -> Derived:
    """Moments and quantiles of a function over samples with a leading axis, which may come in several parts."""
    given_function("function", function, "function(parameters) -> number, array or pytree")
    with in_double():
        of_part = compiled(jax.vmap(lambda parameters: explaining("function", function, parameters)))
        parts, n = [], 0
        for part in samples:
            parts.append(jax.tree.map(np.asarray, of_part(part)))
            n += len(jax.tree.leaves(part)[0])
        # A condition has a probability.
        values = jax.tree.map(lambda *values: np.concatenate(values).astype(np.float64), *parts)
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
