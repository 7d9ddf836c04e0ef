"""Where inner searches begin: inner Gaussians as functions of the outer parameters, by least squares on solved ones.

Means are polynomials, and so are the logarithms of the diagonals of precisions, which may change by orders of magnitude with a
standard deviation outside, and what else they hold in units of those.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.families import monomials
from quenched.nesting.newton import Conditionals

DEGREE = 2
_NARROW, _NARROWER = 1e2, 4.0  # precisions of searches that begin anew: at least, and relative to those at the centre
_FAR = 4.0  # standard deviations, beyond which polynomials are not followed


class Guess(NamedTuple):
    """Coefficients of the monomials of x = (θ − centre) / scale; and the Gaussian at the centre, for where they fail."""

    centre: Array
    scale: Array
    mean: Array  # (dim, monomials)
    log_diagonal: Array  # of the precision, (dim, monomials)
    scaled: Array  # entries of the precision in units of its diagonal, (entries, monomials)
    fallback: Conditionals

    def at(self, thetas: Array, algebra: Any) -> Conditionals:
        """For every lane."""
        x = jnp.clip((thetas - self.centre) / self.scale, -_FAR, _FAR)
        features = monomials(x, DEGREE).T
        root = jnp.exp(0.5 * (self.log_diagonal @ features))
        return Conditionals(self.mean @ features, (self.scaled @ features) * root[algebra.rows] * root[algebra.columns])

    def narrow(self, algebra: Any) -> "Guess":
        """The same for all, and narrow: from there searches take long, and arrive."""
        first = np.eye(np.shape(self.mean)[1])[:1]
        diagonal = np.asarray(self.fallback.precision)[algebra.diagonal]
        entries = np.zeros((algebra.size, 1))
        entries[algebra.diagonal] = 1.0
        log_diagonal = np.log(np.maximum(_NARROW, _NARROWER * diagonal)) * first
        return self._replace(
            mean=np.asarray(self.fallback.mean) * first, log_diagonal=log_diagonal, scaled=entries * first
        )


def constant(theta: np.ndarray, conditional: Conditionals, algebra: Any) -> Guess:
    """The same for all; `conditional` has one lane."""
    first = np.eye(monomials(theta[None], DEGREE).shape[1])[:1]
    mean, log_diagonal, scaled = (part * first for part in _parts(conditional, algebra))
    return Guess(theta, np.ones_like(theta), mean, log_diagonal, scaled, conditional)


def learned(thetas: np.ndarray, solved: Conditionals, algebra: Any) -> Guess:
    """From solved problems; from one alone, the same for all."""
    if len(thetas) == 1:
        return constant(thetas[0], solved, algebra)
    centre, scale = thetas.mean(axis=0), np.maximum(thetas.std(axis=0), 1e-8)
    x = (thetas - centre) / scale
    features = np.asarray(monomials(x, DEGREE))
    # Fewer problems than monomials: the smallest coefficients that will do.
    fitted = lambda part: np.linalg.lstsq(features, part.T, rcond=1e-10)[0].T
    mean, log_diagonal, scaled = (fitted(part) for part in _parts(solved, algebra))
    nearest = int(np.argmin(np.sum(x**2, axis=1)))
    fallback = Conditionals(*(np.asarray(part)[:, nearest : nearest + 1] for part in solved))
    return Guess(centre, scale, mean, log_diagonal, scaled, fallback)


def _parts(solved: Conditionals, algebra: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, logarithms of diagonals, and entries in units of those."""
    mean, precision = (np.asarray(part) for part in solved)
    diagonal = precision[algebra.diagonal]
    return mean, np.log(diagonal), precision / np.sqrt(diagonal[algebra.rows] * diagonal[algebra.columns])
