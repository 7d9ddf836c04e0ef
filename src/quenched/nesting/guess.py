"""Where inner searches begin: inner Gaussians as polynomials of the outer parameters, by least squares on solved ones."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.families import monomials
from quenched.nesting.newton import Conditionals

DEGREE = 2
_FAR = 4.0  # standard deviations, beyond which polynomials are not followed


class Guess(NamedTuple):
    """Coefficients of the monomials of x = (θ − centre) / scale; and the Gaussian at the centre, for where they fail."""

    centre: Array
    scale: Array
    mean: Array  # (dim, monomials)
    precision: Array  # (entries, monomials)
    fallback: Conditionals

    def at(self, thetas: Array) -> Conditionals:
        """For every lane."""
        x = jnp.clip((thetas - self.centre) / self.scale, -_FAR, _FAR)
        features = monomials(x, DEGREE).T
        return Conditionals(self.mean @ features, self.precision @ features)


def constant(theta: np.ndarray, conditional: Conditionals) -> Guess:
    """The same for all; `conditional` has one lane."""
    n = monomials(theta[None], DEGREE).shape[1]
    first = np.eye(n)[:1]
    mean, precision = (np.asarray(part) for part in conditional)
    return Guess(theta, np.ones_like(theta), mean * first, precision * first, Conditionals(mean, precision))


def learned(thetas: np.ndarray, solved: Conditionals) -> Guess:
    """From solved problems."""
    centre, scale = thetas.mean(axis=0), np.maximum(thetas.std(axis=0), 1e-8)
    x = (thetas - centre) / scale
    features = np.asarray(monomials(x, DEGREE))
    # Fewer problems than monomials: the smallest coefficients that will do.
    mean, precision = (np.linalg.lstsq(features, np.asarray(part).T, rcond=1e-10)[0].T for part in solved)
    nearest = int(np.argmin(np.sum(x**2, axis=1)))
    fallback = Conditionals(*(np.asarray(part)[:, nearest : nearest + 1] for part in solved))
    return Guess(centre, scale, mean, precision, fallback)
