"""`LogisticRegression`: two classes or more, with probabilities that know how unsure the weights are."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from quenched.draws import Purpose, matched, smallest, stream
from quenched.models.assessed import BERNOULLI, CATEGORICAL, RowLikelihood
from quenched.models.checked import checked_classes, checked_training
from quenched.models.linear_estimator import LinearEstimator
from quenched.models.linear_predictors import (
    Bernoulli,
    Categorical,
    check_precision,
    contrasts,
    softmax_expectations,
    softplus_expectations,
)
from quenched.models.predictor_posterior import posterior_of
from quenched.numbers import whole_number

_NUMBERS = 2**21  # rows times points times classes in a round, if so many are needed
_NEW_ROWS = 512  # frozen points per new row


class LogisticRegression(ClassifierMixin, LinearEstimator):
    """Logistic regression with a Gaussian prior on the weights: the best Gaussian posterior, and the prior precision too.

    Two classes: P(second) = σ(x·w + b), w ~ N(0, I/α), by quadrature. More: softmax of one predictor per class, each with
    that prior; what is the same in all classes does not matter and is left out, and the others have one full covariance. The
    expectations are taken at frozen points in the few dimensions of a row's own predictors.

    Parameters
    ----------
    prior_precision
        α, or None to learn it. All features share it: standardise them if their units differ.
    fit_intercept
        Add b. At the mean of the features its prior is N(0, 10²).
    draws
        Frozen points per row with three classes or more, an even number of at least twice the classes. None: between 64
        and 1024, the more the fewer rows there are.
    tol
        Norm of the gradient of the bound at which the ascent ends, in the posterior's own coordinates: half its square is
        about the nats that are left. None: 0.2 where a round takes long, and 1e-9 where it does not.
    max_iter
        Rounds, at the most.
    random_state
        Seed of the frozen points, and of the check draws of `fit_`.

    Attributes
    ----------
    classes_
        The labels, in order.
    coef_, intercept_
        Posterior means: (1, n_features) and (1,) for two classes, else one row per class.
    coef_sd_
        Posterior standard deviations of the weights.
    prior_precision_
        As given or learned.
    bound_
        Lower bound on the log evidence of the training labels, in nats.
    fit_
        The posterior as a `quenched.Fit`, made when it is first asked for. With three classes or more, its parameters are
        those of the contrasts between classes.
    n_iter_
        Rounds.
    n_features_in_, feature_names_in_
        Of the training data.

    Notes
    -----
    A dense matrix of (features × (classes − 1))² numbers is factorised in each round.

    Examples
    --------
    >>> from quenched.models import LogisticRegression
    >>> dose = np.repeat([0.0, 1.0, 2.0, 3.0], 10)[:, None]
    >>> cured = np.tile(np.arange(10), 4) < 3 * dose[:, 0]
    >>> model = LogisticRegression().fit(dose, cured)
    >>> model.predict([[0.0], [3.0]])
    array([False,  True])
    >>> bool(model.predict_proba([[1.5]])[0, 1] > 0.3)  # integrated over the posterior of the weights
    True
    """

    def __init__(
        self,
        *,
        prior_precision: float | None = None,
        fit_intercept: bool = True,
        draws: int | None = None,
        tol: float | None = None,
        max_iter: int = 500,
        random_state: Any = 0,
    ):
        self.prior_precision = prior_precision
        self.fit_intercept = fit_intercept
        self.draws = draws
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Raise the bound on these rows.

        Parameters
        ----------
        X, y
            (n_samples, n_features), dense or sparse, and the label of each sample.
        sample_weight
            How often each sample counts; weights of 2 are the same as two copies.
        """
        X, labels, weights = checked_training(self, X, y, sample_weight, numeric=False)
        self.classes_, places = checked_classes(labels)
        check_precision("prior_precision", self.prior_precision)
        self._begin()
        likelihood = self._likelihood(places, weights)
        work = 0 if isinstance(likelihood, Bernoulli) else likelihood.points.size * len(places)
        problem, path = self._raised(X, weights, likelihood, work)
        posterior = posterior_of(problem, path)
        self._keep(posterior, (X, places, weights), path.last.bound)
        self.n_iter_ = max(len(path.history) - 1, 1)
        mix = self._mix
        self.coef_, self.intercept_ = mix @ posterior.coef, mix @ posterior.intercept
        self.coef_sd_ = posterior.sd(mix)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n_samples, n_classes), integrated over the posterior of the weights."""
        rows = self._rows(X)
        means, variances = self._posterior.predictors(rows)
        if len(self.classes_) == 2:
            second = softplus_expectations(means[:, 0], variances[:, 0, 0])[1]
            return np.column_stack([1.0 - second, second])
        return softmax_expectations(means, variances, self._points(_NEW_ROWS, 1), self._mix)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each sample."""
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    @property
    def _mix(self) -> np.ndarray:
        """Predictors to the scores of classes."""
        return np.ones((1, 1)) if len(self.classes_) == 2 else contrasts(len(self.classes_))

    def _likelihood(self, places: np.ndarray, weights: np.ndarray | None) -> Bernoulli | Categorical:
        if len(self.classes_) == 2:
            return Bernoulli(2.0 * places - 1.0)
        least = smallest("matched", len(self.classes_) - 1)
        if self.draws is None:
            count = len(places) if weights is None else weights.sum()
            fitting = int(_NUMBERS / (count * len(self.classes_))) // 2 * 2
            return Categorical(places, len(self.classes_), self._points(int(np.clip(fitting, 64, 1024)), 0))
        whole_number("draws", self.draws, 2)
        if self.draws < least or self.draws % 2:
            raise ValueError(
                f"draws={self.draws}: with {len(self.classes_)} classes an even number of at least {least} is needed."
            )
        return Categorical(places, len(self.classes_), self._points(self.draws, 0))

    def _points(self, n: int, index: int) -> np.ndarray:
        n_predictors = len(self.classes_) - 1
        least = smallest("matched", n_predictors)
        return matched(max(n, least), n_predictors, stream(self._seed, Purpose.PROJECTION, index)).points

    def _written_out(self) -> tuple[RowLikelihood, dict[str, Any]]:
        two = len(self.classes_) == 2
        return (BERNOULLI, {}) if two else (CATEGORICAL, {"contrasts": contrasts(len(self.classes_))})
