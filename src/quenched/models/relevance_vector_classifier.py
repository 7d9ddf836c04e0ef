"""`RelevanceVectorClassifier`: the multiclass relevance vector machine mRVM2 as a scikit-learn classifier."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted

from quenched.models.checked import checked_classes, checked_training, new_rows
from quenched.models.multiclass_rvm import MulticlassRVM, fit_multiclass_rvm
from quenched.models.predictor_posterior import dense
from quenched.numbers import finite_number, positive_number, whole_number
from quenched.text import shown

_SHARE = 0.1  # of the samples may be on their way out at a time


class RelevanceVectorClassifier(ClassifierMixin, BaseEstimator):
    """Kernel classifier that keeps few samples (mRVM2: Psorakis, Damoulas and Girolami 2010).

    A multinomial probit model in which every sample has a weight per class with a precision of its own; samples whose
    precisions grow without end leave. It is the paper's comparison for multiclass problems, and needs no draws. Unlike there, at
    most a tenth of the samples are on their way out in a round: all at once they may all be lost.

    Parameters
    ----------
    kernel
        "rbf", "linear", "poly", "sigmoid", "laplacian", "cosine", a function of two rows, or "precomputed": X is then the
        kernel itself, between samples (rows) and training samples (columns).
    gamma, degree, coef0
        Of the kernel, as in scikit-learn's `SVC`; gamma "scale" is 1 / (n_features × variance of X).
    tol
        Rounds end when no sample left and no score moved by more than this, relative to one plus itself.
    max_iter
        Rounds, at the most.

    Attributes
    ----------
    classes_
        The labels, in order.
    relevance_vectors_
        The samples that were kept, (n_kept, n_features); their places in X if the kernel is precomputed.
    n_relevance_
        How many.
    dual_coef_
        Their weights, (n_kept, n_classes).
    log_likelihood_
        Of the training labels in the last round, in nats. The method has no bound on the evidence.
    n_iter_
        Rounds.
    n_features_in_, feature_names_in_
        Of the training data.

    Examples
    --------
    >>> from quenched.models import RelevanceVectorClassifier
    >>> random = np.random.default_rng(0)
    >>> clouds = np.concatenate([random.normal(-1.0, 1.0, (30, 2)), random.normal(1.0, 1.0, (30, 2))])
    >>> model = RelevanceVectorClassifier().fit(clouds, np.repeat([0, 1], 30))
    >>> model.predict([[-1.0, -1.0], [1.0, 1.0]])
    array([0, 1])
    """

    _machine: MulticlassRVM

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        tol: float = 5e-3,
        max_iter: int = 1000,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Run the rounds.

        Parameters
        ----------
        X, y
            (n_samples, n_features), dense or sparse, or the square kernel; and the label of each sample.
        sample_weight
            How often each sample counts; weights of 2 are the same as two copies.
        """
        self._check_arguments()
        X, labels, weights = checked_training(self, X, y, sample_weight, numeric=False)
        self.classes_, places = checked_classes(labels)
        if self.kernel == "precomputed":
            self._centres = _counted_columns(X, None if weights is None else np.asarray(sample_weight))
        else:
            self._gamma = self._read_gamma(X, weights)
            # Copies of a sample have one weight between them: so it does not matter whether they are copies or counted.
            self._centres = np.unique(dense(X), axis=0)
        self._machine = fit_multiclass_rvm(
            self._kernel(X),
            places,
            n_classes=len(self.classes_),
            sample_weight=weights,
            max_rounds=self.max_iter,
            tolerance=self.tol,
            share=_SHARE,
        )
        self.relevance_vectors_ = self._centres[self._machine.relevance]
        self.n_relevance_ = len(self._machine.relevance)
        self.dual_coef_ = self._machine.weights
        self.log_likelihood_ = float(self._machine.history[-1])
        self.n_iter_ = self._machine.n_rounds
        if not self._machine.converged:
            warnings.warn(
                f"RelevanceVectorClassifier: the scores still move after {self.n_iter_} rounds; raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n_samples, n_classes), integrated over the posterior of the weights that were kept."""
        check_is_fitted(self)
        return self._machine.integrated_probability(self._kernel(new_rows(self, X)))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each sample."""
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def _check_arguments(self) -> None:
        whole_number("max_iter", self.max_iter, 1)
        positive_number("tol", self.tol)
        finite_number("coef0", self.coef0)
        whole_number("degree", self.degree, 0)
        if not (callable(self.kernel) or isinstance(self.kernel, str)):
            raise ValueError(f"kernel={shown(self.kernel)}: give the name of a kernel, or a function of two samples.")

    def _kernel(self, rows: Any) -> np.ndarray:
        """Between rows and centres; where it is precomputed, centres are columns."""
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            return dense(rows)[:, self._centres]
        if callable(self.kernel):
            return pairwise_kernels(dense(rows), self._centres, metric=self.kernel)  # pyright: ignore
        named = {"gamma": self._gamma, "degree": self.degree, "coef0": self.coef0}
        return np.asarray(pairwise_kernels(rows, self._centres, metric=self.kernel, filter_params=True, **named))

    def _read_gamma(self, X: Any, weights: np.ndarray | None) -> float:
        if isinstance(self.gamma, str) and self.gamma == "auto":
            return 1.0 / X.shape[1]
        if isinstance(self.gamma, str) and self.gamma == "scale":
            entries = dense(X)
            level = np.average(np.mean(entries, axis=1), weights=weights)
            variance = float(np.average(np.mean((entries - level) ** 2, axis=1), weights=weights))
            return 1.0 / (X.shape[1] * (variance or 1.0))
        return positive_number("gamma", self.gamma)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _counted_columns(kernel: Any, sample_weight: np.ndarray | None) -> np.ndarray:
    """Columns of the training samples that count, of a kernel from whose rows the others are gone."""
    counts = np.ones(kernel.shape[0]) if sample_weight is None else sample_weight
    if len(counts) != kernel.shape[1]:
        raise ValueError(
            f"X has {len(counts)} rows and {kernel.shape[1]} columns; a precomputed kernel of the training samples is square."
        )
    return np.flatnonzero(counts > 0)
