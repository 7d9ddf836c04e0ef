"""The two forms of the bound: how the mean over draws becomes a bound on the log evidence.

A target's function is evaluated at every draw; its mean enters the bound through a form. Forms know nothing of the
function, so one compiled program of the optimiser serves every log density of the same size.
"""

import hashlib
from abc import abstractmethod
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from quenched.arrays import Array
from quenched.frozen import Frozen

LOG_TWO_PI = float(np.log(2.0 * np.pi))


class Hyper(NamedTuple):
    """Hyperparameters: the user's own (raised by gradient) and the two precisions with closed forms."""

    free: Array  # raveled
    prior_precision: Array
    noise_precision: Array


class Moments(NamedTuple):
    """What the closed forms need to know of a posterior."""

    mean_value: Array  # of the target's function over the draws
    second_moment: Array  # E wᵀw


class Form(Frozen):
    """log p(w) = offset + weight * function(w) + log_prior(w)."""

    @property
    def learned(self) -> tuple[str, ...]:
        """The precisions that `updated` renews."""
        return ()

    def weight(self, hyper: Hyper) -> Array | float:
        """What multiplies the target's function."""
        return 1.0

    def offset(self, hyper: Hyper) -> Array | float:
        """The constant of the likelihood."""
        return 0.0

    @abstractmethod
    def log_prior(self, points: Array, hyper: Hyper) -> Array:
        """Log prior density at every row; zero when it is part of the function."""

    @abstractmethod
    def penalty(self, posterior: Any, hyper: Hyper) -> Array:
        """What is added to the expected log likelihood: the entropy, or minus the exact KL to the prior."""

    def updated(self, hyper: Hyper, moments: Moments) -> Hyper:
        """The precisions that raise the bound most, given the posterior: Eqs. (13) and (14) of the paper."""
        return hyper

    @property
    def learns(self) -> bool:
        """Whether `updated` changes anything."""
        return bool(self.learned)

    @abstractmethod
    def prior(self, hyper: Hyper) -> tuple[np.ndarray, np.ndarray] | None:
        """Mean and dense precision of the exact Gaussian prior; None when the prior is part of the function."""


class EntropyForm(Form):
    """mean of log p over the draws + entropy(q), for any unnormalised log density."""

    def log_prior(self, points, hyper):
        return np.zeros(points.shape[:-1])

    def penalty(self, posterior, hyper):
        return posterior.entropy()

    def prior(self, hyper):
        return None


class ExactKLForm(Form):
    """mean of log p(Y | w) over the draws − KL(q ‖ N(0, I / prior_precision)).

    With `n_targets` set, the function is −½ Σ residual² of a Gaussian-noise regression with that many targets, and
    the noise precision multiplies it.
    """

    dim: int
    learn_prior: bool
    n_targets: int | None = None
    learn_noise: bool = False

    @property
    def learned(self):
        return ("prior_precision",) * self.learn_prior + ("noise_precision",) * self.learn_noise

    def weight(self, hyper):
        return 1.0 if self.n_targets is None else hyper.noise_precision

    def offset(self, hyper):
        if self.n_targets is None:
            return 0.0
        return 0.5 * self.n_targets * (jnp.log(hyper.noise_precision) - LOG_TWO_PI)

    def log_prior(self, points, hyper):
        quadratic = hyper.prior_precision * jnp.sum(points**2, axis=-1)
        return 0.5 * (self.dim * (jnp.log(hyper.prior_precision) - LOG_TWO_PI) - quadratic)

    def penalty(self, posterior, hyper):
        return -posterior.kl_to_isotropic(hyper.prior_precision)

    def updated(self, hyper, moments):
        prior, noise = hyper.prior_precision, hyper.noise_precision
        if self.learn_prior:
            prior = self.dim / moments.second_moment
        if self.learn_noise:
            assert self.n_targets is not None
            noise = self.n_targets / (-2.0 * moments.mean_value)
        return Hyper(hyper.free, prior, noise)

    def prior(self, hyper):
        return np.zeros(self.dim), hyper.prior_precision * np.eye(self.dim)


class DensePrior:
    """N(mean, covariance) by its precision, with what depends on it alone computed once.

    A form holds it as a static field. It is known by a digest of its numbers: equal priors share compiled programs, and
    a dispatch need not look at the numbers again.
    """

    def __init__(self, mean: np.ndarray, covariance: np.ndarray):
        factor = np.linalg.cholesky(covariance)
        inverse = np.linalg.solve(factor, np.eye(len(factor)))
        self.mean, self.precision = np.array(mean), inverse.T @ inverse
        self.log_determinant = -2.0 * float(np.sum(np.log(np.diag(factor))))  # of the precision
        self._digest = hashlib.blake2b(self.mean.tobytes() + self.precision.tobytes(), digest_size=16).digest()
        for array in (self.mean, self.precision):
            array.setflags(write=False)

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DensePrior) and self._digest == other._digest)


class GaussianPriorForm(Form):
    """mean of log p(Y | w) over the draws − KL(q ‖ N(mean, precision⁻¹)), for a general Gaussian prior."""

    dense: DensePrior

    def log_prior(self, points, hyper):
        away = points - self.dense.mean
        constant = self.dense.log_determinant - len(self.dense.mean) * LOG_TWO_PI
        return 0.5 * (constant - jnp.sum((away @ self.dense.precision) * away, axis=-1))

    def penalty(self, posterior, hyper):
        return -posterior.kl_to_gaussian(self.dense.mean, self.dense.precision, self.dense.log_determinant)

    def prior(self, hyper):
        return self.dense.mean, self.dense.precision
