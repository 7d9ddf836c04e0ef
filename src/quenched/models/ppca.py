"""`PPCA`: probabilistic principal component analysis in closed form."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from quenched.models.checked import Components, latent_rows, validated
from quenched.models.closed_form_ppca import PPCASolution, fit_ppca
from quenched.models.predictor_posterior import dense
from quenched.numbers import whole_number


class PPCA(Components):
    """Probabilistic principal component analysis by maximum likelihood (Tipping and Bishop 1999).

    y = W x + μ + ε with x ~ N(0, I) and Gaussian noise. Rows may be fewer than columns; missing values are refused.

    Parameters
    ----------
    n_components
        Latent variables per row; fewer than columns, and than rows − 1.
    random_state
        Ignored: the answer is in closed form. It is here so that `PPCA` and `CauchyPPCA` can be exchanged.

    Attributes
    ----------
    components_
        Wᵀ, (n_components, n_features), the strongest first. Not of unit length: x has unit variance.
    mean_
        μ.
    noise_variance_
        σ².
    log_likelihood_
        Of the training rows, in nats.
    n_features_in_, feature_names_in_
        Of the training data.

    Examples
    --------
    >>> from quenched.models import PPCA
    >>> rows = np.outer(np.arange(6.0), [1.0, 2.0, 3.0]) + 0.01 * np.eye(6)[:, :3]
    >>> model = PPCA(n_components=1).fit(rows)
    >>> model.transform(rows).shape, bool(model.noise_variance_ < 1e-3)
    ((6, 1), True)
    """

    components_: np.ndarray
    mean_: np.ndarray
    noise_variance_: float
    log_likelihood_: float

    def __init__(self, n_components: int = 2, *, random_state: Any = None):
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find loadings, offset and noise variance.

        Parameters
        ----------
        X
            (n_samples, n_features).
        y
            Ignored.
        """
        data = checked_rows(self, X, reset=True)
        solution = fit_ppca(data, checked_components(self.n_components, *data.shape))
        self.components_ = solution.loadings.T
        self.mean_, self.noise_variance_ = solution.mean, solution.noise_variance
        self.log_likelihood_ = solution.log_likelihood
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Posterior means of the latent variables, (n_samples, n_components)."""
        return self._solution().posterior_means(self._rows(X))

    def inverse_transform(self, X: Any) -> np.ndarray:
        """W x + μ for latent variables x."""
        check_is_fitted(self)
        return latent_rows(X, len(self.components_)) @ self.components_ + self.mean_

    def score_samples(self, X: Any) -> np.ndarray:
        """Log likelihood of each row, in nats; exact."""
        return self._solution().log_likelihoods(self._rows(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log likelihood of the rows."""
        return float(np.mean(self.score_samples(X)))

    def _solution(self) -> PPCASolution:
        check_is_fitted(self)
        return PPCASolution(self.components_.T, self.mean_, self.noise_variance_, self.log_likelihood_)

    def _rows(self, X: Any) -> np.ndarray:
        return checked_rows(self, X, reset=False)


def checked_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> np.ndarray:
    """Rows as scikit-learn wants them checked, sparse ones written out; with `reset`, their columns bind later rows."""
    least = 2 if reset else 1
    return dense(validated(estimator, X, accept_sparse="csr", dtype=np.float64, reset=reset, ensure_min_samples=least))


def checked_components(n_components: Any, n_samples: int, n_features: int) -> int:
    """A whole number of components that data of this shape can determine.

    Raises
    ------
    ValueError
        Otherwise, with the largest number that would do.
    """
    n_components = whole_number("n_components", n_components, 1)
    most = min(n_features - 1, n_samples - 2)
    if n_components > most:
        raise ValueError(
            f"n_components={n_components}: rows X with n_samples={n_samples} and n_features={n_features} determine at most "
            f"{max(most, 0)}, or nothing is left for the noise."
        )
    return n_components
