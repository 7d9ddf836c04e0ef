"""`LinearRegression`: Bayesian linear regression, exact, with both precisions learned."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from quenched.models.assessed import GAUSSIAN, RowLikelihood
from quenched.models.checked import checked_training
from quenched.models.linear_estimator import LARGE, LinearEstimator, work_of
from quenched.models.linear_predictors import View, check_precision, decompose, solve_linear
from quenched.models.predictor_posterior import PredictorPosterior, dense
from quenched.numbers import yes_or_no
from quenched.threads import quiet_blas

_INTERCEPT_SDS = 10.0  # standard deviations of y: the height of the flat prior of the intercept


class LinearRegression(RegressorMixin, LinearEstimator):
    """Linear regression with a Gaussian prior on the weights; posterior and evidence are exact.

    y = x·w + b + noise, w ~ N(0, I/α), noise of precision β. Given α and β all is in closed form; both are learned by
    maximising the evidence, by a search along one line that finds the highest of several maxima.

    Parameters
    ----------
    prior_precision
        α, or None to learn it. All features share it: standardise them if their units differ.
    noise_precision
        β, or None to learn it.
    fit_intercept
        Add b. Its prior is flat, of the height that a Gaussian of ten standard deviations of y has at its top.
    random_state
        Seed of the check draws of `fit_`; the answer itself needs none.

    Attributes
    ----------
    coef_, intercept_
        Posterior means.
    coef_sd_
        Posterior standard deviations of the weights.
    prior_precision_, noise_precision_
        As given or learned.
    bound_
        Log evidence of the training targets, in nats; exact.
    fit_
        The posterior as a `quenched.Fit`, made when it is first asked for.
    n_features_in_, feature_names_in_
        Of the training data.

    Examples
    --------
    >>> from quenched.models import LinearRegression
    >>> years = np.arange(10.0)[:, None]
    >>> model = LinearRegression().fit(years, 2.0 * years[:, 0] + np.tile([0.1, -0.1], 5))
    >>> mean, sd = model.predict([[20.0]], return_std=True)  # sd of the noise and of what is not known
    >>> mean.round(), bool(sd[0] < 0.3)
    (array([40.]), True)
    """

    def __init__(
        self,
        *,
        prior_precision: float | None = None,
        noise_precision: float | None = None,
        fit_intercept: bool = True,
        random_state: Any = 0,
    ):
        self.prior_precision = prior_precision
        self.noise_precision = noise_precision
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the posterior.

        Parameters
        ----------
        X, y
            (n_samples, n_features), dense or sparse, and (n_samples,).
        sample_weight
            How often each sample counts; weights of 2 are the same as two copies.
        """
        X, y, weights = checked_training(self, X, y, sample_weight, numeric=True)
        check_precision("prior_precision", self.prior_precision)
        check_precision("noise_precision", self.noise_precision)
        self._begin()
        count = float(len(y) if weights is None else weights.sum())
        centre = np.average(dense(X), axis=0, weights=weights) if self.fit_intercept else None
        level = float(np.average(y, weights=weights)) if self.fit_intercept else 0.0
        rows, residuals = View(X.shape[1], centre).centred(X), y - level
        if not np.any(residuals) and (self.noise_precision is None or self.prior_precision is None):
            raise ValueError(
                f"y: all targets are {level:.4g}; nothing can be learned of noise and weights. Give prior_precision and "
                "noise_precision."
            )
        if weights is not None:
            rows, residuals = rows * np.sqrt(weights)[:, None], residuals * np.sqrt(weights)
        with quiet_blas(work_of(X) > LARGE):
            spectrum = decompose(rows, residuals, n_items=count - (self.fit_intercept and 1))
        prior = self.prior_precision
        if prior is None and not spectrum.values[0] > 0:
            prior = 1.0  # no feature varies: the weights keep any prior
        solved = solve_linear(spectrum, prior, self.noise_precision)
        self._tell(solved.converged)
        half, mean, bound = np.diag(1.0 / np.sqrt(solved.precision)), solved.coordinates, solved.evidence
        self._intercept_sd = _INTERCEPT_SDS * (float(np.sqrt(np.average((y - level) ** 2, weights=weights))) or 1.0)
        if self.fit_intercept:
            half = np.block([[half, np.zeros((len(half), 1))], [np.zeros((1, len(half))), np.ones((1, 1))]])
            half[-1, -1] = 1.0 / np.sqrt(solved.noise_precision * count)
            mean = np.append(mean, level)
            bound -= 0.5 * float(np.log(2 * np.pi * count)) + float(np.log(self._intercept_sd))
        view = View(X.shape[1], centre, solved.directions.T)
        posterior = PredictorPosterior(view, mean[None], half, solved.prior_precision)
        self._keep(posterior, (X, y, weights), bound)
        self.noise_precision_ = solved.noise_precision
        self.coef_, self.intercept_ = posterior.coef[0], float(posterior.intercept[0])
        self.coef_sd_ = posterior.sd(np.ones((1, 1)))[0]
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictive means; with `return_std` also the standard deviations of new targets, noise included."""
        rows, return_std = self._rows(X), yes_or_no("return_std", return_std)
        if not return_std:
            return self._posterior.means(rows)[:, 0]
        means, variances = self._posterior.predictors(rows)
        return means[:, 0], np.sqrt(variances[:, 0, 0] + 1.0 / self.noise_precision_)

    def _tell(self, converged: bool) -> None:
        if not converged:
            warnings.warn(
                "LinearRegression: the evidence has no maximum in the precisions: the targets do not depend on the features, "
                "or follow them without error. Give prior_precision or noise_precision to hold it.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _written_out(self) -> tuple[RowLikelihood, dict[str, Any]]:
        of_intercept = {"intercept_sd": self._intercept_sd, "flat_intercept": True}
        return GAUSSIAN, of_intercept | {"noise_precision": self.noise_precision_}
