"""The Gaussian posterior of the weights of linear predictors, and what it says of new rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from quenched.models.linear_predictors import LinearProblem, Path, View

_BLOCK = 4096  # rows at a time


@dataclass(frozen=True, eq=False)
class PredictorPosterior:
    """N(μ, HᵀH) over the coordinates of d predictors, and the prior over what no training row saw.

    Attributes
    ----------
    view
        How rows of features become rows of coordinates.
    mean
        μ, (d, coordinates); the intercept is the last of each row.
    half
        H, (k, d × coordinates).
    prior_precision
        α.
    """

    view: View
    mean: np.ndarray
    half: np.ndarray
    prior_precision: float

    @property
    def coef(self) -> np.ndarray:
        """Mean weights of the features, (d, M)."""
        return self.view.weights(self.mean[:, : self.view.rank])

    @property
    def intercept(self) -> np.ndarray:
        """Mean intercepts for features as they are given, (d,)."""
        if self.view.centre is None:
            return np.zeros(len(self.mean))
        return self.mean[:, -1] - self.coef @ self.view.centre

    def sd(self, mix: np.ndarray) -> np.ndarray:
        """Standard deviations of the weights of mixes (c, d) of the predictors, (c, M)."""
        halves = self.half.reshape(len(self.half), len(self.mean), -1)[:, :, : self.view.rank]
        of_weights = np.einsum("cd,kdm->ckm", mix, self.view.weights(halves))
        variances = np.sum(of_weights**2, axis=1)
        if self.view.rotation is not None:
            unseen = np.maximum(1.0 - np.sum(self.view.rotation**2, axis=1), 0.0) / self.prior_precision
            variances += np.sum(mix**2, axis=1)[:, None] * unseen
        return np.sqrt(variances)

    def means(self, features: Any) -> np.ndarray:
        """Mean of each predictor of each row, (N, d)."""
        return np.asarray(features @ self.coef.T) + self.intercept

    def predictors(self, features: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means (N, d) and covariances (N, d, d) of the predictors of each row."""
        n_rows, n_predictors = features.shape[0], len(self.mean)
        halves = self.half.reshape(len(self.half), n_predictors, -1)
        covariances = np.empty((n_rows, n_predictors, n_predictors))
        for first in range(0, n_rows, _BLOCK):
            place = slice(first, first + _BLOCK)
            rows, rest = self.view.rows_and_rest(features[place])
            spread = np.einsum("nm,kdm->ndk", rows, halves, optimize=True)
            covariances[place] = np.matmul(spread, spread.transpose(0, 2, 1))
            covariances[place] += (rest / self.prior_precision)[:, None, None] * np.eye(n_predictors)
        return self.means(features), covariances

    def natural(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of (weights of the features, intercept) of all predictors, as they are given: dense."""
        view, n_predictors = self.view, len(self.mean)
        halves = self.half.reshape(len(self.half), n_predictors, -1)
        of_weights = view.weights(halves[:, :, : view.rank])
        mean, half = [self.coef.ravel()], [of_weights.reshape(len(of_weights), -1)]
        unseen = np.zeros((view.n_weights, view.n_weights))
        if view.rotation is not None:
            unseen = (np.eye(view.n_weights) - view.rotation @ view.rotation.T) / self.prior_precision
        to_natural = np.eye(view.n_weights)
        if view.centre is not None:
            mean.append(self.intercept)
            half.append(halves[:, :, -1] - of_weights @ view.centre)
            to_natural = np.vstack([to_natural, -view.centre])
        stacked = np.concatenate(half, axis=1)
        covariance = stacked.T @ stacked
        rest = to_natural @ unseen @ to_natural.T
        for predictor in range(n_predictors):  # the same for each, and independent
            own = np.arange(predictor * view.n_weights, (predictor + 1) * view.n_weights)
            if view.centre is not None:
                own = np.append(own, n_predictors * view.n_weights + predictor)
            covariance[np.ix_(own, own)] += rest
        return np.concatenate(mean), covariance


def posterior_of(problem: LinearProblem, path: Path) -> PredictorPosterior:
    """Where an ascent ended."""
    found, view = path.last.posterior, problem.design.view
    return PredictorPosterior(
        view, found.mean.reshape(-1, view.n_coordinates), found.inverse_factor, found.prior_precision
    )


def dense(features: Any) -> np.ndarray:
    """Rows written out."""
    return features.toarray() if sparse.issparse(features) else np.asarray(features)
