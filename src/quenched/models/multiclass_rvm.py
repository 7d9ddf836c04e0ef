"""The multiclass relevance vector machine mRVM2 of Psorakis, Damoulas and Girolami (2010), for Sec. 3.4.

Multinomial probit with auxiliary variables, y_nc = w_cᵀk_n + ε with ε ~ N(0, 1), the class of n being
argmax_c y_nc, and w_nc ~ N(0, 1/α_nc), α_nc ~ Gamma(τ, υ). Each round, with f = Kw and i the class of n:

- E step: ỹ_nc = f_nc − E_u[N(u; f_nc − f_ni, 1) F] / E_u[Φ(u + f_ni − f_nc) F] for c ≠ i, where
  F = Π_{j≠i,c} Φ(u + f_ni − f_nj) and u ~ N(0, 1); ỹ_ni = f_ni − Σ_{j≠i} (ỹ_nj − f_nj);
- M step: w_c = (KᵀK + A_c)⁻¹ Kᵀ ỹ_c with A_c = diag(α_1c … α_Nc);
- α_nc = (2τ + 1) / (w_nc² + 2υ), and a sample leaves for good when α_nc is above a threshold for every class.

Columns that are alike share their weight, each of these is small, and all precisions grow together: thirty points in one
dimension, which any kernel separates, may lose every sample within eight rounds. Where only some precisions may grow in a
round, the largest (`share`), the others take over what these leave.

Kernels come in many sizes and the threshold is a bare number, so the rounds run on the kernel divided by its
root mean square. The weights and precisions returned are those of the kernel given.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import erfcx, log_ndtr, logsumexp

from quenched.models.linear_predictors import check_rounds, checked_features, checked_vector
from quenched.numbers import positive_number, whole_number
from quenched.text import shown

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# Stands for the gap of a class to itself: Φ is one there for every u that has weight.
OWN_CLASS = 1e3
_MOST_CLASSES = 10**6
_NODES = 20  # of the Gauss-Hermite rule: nine digits
# For a kernel of unit root mean square: τ and υ of the Gamma prior of the precisions; the first value of every one, on which
# the answer depends (a strong start shrinks the first weights, and samples leave before the fit has begun); and the value
# above which all precisions of a sample must be for it to leave.
_SHAPE, _RATE, _START, _PRUNE_ABOVE = 1e-8, 1e-8, 1e-2, 1e5


@dataclass(frozen=True, eq=False)
class MulticlassRVM:
    """Weights of the columns that were kept.

    Row r of `weights` and `precisions` (one column per class) belongs to training sample `relevance[r]`, and so does that
    of `gram`, KᵀK of the columns that were kept: the posterior of the weights of class c, given the auxiliary variables, has
    the precision `gram` + diag(`precisions[:, c]`).
    `history` is the training log likelihood at the start of each round and `n_kept` the number of samples
    after it. `converged` is False when the rounds ran out.
    """

    weights: Array
    relevance: Integers
    precisions: Array
    gram: Array
    n_train: int
    history: Array
    n_kept: Integers
    n_rounds: int
    converged: bool

    @property
    def n_classes(self) -> int:
        """Number of classes, present in the training set or not."""
        return self.weights.shape[1]

    def predict_probability(self, kernel_rows: ArrayLike) -> Array:
        """Class probabilities, one row per new sample.

        Parameters
        ----------
        kernel_rows
            Kernel between new samples (rows) and *all* training samples (columns), kept or not.
        """
        rows = self._kept_rows(kernel_rows)
        return probit_probability(rows @ self.weights)

    def integrated_probability(self, kernel_rows: ArrayLike) -> Array:
        """The same, integrated over the posterior of the weights: less sure far from the samples that were kept."""
        rows = self._kept_rows(kernel_rows)
        variances = np.ones((len(rows), self.n_classes))
        for label in range(self.n_classes):
            scale = 1 / np.sqrt(self.precisions[:, label])
            system = self.gram * np.outer(scale, scale) + np.eye(len(scale))
            factor = np.linalg.cholesky(system)
            half = solve_triangular(factor, scale[:, None] * rows.T, lower=True, check_finite=False)
            variances[:, label] += np.einsum("mn,mn->n", half, half)
        return probit_probability(rows @ self.weights, np.sqrt(variances))

    def _kept_rows(self, kernel_rows: ArrayLike) -> Array:
        rows = checked_features(kernel_rows, "kernel_rows")
        if rows.shape[1] != self.n_train:
            raise ValueError(f"kernel_rows has {rows.shape[1]} columns; give one per training sample, {self.n_train}")
        return rows[:, self.relevance]


def fit_multiclass_rvm(
    kernel: ArrayLike,
    labels: ArrayLike,
    *,
    n_classes: int | None = None,
    sample_weight: ArrayLike | None = None,
    max_rounds: int = 1000,
    tolerance: float = 5e-3,
    share: float = 1.0,
) -> MulticlassRVM:
    """Fit mRVM2 to a training kernel. At least one column is kept.

    Parameters
    ----------
    kernel
        Matrix K with a row per sample and a column per centre, most often the samples themselves. It need not be positive
        definite.
    labels
        Class of each sample, integers from 0. Classes may be absent; two must be present.
    n_classes
        Number of classes; None takes the largest label plus one.
    sample_weight
        How often each sample counts; None: once.
    max_rounds, tolerance
        Rounds stop when no sample left and no score f_nc moved by more than this times 1 + |f_nc|. EM creeps
        near the end: tighten it for the exact mode, at the price of hundreds of rounds.
    share
        Of the samples, whose precisions may grow in one round; 1 is mRVM2 as published.

    Examples
    --------
    >>> from quenched.models import fit_multiclass_rvm
    >>> x = np.linspace(-2.0, 2.0, 30)
    >>> kernel = np.exp(-((x[:, None] - x) ** 2))
    >>> found = fit_multiclass_rvm(kernel, x > 0, share=0.5)
    >>> found.converged, len(found.relevance) < 10
    (True, True)
    >>> found.predict_probability(kernel).shape
    (30, 2)
    """
    matrix, classes, n_classes = _checked_data(kernel, labels, n_classes)
    check_rounds(max_rounds, tolerance)
    tolerance, share = positive_number("tolerance", tolerance), positive_number("share", share)
    if share > 1.0:
        raise ValueError(f"share={shown(share)}: give a number above 0, and 1 at the most.")
    often = _checked_weights(sample_weight, len(matrix))
    size = np.sqrt(np.average(np.mean(matrix**2, axis=1), weights=often))
    scaled = matrix / size
    counted = (scaled.T * often).T
    gram = scaled.T @ counted
    kept = np.arange(scaled.shape[1])
    scores = np.zeros((len(scaled), n_classes))
    precisions = np.full((len(kept), n_classes), _START)
    history, n_kept, still = [], [], False
    while not still and len(history) < max_rounds:
        wanted, log_probability = truncated_moments(scores, classes)
        weights = _ridge(gram[np.ix_(kept, kept)], counted[:, kept].T @ wanted, precisions)
        precisions = _renewed(weights, precisions, share)
        lowest = np.min(precisions, axis=1)
        stay = (lowest <= _PRUNE_ABOVE) | (np.arange(kept.size) == np.argmin(lowest))
        kept, weights, precisions = kept[stay], weights[stay], precisions[stay]
        previous, scores = scores, scaled[:, kept] @ weights
        moved = np.max(np.abs(scores - previous) / (1 + np.abs(scores)))
        still = bool(np.all(stay) and moved <= tolerance)
        history.append(often @ log_probability)
        n_kept.append(kept.size)
    return MulticlassRVM(
        weights=weights / size,
        relevance=kept,
        precisions=precisions * size**2,
        gram=gram[np.ix_(kept, kept)] * size**2,
        n_train=scaled.shape[1],
        history=np.array(history),
        n_kept=np.array(n_kept),
        n_rounds=len(history),
        converged=still,
    )


def _renewed(weights: Array, precisions: Array, share: float) -> Array:
    """Precisions for these weights; those of all but a share of the samples, the least needed, do not grow."""
    renewed = (2 * _SHAPE + 1) / (weights**2 + 2 * _RATE)
    least_needed = np.argsort(-np.min(renewed, axis=1), kind="stable")
    others = least_needed[int(np.ceil(share * len(least_needed))) :]
    renewed[others] = np.minimum(renewed[others], precisions[others])
    return renewed


def _ridge(gram: Array, projected: Array, precisions: Array) -> Array:
    """w_c = (KᵀK + A_c)⁻¹ Kᵀ ỹ_c for each class, scaled by A_c^−½ so that huge precisions do no harm."""
    weights = np.empty_like(projected)
    for label in range(projected.shape[1]):
        scale = 1 / np.sqrt(precisions[:, label])
        system = gram * np.outer(scale, scale)
        system[np.diag_indices(scale.size)] += 1
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        weights[:, label] = scale * cho_solve(factor, scale * projected[:, label], check_finite=False)
    return weights


def truncated_moments(scores: Array, labels: Integers) -> tuple[Array, Array]:
    """E step: mean of y ~ N(scores, I) given that the label's y is the largest, and log P of that event."""
    items = np.arange(len(scores))
    gaps = scores[items, labels][:, None] - scores
    gaps[items, labels] = OWN_CLASS
    points, log_weights = _centred_rule(gaps)
    arguments = points[:, None, :] + gaps[:, :, None]
    log_cdf = log_ndtr(arguments)
    log_terms = log_weights + np.sum(log_cdf, axis=1)
    log_probability = np.asarray(logsumexp(log_terms, axis=1))
    weights = np.exp(log_terms - log_probability[:, None])
    # φ / Φ as in `_hazard`, but from the logarithm at hand: a second special function would double the time.
    hazard = np.exp(-0.5 * arguments**2 - log_cdf) / np.sqrt(2 * np.pi)
    shift = np.einsum("nk,nck->nc", weights, hazard)
    moments = scores - shift
    moments[items, labels] = scores[items, labels] + np.sum(shift, axis=1)
    return moments, log_probability


