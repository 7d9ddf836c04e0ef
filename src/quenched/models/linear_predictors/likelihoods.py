"""Likelihoods of linear predictors: what the bound needs of each is an expectation under the predictor's own Gaussian."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from quenched.models.linear_predictors.arguments import Array
from quenched.models.linear_predictors.quadrature import softplus_expectations

_AT_A_TIME = 2**21  # numbers: rows times draws times classes


class Expectations(NamedTuple):
    """Per item: E log p, its gradient in the mean of the predictor, and minus the expected second derivative."""

    log_density: Array
    push: Array
    curvature: Array


class Likelihood(Protocol):
    """log p(y_n | η_n) for all items n; η_n is a number, or a vector with one entry per predictor."""

    exact: bool  # whether its expectations are, to rounding

    @property
    def site_shape(self) -> tuple[int, ...]:
        """(N,), or (N, d, d)."""
        ...

    def expectations(self, means: Array, variances: Array) -> Expectations:
        """Under N(mean, variance) of each item's predictors."""
        ...

    def at(self, predictors: Array) -> tuple[Array, Array]:
        """log p and its gradient at given predictors."""
        ...

    def some(self, places: slice) -> "Likelihood":
        """That of some of the items."""
        ...

    def proper(self, curvature: Array) -> Array:
        """The nearest curvature that the likelihood can have: what was extrapolated need not be one."""
        ...


@dataclass(frozen=True, eq=False)
class Bernoulli:
    """Labels −1 and 1 with P(1) = σ(η); by quadrature, to rounding."""

    signs: Array
    exact = True

    @property
    def site_shape(self) -> tuple[int, ...]:
        return self.signs.shape

    def expectations(self, means: Array, variances: Array) -> Expectations:
        loss, miss, slope = softplus_expectations(-self.signs * means, variances)
        return Expectations(-loss, self.signs * miss, slope)

    def at(self, predictors: Array) -> tuple[Array, Array]:
        against = -self.signs * predictors
        below = np.exp(-np.abs(against))
        share = 1.0 / (1.0 + below)
        miss = np.where(against >= 0, share, below * share)
        return -np.maximum(against, 0.0) - np.log1p(below), self.signs * miss

    def some(self, places: slice) -> "Bernoulli":
        return replace(self, signs=self.signs[places])

    def proper(self, curvature: Array) -> Array:
        return np.clip(curvature, 0.0, 0.25)


@dataclass(frozen=True, eq=False)
class Poisson:
    """Counts with the rate exp(η + offset); in closed form."""

    counts: Array
    offset: float = 0.0
    exact = True

    @property
    def site_shape(self) -> tuple[int, ...]:
        return self.counts.shape

    def expectations(self, means: Array, variances: Array) -> Expectations:
        with np.errstate(over="ignore"):  # a step too far: the bound is then minus infinity, and the step is shortened
            rate = np.exp(means + self.offset + variances / 2)
        log_density = self.counts * (means + self.offset) - rate - gammaln(self.counts + 1.0)
        return Expectations(log_density, self.counts - rate, rate)

    def at(self, predictors: Array) -> tuple[Array, Array]:
        found = self.expectations(predictors, np.zeros(1))
        return found.log_density, found.push

    def some(self, places: slice) -> "Poisson":
        return replace(self, counts=self.counts[places])

    def proper(self, curvature: Array) -> Array:
        return np.maximum(curvature, 0.0)


@dataclass(frozen=True, eq=False)
class Categorical:
    """Classes 0 … K − 1 with P = softmax(contrasts @ η), K − 1 predictors; by frozen points in their space.

    What is the same in all classes does not matter to softmax, and has its prior for posterior: `contrasts` (K, K − 1) has
    orthonormal columns that sum to zero, and leaves it out.
    """

    labels: NDArray[np.intp]
    n_classes: int
    points: Array  # (S, K − 1), matched: their mean is zero and their covariance the identity
    exact = False

    @property
    def site_shape(self) -> tuple[int, ...]:
        return (len(self.labels), self.n_classes - 1, self.n_classes - 1)

    @cached_property
    def contrasts(self) -> Array:
        """Columns e_1 − e_2, e_1 + e_2 − 2 e_3, …, of unit length."""
        return contrasts(self.n_classes)

    def expectations(self, means: Array, variances: Array) -> Expectations:
        n_items, basis = len(means), self.contrasts
        own = np.empty(n_items)
        probability, products = np.empty((n_items, self.n_classes)), np.empty((n_items, self.n_classes, self.n_classes))
        for place, scores in drawn_scores(means, variances, self.points, basis):
            largest = scores.max(axis=2, keepdims=True)
            shares = np.exp(scores - largest)
            total = shares.sum(axis=2, keepdims=True)
            shares /= total
            log_total = (largest + np.log(total))[..., 0].mean(axis=1)
            labels = self.labels[place]
            own[place] = scores.mean(axis=1)[np.arange(len(labels)), labels] - log_total
            probability[place] = shares.mean(axis=1)
            products[place] = np.matmul(shares.transpose(0, 2, 1), shares) / len(self.points)
        push = basis[self.labels] - probability @ basis
        every = np.arange(self.n_classes)
        products *= -1.0
        products[:, every, every] += probability
        return Expectations(own, push, np.matmul(basis.T, np.matmul(products, basis)))

    def at(self, predictors: Array) -> tuple[Array, Array]:
        scores = predictors @ self.contrasts.T
        log_shares = scores - np.asarray(logsumexp(scores, axis=1, keepdims=True))
        push = self.contrasts[self.labels] - np.exp(log_shares) @ self.contrasts
        return np.take_along_axis(log_shares, self.labels[:, None], axis=1)[:, 0], push

    def some(self, places: slice) -> "Categorical":
        return replace(self, labels=self.labels[places])

    def proper(self, curvature: Array) -> Array:
        values, vectors = np.linalg.eigh(curvature)
        if np.min(values) >= 0.0:
            return curvature
        return np.matmul(vectors * np.maximum(values, 0.0)[:, None, :], vectors.transpose(0, 2, 1))


def contrasts(n_classes: int) -> Array:
    """(K, K − 1): orthonormal columns that sum to zero (Helmert)."""
    basis = np.zeros((n_classes, n_classes - 1))
    for column in range(n_classes - 1):
        basis[: column + 1, column] = 1.0
        basis[column + 1, column] = -(column + 1.0)
    return basis / np.sqrt(np.sum(basis**2, axis=0))


def drawn_scores(means: Array, variances: Array, points: Array, basis: Array):
    """Scores of the classes (rows, draws, K) at frozen points of each row's Gaussian, some rows at a time."""
    n_items, n_predictors = means.shape
    jitter = 1e-12 * (1.0 + np.trace(variances, axis1=1, axis2=2))[:, None, None] * np.eye(n_predictors)
    step = max(1, _AT_A_TIME // (len(points) * len(basis)))
    for first in range(0, n_items, step):
        place = slice(first, first + step)
        factor = np.linalg.cholesky(variances[place] + jitter[place])
        spread = np.matmul(points, np.matmul(factor.transpose(0, 2, 1), basis.T))
        yield place, spread + (means[place] @ basis.T)[:, None, :]


def softmax_expectations(means: Array, variances: Array, points: Array, basis: Array) -> Array:
    """E softmax(basis @ η), one row per item: class probabilities that know how unsure the weights are."""
    probability = np.empty((len(means), len(basis)))
    for place, scores in drawn_scores(means, variances, points, basis):
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        probability[place] = np.mean(shares / shares.sum(axis=2, keepdims=True), axis=1)
    return probability / probability.sum(axis=1, keepdims=True)
