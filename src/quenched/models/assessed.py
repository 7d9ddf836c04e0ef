"""The `Fit` behind an estimator of linear predictors: its posterior, judged by the log density that it stands for.

The estimators find the best Gaussian without draws in the space of the weights. What every other fit has (a check on fresh
draws, importance weights, a diagnosis, samples for ArviZ) needs the log density itself: it is written here once more, in JAX,
and the posterior is handed to `assess` when somebody asks.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from quenched.compiling import compiled
from quenched.draws import Purpose, generator
from quenched.fitting import assess
from quenched.models.predictor_posterior import PredictorPosterior, dense
from quenched.precision import in_double
from quenched.results import Fit
from quenched.targets import Model


class RowLikelihood(NamedTuple):
    """What rows say of their predictors η; data are those of all rows, with the constants of the model."""

    name: str  # of the model
    log_density: Callable[[Any, Any], Any]  # log_density(η, data): (N,), in JAX
    draw: Callable[[np.random.Generator, np.ndarray, dict[str, Any]], np.ndarray]  # draw(random, η, data): observations


def assessed(
    likelihood: RowLikelihood,
    posterior: PredictorPosterior,
    X: Any,
    y: np.ndarray,
    weights: np.ndarray | None,
    *,
    features: list[str],
    seed: int,
    constants: dict[str, Any],
) -> Fit:
    """A `Fit` with the posterior of an estimator.

    Parameters
    ----------
    likelihood
        Written out.
    posterior
        What was found.
    X, y, weights
        The training rows, what was observed, and how often each counts.
    features
        Names of the columns.
    seed
        Of the check draws.
    constants
        What the likelihood and the prior of the intercept need besides.
    """
    view, n_predictors = posterior.view, len(posterior.mean)
    data = {
        "X": dense(X),
        "y": np.asarray(y),
        "weights": np.ones(X.shape[0]) if weights is None else weights,
        "prior_precision": posterior.prior_precision,
        **{key: np.asarray(value) for key, value in constants.items()},
    }
    one = n_predictors == 1
    start: dict[str, Any] = {"coef": np.zeros(view.n_weights if one else (n_predictors, view.n_weights))}
    if view.centre is not None:
        start["intercept"] = np.zeros(() if one else n_predictors)
        data["centre"] = view.centre

    def log_likelihood(samples: Any) -> dict[str, np.ndarray]:
        with in_double():
            each = compiled(jax.vmap(lambda p: data["weights"] * likelihood.log_density(_predictors(p, data), data)))
            return {"y": np.asarray(each(samples))}

    def predict(samples: Any, seed: int) -> dict[str, np.ndarray]:
        with in_double():
            predictors = np.asarray(jax.vmap(lambda p: _predictors(p, data))(samples))
        return {"y": likelihood.draw(generator(seed, Purpose.NOISE), predictors, data)}

    model = Model(
        _Joint(likelihood.log_density),
        start,
        data=data,
        name=likelihood.name,
        dims={"coef": ("feature",) if one else ("contrast", "feature"), "intercept": () if one else ("contrast",)},
        coords={"feature": features},
        predict=predict,
        log_likelihood=log_likelihood,
        observed={"y": np.asarray(y)},
    )
    return assess(model, posterior.natural(), seed=seed, progress=False)


def _predictors(parameters: Any, data: Any) -> Any:
    return data["X"] @ parameters["coef"].T + parameters.get("intercept", 0.0)


class _Joint:
    """log p(y, w): a likelihood of predictors, the prior of the weights, and that of the intercept at the centre."""

    def __init__(self, log_density: Callable[[Any, Any], Any]):
        self.log_density = log_density

    def __call__(self, parameters: Any, data: Any) -> Any:
        rows = self.log_density(_predictors(parameters, data), data)
        coef, alpha = parameters["coef"], data["prior_precision"]
        prior = jnp.sum(0.5 * jnp.log(alpha / (2 * jnp.pi)) - 0.5 * alpha * coef**2)
        if "intercept" in parameters:
            centred = parameters["intercept"] + coef @ data["centre"] - data["intercept_mean"]
            tau = data["intercept_sd"]
            pull = jnp.where(data["flat_intercept"], 0.0, (centred / tau) ** 2)
            prior += jnp.sum(-0.5 * jnp.log(2 * jnp.pi) - jnp.log(tau) - 0.5 * pull)
        return jnp.sum(data["weights"] * rows) + prior


def _gaussian(predictors: Any, data: Any) -> Any:
    """log N(y; η, 1/β)."""
    beta = data["noise_precision"]
    return 0.5 * jnp.log(beta / (2 * jnp.pi)) - 0.5 * beta * (data["y"] - predictors) ** 2


def _bernoulli(predictors: Any, data: Any) -> Any:
    """log σ(±η)."""
    return jax.nn.log_sigmoid((2.0 * data["y"] - 1.0) * predictors)


def _poisson(predictors: Any, data: Any) -> Any:
    """log Poisson(y; eᵑ)."""
    return data["y"] * predictors - jnp.exp(predictors) - jax.scipy.special.gammaln(data["y"] + 1.0)


def _categorical(predictors: Any, data: Any) -> Any:
    """log softmax(contrasts η) of the label."""
    scores = predictors @ data["contrasts"].T
    return jnp.take_along_axis(jax.nn.log_softmax(scores), data["y"][:, None], axis=1)[:, 0]


def _tossed(random: np.random.Generator, predictors: np.ndarray, data: Any) -> np.ndarray:
    """Labels 0 and 1."""
    return (random.uniform(size=predictors.shape) < expit(predictors)).astype(np.int64)


def _chosen(random: np.random.Generator, predictors: np.ndarray, data: Any) -> np.ndarray:
    """Places of classes: the largest of the scores, each with noise of Gumbel's distribution."""
    scores = predictors @ np.asarray(data["contrasts"]).T
    return np.argmax(scores + random.gumbel(size=scores.shape), axis=-1)


GAUSSIAN = RowLikelihood(
    "linear regression",
    _gaussian,
    lambda random, predictors, data: random.normal(predictors, data["noise_precision"] ** -0.5),
)
BERNOULLI = RowLikelihood("logistic regression", _bernoulli, _tossed)
CATEGORICAL = RowLikelihood("logistic regression", _categorical, _chosen)
POISSON = RowLikelihood(
    "Poisson regression", _poisson, lambda random, predictors, data: random.poisson(np.exp(predictors))
)
