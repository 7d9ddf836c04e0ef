"""What the estimators of linear predictors have in common: their posterior, their data, and the `Fit` behind them."""

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from quenched.models.assessed import RowLikelihood, assessed
from quenched.models.checked import TakesSparse, new_rows, seed_of
from quenched.models.linear_predictors import INTERCEPT_SD, Likelihood, LinearProblem, Path, lay_out, raise_linear_bound
from quenched.models.predictor_posterior import PredictorPosterior
from quenched.numbers import positive_number, whole_number, yes_or_no
from quenched.results import Fit
from quenched.threads import quiet_blas

_QUICK, _EXACT, _ENOUGH = 2e6, 1e-9, 0.2  # multiplications of a round; norms of the gradient where it ends
LARGE = 1e9  # multiplications from which on BLAS's threads are worth their waiting for each other
_DATA = ("_training", "_assessed")  # what is not pickled


class LinearEstimator(TakesSparse, BaseEstimator, ABC):
    """The base of estimators whose data see linear predictors only. Not to be used by itself."""

    prior_precision: float | None
    fit_intercept: bool
    tol: float | None  # as `max_iter`, of those that are raised in rounds
    max_iter: int
    random_state: Any
    n_features_in_: int
    _posterior: PredictorPosterior
    _training: tuple[Any, np.ndarray, np.ndarray | None]
    _seed: int

    def __getstate__(self) -> dict[str, Any]:
        """All but the training rows: they may be large, and only `fit_` needs them."""
        return {name: value for name, value in super().__getstate__().items() if name not in _DATA}  # pyright: ignore

    @property
    def fit_(self) -> Fit:
        """The posterior as a `quenched.Fit`: verdict, diagnosis, samples, ArviZ. It is made when it is first asked for.

        Raises
        ------
        ValueError
            After unpickling: the training rows were not pickled.
        """
        check_is_fitted(self)
        if "_training" not in vars(self):
            raise ValueError("fit_: the training rows are not pickled with an estimator; call fit(X, y) again.")
        if "_assessed" not in vars(self):
            likelihood, constants = self._written_out()
            of_intercept = {"intercept_mean": 0.0, "intercept_sd": INTERCEPT_SD, "flat_intercept": False}
            options: dict[str, Any] = {"features": self._names(), "seed": self._seed}
            self._assessed = assessed(
                likelihood, self._posterior, *self._training, constants=of_intercept | constants, **options
            )
        return self._assessed

    @abstractmethod
    def _written_out(self) -> tuple[RowLikelihood, dict[str, Any]]:
        """The likelihood by which the posterior is judged, and the constants in which it departs from the usual ones."""

    def _begin(self) -> None:
        """Check the numbers that were given to the constructor."""
        yes_or_no("fit_intercept", self.fit_intercept)
        if hasattr(self, "max_iter"):
            whole_number("max_iter", self.max_iter, 1)
            if self.tol is not None:
                positive_number("tol", self.tol)
        self._seed = seed_of(self.random_state)

    def _tolerance(self, problem: LinearProblem, further: int = 0) -> float:
        """As asked; or by what a round costs, in multiplications; `further` are exponentials, which cost as twenty."""
        if self.tol is not None:
            return self.tol
        costs = len(problem.design) * problem.design.view.n_coordinates**2 + 20 * further
        return _EXACT if costs <= _QUICK else _ENOUGH

    def _raised(
        self, X: Any, weights: np.ndarray | None, likelihood: Likelihood, further: int = 0
    ) -> tuple[LinearProblem, Path]:
        """The problem of these rows, and where its ascent ended."""
        with quiet_blas(work_of(X) > LARGE):
            design = lay_out(X, intercept=self.fit_intercept, weights=weights)
            problem = LinearProblem(design, self.prior_precision)
            tolerance = self._tolerance(problem, further)
            path = raise_linear_bound(problem, likelihood, max_rounds=self.max_iter, tolerance=tolerance)
        tell(self, problem, path)
        return problem, path

    def _keep(
        self, posterior: PredictorPosterior, training: tuple[Any, np.ndarray, np.ndarray | None], bound: float
    ) -> None:
        self._posterior, self._training, self.bound_ = posterior, training, bound
        self.prior_precision_ = posterior.prior_precision
        vars(self).pop("_assessed", None)

    def _names(self) -> list[str]:
        known = getattr(self, "feature_names_in_", None)
        return list(known) if known is not None else [f"x{place}" for place in range(self.n_features_in_)]

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return new_rows(self, X)


def work_of(X: Any) -> float:
    """Multiplications of one product of the features with themselves."""
    return float(X.shape[0]) * X.shape[1] * min(X.shape)


def tell(estimator: BaseEstimator, problem: LinearProblem, path: Path) -> None:
    """Warn of an ascent that did not end well."""
    name = type(estimator).__name__
    if not path.converged:
        warnings.warn(
            f"{name}: the bound still rises after {len(path.history) - 1} rounds; raise max_iter, or standardise the "
            "features.",
            ConvergenceWarning,
            stacklevel=4,
        )
    elif problem.at_limit(path.last.posterior):
        warnings.warn(
            f"{name}: the prior precision ran to its limit, {path.last.posterior.prior_precision:.2g}: the targets do not "
            "depend on the features, or follow them without error. Give prior_precision to hold it.",
            ConvergenceWarning,
            stacklevel=4,
        )
