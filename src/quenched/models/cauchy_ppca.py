"""`CauchyPPCA`: principal component analysis with the noise of your choice (paper, Sec. 3.5)."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from quenched.draws import Draws, Purpose, matched, smallest, stream
from quenched.fitting import Method
from quenched.models.checked import Components, latent_rows, seed_of
from quenched.models.closed_form_ppca import fixed_signs
from quenched.models.loadings import raise_parameters
from quenched.models.noise import Noise, read_noise
from quenched.models.ppca import checked_components, checked_rows
from quenched.models.projection import Projection, project
from quenched.models.reweighting import Parameters
from quenched.numbers import positive_number, whole_number
from quenched.results import Fit, FitError, Status
from quenched.text import shown


class CauchyPPCA(Components):
    """Principal component analysis that wild entries do not disturb.

    y = W x + ξ + noise, x ~ N(0, I), entries of the noise independent. Each row has a Gaussian posterior of its own;
    W, ξ and the scale of the noise are raised on the bound by gradient. Another noise is another argument, nothing
    else: `CauchyPPCA(noise="laplace")`, or `CauchyPPCA(noise=lambda r: -jnp.log(jnp.cosh(r)) - jnp.log(jnp.pi))`.

    Parameters
    ----------
    n_components
        Latent variables per row; fewer than columns, and than rows − 1.
    noise
        "cauchy", "student_t", "laplace", "gaussian", or a JAX function: the log density of residuals in units of the
        scale, element by element. `quenched.models.student_t(degrees)` makes others. A density that is not normalised
        gives the same W, ξ and x, and bounds that are off by a constant.
    draws
        Frozen draws per row, an even number of at least twice `n_components`; or `Draws` for all rows together.
    tol
        Largest component of the gradient at which the ascent ends, every parameter in units of its uncertainty.
    max_iter
        Evaluations of the bound, at the most.
    method
        Another way to raise the bound, such as `quenched.Alternating()`, the paper's. `tol` and `max_iter` are then
        the method's own.
    random_state
        Seed of the draws.

    Attributes
    ----------
    components_
        Wᵀ, (n_components, n_features): orthogonal, the strongest first, not of unit length.
    mean_
        ξ.
    noise_scale_
        γ of the paper, in the units of the data.
    bound_
        Lower bound on the log evidence of the training rows, in nats.
    fit_
        The `quenched.Fit` that raised the bound, before W was turned into its orthogonal form: its gap, its verdict.
    n_iter_
        Evaluations of the bound.
    n_features_in_, feature_names_in_
        Of the training data.

    Notes
    -----
    With fewer than about twice as many rows as coefficients per column (n_components + 1), a heavy-tailed noise can
    pass through most of the entries exactly and its scale falls without end; a warning then says that the ascent did
    not converge.

    The bound can have several optima: W and ξ are found from the better of two starts, an ordinary and a robust one. A
    new row begins with the spread of the prior, which passes over most second modes but, with few columns and many wild
    entries, not over all.

    Examples
    --------
    >>> from quenched.models import CauchyPPCA
    >>> rows = np.outer(np.linspace(-1.0, 1.0, 20), [1.0, 2.0, 3.0, 4.0]) + 0.01 * np.sin(np.arange(80.0)).reshape(20, 4)
    >>> wild = rows.copy()
    >>> wild[3, 1] += 30.0
    >>> model = CauchyPPCA(n_components=1).fit(wild)
    >>> rebuilt = model.inverse_transform(model.transform(wild))
    >>> bool(abs(rebuilt[3, 1] - rows[3, 1]) < 0.5)  # the wild entry is left out
    True
    """

    components_: np.ndarray
    mean_: np.ndarray
    noise_scale_: float
    bound_: float
    fit_: Fit
    n_iter_: int

    def __init__(
        self,
        n_components: int = 2,
        *,
        noise: str | Noise = "cauchy",
        draws: int | Draws = 16,
        tol: float = 1e-2,
        max_iter: int = 500,
        method: Method | None = None,
        random_state: Any = 0,
    ):
        self.n_components = n_components
        self.noise = noise
        self.draws = draws
        self.tol = tol
        self.max_iter = max_iter
        self.method = method
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Raise the bound on these rows.

        Parameters
        ----------
        X
            (n_samples, n_features), without missing values.
        y
            Ignored.

        Raises
        ------
        ValueError
            For misuse, before anything is computed.
        quenched.FitError
            When the noise is not finite where it is needed.
        """
        data = checked_rows(self, X, reset=True)
        n_components = checked_components(self.n_components, *data.shape)
        noise = read_noise(self.noise)
        self._check_numbers(n_components)
        centre, unit = _units(data)
        seed = seed_of(self.random_state)
        raised, self.fit_ = raise_parameters(
            noise,
            (data - centre) / unit,
            n_components,
            draws=self.draws,
            seed=seed,
            method=self.method,
            tolerance=self.tol,
            max_evaluations=self.max_iter,
        )
        self._judge()
        self.components_ = _orthogonal(raised.loadings * unit).T
        self.mean_, self.noise_scale_ = raised.offset * unit + centre, raised.scale * unit
        self.bound_ = self.fit_.bound - data.size * float(np.log(unit))
        self.n_iter_ = self.fit_.n_objective_evaluations
        self._projection_draws = _draws_per_row(self.draws, n_components, seed)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Posterior means of the latent variables, (n_samples, n_components): each row by its own fit."""
        return self._project(X).means

    def inverse_transform(self, X: Any) -> np.ndarray:
        """W x + ξ for latent variables x."""
        check_is_fitted(self)
        return latent_rows(X, len(self.components_)) @ self.components_ + self.mean_

    def score_samples(self, X: Any) -> np.ndarray:
        """A lower bound on the log likelihood of each row, in nats; exact for Gaussian noise.

        It is the bound of the row's own posterior on its frozen draws, W, ξ and the scale being fixed.
        """
        return self._project(X).bounds

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def _project(self, X: Any) -> Projection:
        check_is_fitted(self)
        data = checked_rows(self, X, reset=False)
        # In units of the scale, whose logarithm is what the bounds are then short of.
        parameters = Parameters(self.components_.T / self.noise_scale_, np.zeros(data.shape[1]), 1.0)
        found = project(
            read_noise(self.noise), (data - self.mean_) / self.noise_scale_, parameters, self._projection_draws
        )
        return found._replace(bounds=found.bounds - data.shape[1] * np.log(self.noise_scale_))

    def _check_numbers(self, n_components: int) -> None:
        positive_number("tol", self.tol)
        whole_number("max_iter", self.max_iter, 1)
        least = 2 * n_components
        if not isinstance(self.draws, Draws) and (whole_number("draws", self.draws, 1) < least or self.draws % 2):
            raise ValueError(f"draws={self.draws}: an even number of at least {least} is needed.")
        if self.method is not None and not isinstance(self.method, Method):
            raise ValueError(f"method={shown(self.method)}: use quenched.Joint(...) or quenched.Alternating(...).")

    def _judge(self) -> None:
        if self.fit_.status is Status.NOT_FINITE:
            raise FitError(self.fit_.message, self.fit_)
        if not self.fit_.converged:
            warnings.warn(f"CauchyPPCA: {self.fit_.message}", ConvergenceWarning, stacklevel=3)


def _units(data: np.ndarray) -> tuple[np.ndarray, float]:
    """Centre and one unit for all entries, so that data in any units are fitted alike."""
    centre = np.median(data, axis=0)
    unit = float(np.std(data - centre))
    if not unit > 0:
        raise ValueError("X: all rows are equal; there is nothing to fit.")
    return centre, unit


def _orthogonal(loadings: np.ndarray) -> np.ndarray:
    """Loadings turned so that their columns are orthogonal, the longest first: a rotation of x, which N(0, I) allows."""
    directions, lengths, _ = np.linalg.svd(loadings, full_matrices=False)
    return fixed_signs(directions) * lengths


def _draws_per_row(draws: int | Draws, n_components: int, seed: int) -> Draws:
    n = draws.n if isinstance(draws, Draws) else draws
    n = max(n + n % 2, smallest("matched", n_components))
    return matched(n, n_components, stream(seed, Purpose.PROJECTION))