def probit_probability(scores: Array, deviations: Array | None = None) -> Array:
    """P(i) = E_u Π_{j≠i} Φ((σ_i u + f_i − f_j) / σ_j), one row per sample; each row sums to one.

    The probability that y_i is the largest of y_c ~ N(f_c, σ_c²); without deviations all σ are one.
    """
    spread = np.ones_like(scores) if deviations is None else deviations
    columns = []
    for label in range(scores.shape[1]):
        gaps = (scores[:, [label]] - scores) / spread
        slopes = spread[:, [label]] / spread
        gaps[:, label], slopes[:, label] = OWN_CLASS, 1.0
        points, log_weights = _centred_rule(gaps, slopes)
        arguments = slopes[:, :, None] * points[:, None, :] + gaps[:, :, None]
        columns.append(logsumexp(log_weights + np.sum(log_ndtr(arguments), axis=1), axis=1))
    log_probability = np.stack(columns, axis=1)
    # The rule's own sum is one to about 1e-9; dividing makes it one to rounding.
    probability = np.exp(log_probability)
    return probability / np.sum(probability, axis=1, keepdims=True)


def _centred_rule(gaps: Array, slopes: Array | float = 1.0) -> tuple[Array, Array]:
    """Gauss-Hermite points and log weights for φ(u) Π_j Φ(slope_j u + gap_j), centred and scaled by its mode.

    Centred at zero the rule misses the mass when the label's score is far below another's.
    """
    mode = np.zeros((len(gaps), 1))
    for _ in range(8):
        # The derivative is convex and falls, so Newton's steps from zero rise to its root without overshoot.
        arguments = slopes * mode + gaps
        hazard = _hazard(arguments)
        curvature = 1 + np.sum(slopes**2 * hazard * (hazard + arguments), axis=1, keepdims=True)
        mode += (np.sum(slopes * hazard, axis=1, keepdims=True) - mode) / curvature
    deviation = 1 / np.sqrt(curvature)
    points, log_weights = _hermite_rule()
    u = mode + deviation * points
    return u, log_weights + np.log(deviation) + (points**2 - u**2) / 2


