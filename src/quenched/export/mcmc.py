"""Hand a fit over to MCMC: where to begin, with which mass matrix, and the log density to sample from.

A chain that begins in the posterior with its covariance as inverse mass matrix needs next to no warm-up. The fit is not
part of the answer then: NUTS is exact whatever it begins with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.numbers import float_array
from quenched.objective import Problem, RealLine
from quenched.posterior import to_natural
from quenched.precision import in_double
from quenched.results import Fit, insist_fit, require_origin
from quenched.targets import Hyper
from quenched.transforms import Parameters

_RECIPES = """\
A start for NUTS in {dim} parameters on the real line ({names}).

NumPyro
  nuts = NUTS(potential_fn=start.potential, inverse_mass_matrix=start.inverse_mass_matrix, dense_mass=True)
  mcmc = MCMC(nuts, num_warmup=200, num_samples=1000); mcmc.run(key, init_params=start.mean)
  samples = start.to_natural(mcmc.get_samples())
BlackJAX
  nuts = blackjax.nuts(start.log_density, start.step_size, start.inverse_mass_matrix); state = nuts.init(start.mean)
PyMC, if it has the same names
  covariance = start.covariance_of([variable.name for variable in model.free_RVs])
  pm.sample(initvals=start.initvals, step=pm.NUTS(scaling=covariance, is_cov=True))"""


@dataclass(frozen=True, eq=False)
class NutsStart:
    """What a sampler needs; `print(start)` shows the lines for NumPyro, BlackJAX and PyMC.

    Attributes
    ----------
    mean
        Of the raveled parameters on the real line: the first position.
    inverse_mass_matrix
        The covariance there: what NumPyro, BlackJAX and Stan call the inverse metric.
    step_size
        To begin with; right for a Gaussian posterior, and samplers adapt it.

    Examples
    --------
    >>> begin = qd.fit(lambda p: -0.5 * (p["a"] ** 2 + p["b"] ** 2 / 4.0), {"a": 0.0, "b": 0.0}).nuts_start()
    >>> begin.inverse_mass_matrix.round(3)
    array([[1., 0.],
           [0., 4.]])
    >>> begin.positions(4).shape  # of four chains
    (4, 2)
    >>> "NumPyro" in str(begin)  # print(begin) shows the lines to type
    True
    """

    fit: Fit = field(repr=False)
    mean: np.ndarray
    inverse_mass_matrix: np.ndarray = field(repr=False)
    step_size: float

    def __str__(self) -> str:
        names = ", ".join(leaf.name for leaf in self.fit.space.leaves)
        return _RECIPES.format(dim=len(self.mean), names=names)

    def log_density(self, vector: Array) -> Array:
        """The log density of the target at one vector on the real line, with the log-Jacobian of the transforms.

        A JAX function, to be differentiated and compiled by a sampler, in the precision that JAX is set to there; for a
        function on the host, a number. Hyperparameters are held where the fit left them.
        """
        vector = self._read(vector)
        problem, hyper, _ = require_origin(self.fit)
        data, hyper = jax.tree.map(np.asarray, (problem.data, hyper))  # 64 bits, unless JAX has been set to 32
        if problem.target.on_host:
            value = _on_host(problem, vector, data)
        else:
            known = problem.function
            # One of its own: it notes the precision it is traced in.
            function = RealLine(known.target, known.space, known.unravel_hyper)
            value = function(jnp.asarray(vector), jax.tree.map(jnp.asarray, data), jnp.asarray(hyper.free))
        return _joint(problem, hyper, value, vector)

    def _read(self, vector: Any) -> Array:
        """A sampler traces it, and may go where it is not finite."""
        given = vector if isinstance(vector, jax.Array) else float_array("vector", vector)
        if given.shape != self.mean.shape:
            raise ValueError(f"vector has shape {given.shape}; give ({len(self.mean)},).")
        return given

    def potential(self, vector: Array) -> Array:
        """Minus the log density, which NumPyro asks for."""
        return -self.log_density(vector)

    def positions(self, n: int, seed: int = 0) -> np.ndarray:
        """First positions of several chains, (n, dim): samples of the fitted posterior."""
        return self.fit.posterior.sample(n, seed)

    def to_natural(self, vectors: Any) -> Parameters:
        """Vectors (..., dim) on the real line to a pytree like `start` in natural units, with the same leading axes."""
        rows = float_array("vectors", vectors)
        if rows.shape[-1:] != self.mean.shape:
            raise ValueError(f"vectors has shape {rows.shape}; its last axis must have {len(self.mean)} entries.")
        natural = to_natural(self.fit.space, rows.reshape(-1, len(self.mean)))
        return jax.tree.map(lambda leaf: leaf.reshape(rows.shape[:-1] + leaf.shape[1:]), natural)

    @property
    def initvals(self) -> dict[str, np.ndarray]:
        """The first position by name, in natural units."""
        leaves = jax.tree.leaves(self.to_natural(self.mean))
        return {leaf.name: value for leaf, value in zip(self.fit.space.leaves, leaves, strict=True)}

    def covariance_of(self, names: Sequence[str]) -> np.ndarray:
        """The covariance of parameters in this order; other libraries have an order of their own.

        It is of use there if they take the same parameters to the real line in the same way: real ones as they are,
        positive ones by their logarithm.
        """
        chosen = self.fit.posterior.places(names)
        return self.inverse_mass_matrix[np.ix_(chosen, chosen)]


def nuts_start(fit: Fit) -> NutsStart:
    """A start for NUTS from a fit that knows its log density.

    Raises
    ------
    ValueError
        For a loaded fit without its log density, or one that reached nothing.

    Examples
    --------
    >>> from quenched.export import nuts_start
    >>> nuts_start(qd.fit(lambda w: -0.5 * w**2, 1.0)).step_size  # as fit.nuts_start()
    1.0
    """
    insist_fit(fit)
    require_origin(fit)
    if not np.isfinite(fit.bound):
        raise ValueError(f"fit: its bound is {fit.bound}, so there is nowhere to begin. {fit.message}")
    dim = fit.posterior.dim
    # The optimal step of Hamiltonian Monte Carlo falls with the fourth root of the dimension; that of one number is 1.
    return NutsStart(fit, fit.posterior.mean, fit.covariance, float(dim**-0.25))


def _on_host(problem: Problem, vector: Any, data: Any) -> float:
    with in_double():
        return float(
            problem.executor(1).values(np.asarray(vector, dtype=np.float64)[None], data, problem.hyper.free)[0]
        )


def _joint(problem: Problem, hyper: Hyper, value: Any, vector: Array) -> Array:
    """From the target's function to the log joint density."""
    form = problem.form
    prior = form.log_prior(jnp.asarray(vector)[None], hyper)
    return form.offset(hyper) + form.weight(hyper) * value + jnp.reshape(prior, ())
