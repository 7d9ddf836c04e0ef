"""`PoissonRegression`: counts with a log-linear rate, and the best Gaussian posterior of its weights."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from quenched.models.assessed import POISSON, RowLikelihood
from quenched.models.checked import checked_training
from quenched.models.linear_estimator import LinearEstimator
from quenched.models.linear_predictors import Poisson, check_precision
from quenched.models.predictor_posterior import posterior_of
from quenched.numbers import yes_or_no


class PoissonRegression(RegressorMixin, LinearEstimator):
    """Poisson regression with a Gaussian prior on the weights: the best Gaussian posterior, without draws.

    y ~ Poisson(exp(x·w + b)), w ~ N(0, I/α). The expectation of the log likelihood under a Gaussian is in closed form, so
    the bound and its maximum are exact.

    Parameters
    ----------
    prior_precision
        α, or None to learn it. All features share it: standardise them if their units differ.
    fit_intercept
        Add b. At the mean of the features its prior is a Gaussian around log(mean of y) with a standard deviation of 10.
    tol
        Norm of the gradient of the bound at which the ascent ends, in the posterior's own coordinates: half its square is
        about the nats that are left. None: 0.2 where a round takes long, and 1e-9 where it does not.
    max_iter
        Rounds, at the most.
    random_state
        Seed of the check draws of `fit_`; the answer itself needs none.

    Attributes
    ----------
    coef_, intercept_
        Posterior means.
    coef_sd_
        Posterior standard deviations of the weights.
    prior_precision_
        As given or learned.
    bound_
        Lower bound on the log evidence of the training targets, in nats.
    fit_
        The posterior as a `quenched.Fit`, made when it is first asked for.
    n_iter_
        Rounds.
    n_features_in_, feature_names_in_
        Of the training data.

    Examples
    --------
    >>> from quenched.models import PoissonRegression
    >>> week = np.arange(8.0)[:, None]
    >>> model = PoissonRegression().fit(week, [1, 2, 2, 4, 5, 8, 11, 16])
    >>> bool(model.predict([[8.0]])[0] > 16)
    True
    """

    def __init__(
        self,
        *,
        prior_precision: float | None = None,
        fit_intercept: bool = True,
        tol: float | None = None,
        max_iter: int = 500,
        random_state: Any = 0,
    ):
        self.prior_precision = prior_precision
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Raise the bound on these rows.

        Parameters
        ----------
        X, y
            (n_samples, n_features), dense or sparse, and (n_samples,): counts, or rates where `sample_weight` is the
            exposure.
        sample_weight
            How often each sample counts; weights of 2 are the same as two copies.
        """
        X, y, weights = checked_training(self, X, y, sample_weight, numeric=True)
        check_precision("prior_precision", self.prior_precision)
        self._begin()
        if np.any(y < 0):
            raise ValueError(f"y: {y[y < 0][0]:.4g} is negative; counts are zero or more.")
        level = float(np.average(y, weights=weights))
        if not level > 0:
            raise ValueError("y: all counts are zero; nothing can be learned of the rate.")
        self._offset = float(np.log(level)) if self.fit_intercept else 0.0
        problem, path = self._raised(X, weights, Poisson(y, self._offset))
        posterior = posterior_of(problem, path)
        if self.fit_intercept:
            posterior.mean[:, -1] += self._offset
        self._keep(posterior, (X, y, weights), path.last.bound)
        self.n_iter_ = max(len(path.history) - 1, 1)
        self.coef_, self.intercept_ = posterior.coef[0], float(posterior.intercept[0])
        self.coef_sd_ = posterior.sd(np.ones((1, 1)))[0]
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictive mean counts, which integrate over the posterior; with `return_std` also their standard deviations."""
        rows, return_std = self._rows(X), yes_or_no("return_std", return_std)
        means, variances = self._posterior.predictors(rows)
        mean, variance = means[:, 0], variances[:, 0, 0]
        rate = np.exp(mean + variance / 2)
        # Of new counts: the Poisson's own variance, and that of the rate.
        return (rate, np.sqrt(rate + rate**2 * np.expm1(variance))) if return_std else rate

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the Poisson deviance that is explained, D²: one at best, zero for the mean of y."""
        try:
            return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))
        except Exception as error:  # of whatever it is, when it is made an array
            if isinstance(error, (ValueError, TypeError)):
                raise
            raise ValueError(f"y, sample_weight: {error}") from error

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _written_out(self) -> tuple[RowLikelihood, dict[str, Any]]:
        return POISSON, {"intercept_mean": self._offset}