def _hazard(x: Array) -> Array:
    """φ(x) / Φ(x), which tends to −x on the left and to 0 on the right."""
    with np.errstate(over="ignore"):
        return np.sqrt(2 / np.pi) / erfcx(-x / np.sqrt(2))


@cache
def _hermite_rule() -> tuple[Array, Array]:
    points, weights = hermegauss(_NODES)
    return points, np.log(weights / np.sum(weights))


def _checked_weights(sample_weight: ArrayLike | None, length: int) -> Array:
    if sample_weight is None:
        return np.ones(length)
    weights = checked_vector("sample_weight", sample_weight, length)
    if not np.all(weights > 0):
        raise ValueError(f"sample_weight has the value {np.min(weights)}; give positive numbers")
    return weights


def _checked_data(kernel: ArrayLike, labels: ArrayLike, n_classes: int | None) -> tuple[Array, Integers, int]:
    matrix = checked_features(kernel, "kernel")
    if not np.any(matrix):
        raise ValueError("kernel is all zero; give one that tells the samples apart")
    values = checked_vector("labels", labels, len(matrix))
    wrong = values[(values < 0) | (values != np.round(values)) | (values > _MOST_CLASSES)]
    if wrong.size:
        raise ValueError(f"labels has the value {wrong[0]}; give integers from 0, np.unique makes them")
    classes = values.astype(np.intp)
    if np.all(classes == classes[0]):
        raise ValueError(f"labels are all {classes[0]}; give samples of two classes or more")
    n_classes = (
        int(np.max(classes)) + 1 if n_classes is None else whole_number("n_classes", n_classes, 2, _MOST_CLASSES)
    )
    if n_classes <= np.max(classes):
        raise ValueError(f"n_classes is {n_classes} but labels has {np.max(classes)}; give a larger n_classes")
    return matrix, classes, n_classes
