"""Linear response: how the fitted means answer to a push on the target (Giordano, Broderick and Jordan 2018).

The covariance of f and g under the target is the change of E[f] when g is added to the log density. At an optimum of the
bound that change is ∇E[f]ᵀ H⁻¹ ∇E[g], H the curvature of the bound. A family that leaves out correlations has means that
know about them: linear response gives the standard deviations that the family itself gets wrong.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from quenched.arrays import Array
from quenched.compiling import compiled, program
from quenched.diagnostics.conjugate_gradients import solve_all
from quenched.diagnostics.curvature import Curvature
from quenched.diagnostics.products import Products, by_differences, by_expansions, plan, width
from quenched.families import Role, roles
from quenched.fitting import Watcher
from quenched.interrupts import obey_interrupts
from quenched.numbers import whole_number
from quenched.objective import Coordinates
from quenched.posterior import moment_draws
from quenched.precision import in_double
from quenched.text import shown
from quenched.threads import quiet_blas
from quenched.transforms import Parameters, Space

_TOLERANCE = 3e-3  # of the solution; covariances are right to its square
_MAX_PRODUCTS = 200
_ROWS = 16  # of a derivative at a time: they hold all draws
_CURVATURE_OF_SPREADS = 2.0  # of a Gaussian's bound in the logarithm of a standard deviation; in all else it is one


class Response(NamedTuple):
    """Moments of a function of the parameters.

    Examples
    --------
    >>> fit = qd.fit(lambda w: -0.5 * jnp.sum((w - 1.0) ** 2), np.zeros(2))
    >>> total = fit.diagnose().linear_response.of(jnp.sum)
    >>> float(total.mean.round(3)), float(total.sd.round(3))
    (2.0, 1.414)
    """

    mean: Any  # under the fitted posterior, shaped like the function's value
    sd: Any  # by linear response
    covariance: np.ndarray  # of the raveled value


class LinearResponse:
    """Standard deviations by linear response, for all parameters or for functions of them; computed when asked for.

    Hyperparameters are held where the fit left them.

    Examples
    --------
    >>> precision = np.array([[1.0, 0.8], [0.8, 1.0]])
    >>> fit = qd.fit(lambda p: -0.5 * p["w"] @ precision @ p["w"], {"w": np.zeros(2)}, family="diagonal")
    >>> fit.sd["w"].round(2)  # 1 over the root of the precision's diagonal
    array([1., 1.])
    >>> response = fit.diagnose().linear_response
    >>> response.sd["w"].round(2)
    array([1.67, 1.67])
    >>> float(response.of(lambda p: p["w"].sum()).sd.round(2))
    1.05
    """

    def __init__(self, curvature: Curvature, space: Space, *, progress: bool = False):
        self._curvature, self._space, self._progress = curvature, space, progress

    @property
    def n_gradients(self) -> int:
        """Gradient evaluations that `sd` takes, about: to be compared with `fit.n_evaluations` before it is asked for."""
        return self.n_gradients_for(self._space.dim)

    def n_gradients_for(self, n: int) -> int:
        """The same for n numbers."""
        return plan(self._curvature, whole_number("n", n, 1)).n_gradients

    @cached_property
    def covariance(self) -> np.ndarray:
        """Of the raveled parameters on the real line."""
        with in_double():
            return self._covariance(np.asarray(_of_means(self._curvature.coordinates)))

    @cached_property
    def sd(self) -> Parameters:
        """In natural units, shaped like `start`."""
        if self._space.constrained:
            return self._of(_as_it_is).sd
        return self._space.unravel(np.sqrt(np.diag(self.covariance)))

    def of(self, what: Callable[[Parameters], Any] | str | Sequence[str]) -> Response:
        """Mean and standard deviation of a function of the parameters, or of some of them; all in natural units.

        Parameters
        ----------
        what
            A function in JAX that returns a number, an array or a pytree of them; or a name, such as "tau" or
            "theta[3]"; or several names, for a dictionary.

        Raises
        ------
        ValueError
            When no parameter has that name.
        """
        if isinstance(what, str):
            place = _find(self._space, what)
            return self._of(lambda parameters: _take(parameters, place))
        if not callable(what):
            if not isinstance(what, (list, tuple)) or not what or not all(isinstance(name, str) for name in what):
                raise ValueError(f"what={shown(what)}: give a function of the parameters, a name, or several names.")
            places = {name: _find(self._space, name) for name in what}
            return self._of(lambda parameters: {name: _take(parameters, place) for name, place in places.items()})
        return self._of(lambda parameters: what(parameters))  # a new one: what it refers to may have changed

    def _of(self, function: Callable[[Parameters], Any]) -> Response:
        if self._space.joint is not None and self._space.joint.on_host:
            raise ValueError(
                "linear_response: the model maps its parameters to natural units in code that JAX cannot differentiate; "
                "linear_response.covariance is that on the real line."
            )
        with in_double():
            value = lambda vector: function(self._space.to_natural(vector))
            shapes = jax.eval_shape(value, jax.ShapeDtypeStruct((self._space.dim,), np.float64))
            z = moment_draws(self._space.dim).points
            mean, pushes = map(np.asarray, _expectation(function, self._space, self._curvature.coordinates, z))
            covariance = self._covariance(pushes)
            return Response(shaped(mean, shapes), shaped(np.sqrt(np.diag(covariance)), shapes), covariance)

    def _covariance(self, pushes: np.ndarray) -> np.ndarray:
        """P H⁻¹ Pᵀ, for the derivatives P of expectations in whitened coordinates."""
        on_host = self._curvature.objective.problem.target.on_host
        with quiet_blas(on_host), Watcher(self._progress, None) as watch:
            solutions = self._solved(pushes[:, : self._curvature.size], watch)  # hyperparameters are held
        if not all(solution.converged for solution in solutions):
            warnings.warn(
                "linear_response: the bound is not at a top that curves downwards in every direction, so these "
                "standard deviations are rough; diagnosis.optimisation_error says how far from it the fit stopped.",
                stacklevel=4,
            )
        steps, residuals = (np.array([getattr(one, name) for one in solutions]) for name in ("vector", "residual"))
        # With the residuals every entry is right to the square of the tolerance; P H⁻¹ Pᵀ alone is on the diagonal only.
        covariance = pushes[:, : self._curvature.size] @ steps.T + steps @ residuals.T
        return 0.5 * (covariance + covariance.T)

    def _solved(self, pushes: np.ndarray, watch: Watcher) -> list[Any]:
        n, at_a_time = len(pushes), width(self._curvature, len(pushes))
        products, scale = self._products(n, watch), self._scale

        def times(rows: np.ndarray) -> np.ndarray:
            obey_interrupts()
            return products(rows * scale) * scale

        solutions = solve_all(
            times,
            pushes * scale,
            width=at_a_time,
            tolerance=_TOLERANCE,
            max_products=_MAX_PRODUCTS,
            tell=lambda n_ended: watch.say(f"linear response: {n_ended} of {n} solved"),
        )
        return [one._replace(vector=one.vector * scale, residual=one.residual / scale) for one in solutions]

    def _products(self, n: int, watch: Watcher) -> Products:
        found, n_draws = None, self._curvature.objective.n
        if plan(self._curvature, n).expand:
            say = lambda index: watch.say(f"linear response: second derivatives at {index} of {n_draws} draws")
            found = by_expansions(self._curvature, say)
        return by_differences(self._curvature) if found is None else found

    @property
    def _scale(self) -> np.ndarray:
        """Of each coordinate, so that the curvature of a Gaussian is the identity."""
        kinds = roles(self._curvature.coordinates.reference)
        return np.where(kinds == Role.SPREAD, _CURVATURE_OF_SPREADS**-0.5, 1.0)


def _as_it_is(value: Any) -> Any:
    return value


def _find(space: Space, name: str) -> tuple[int, tuple[int, ...]]:
    """Which leaf, and where in it, a name such as `theta[3]` means."""
    for number, leaf in enumerate(space.leaves):
        if name == leaf.name:
            return number, ()
        if name.startswith(f"{leaf.name}[") and name.endswith("]"):
            inside = name[len(leaf.name) + 1 : -1].split(",")
            if len(inside) <= len(leaf.shape) and all(
                part.strip().isdecimal() and int(part) < size for part, size in zip(inside, leaf.shape, strict=False)
            ):
                return number, tuple(map(int, inside))
    shapes = ", ".join(f"{leaf.name} {leaf.shape}" for leaf in space.leaves)
    raise ValueError(f"linear_response.of({name!r}): there is no such parameter; the fit has {shapes}.")


def _take(parameters: Parameters, place: tuple[int, tuple[int, ...]]) -> Array:
    leaf, index = place
    return jnp.asarray(jax.tree.leaves(parameters)[leaf])[index]


@partial(compiled, static_argnums=(0, 1))
def _expectation(function: Callable[[Any], Any], space: Space, coordinates: Coordinates, z: Array):
    """E[f], raveled, and its derivative in whitened coordinates, f a function in natural units."""

    def of_one(vector):
        return ravel_pytree(function(space.to_natural(vector)))[0]

    def expected(vector):
        return jnp.mean(jax.vmap(of_one)(coordinates.read(vector)[0].transform(z)), axis=0)

    mean, pull = jax.vjp(expected, jnp.zeros(coordinates.size))
    return mean, jax.lax.map(lambda one: pull(one)[0], jnp.eye(mean.size), batch_size=_ROWS)


@program
def _of_means(coordinates: Coordinates) -> Array:
    """The derivative of the means on the real line in whitened coordinates."""
    mean, pull = jax.vjp(lambda vector: coordinates.read(vector)[0].mean, jnp.zeros(coordinates.size))
    return jax.lax.map(lambda one: pull(one)[0], jnp.eye(mean.size), batch_size=_ROWS)


def shaped(vector: np.ndarray, shapes: Any) -> Any:
    """A raveled value as the pytree of arrays that it was."""
    leaves, structure = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = np.split(vector, ends[:-1]) if leaves else []
    return jax.tree.unflatten(structure, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)])
