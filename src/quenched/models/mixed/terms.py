"""A mixed model as a sum of terms, with the default priors.

With s the standard deviation of a gaussian response, and 1 for all others: fixed effects have N(0, (10 s / sd of the column)²), the
intercept N(0, (10 s + |mean of a gaussian response|)²), standard deviations of effects a half-normal of scale 2.5 s, correlations of
effects LKJ(2), and the logarithm of a dispersion (residual standard deviation, shape, precision) N(log s, 2²). The first cut point
of an ordinal response has N(0, 5²), and the logarithms of the steps to the next ones N(0, 1.5²).
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from scipy.special import gammaln

from quenched.models.mixed.design import MixedDesign
from quenched.models.mixed.likelihoods import likelihoods
from quenched.targets import Target, dot, each, each_entry, sum_of, whole
from quenched.transforms import correlation_cholesky

_LKJ = 2.0
_HYPER = ("log_sd", "log_dispersion", "cut_steps")  # what may be raised


@dataclass(frozen=True)
class OfRow:
    """The log likelihood of a row."""

    likelihood: str
    factors: tuple[str, ...]
    fixed: bool

    def __call__(self, seen, row):
        predictor = row["offset"] + (seen["fixed"] if self.fixed else 0.0)
        for name in self.factors:
            predictor = predictor + row[f"z:{name}"] @ jnp.atleast_1d(seen[f"effects.{name}"])
        value = likelihoods[self.likelihood].log_density(
            predictor, row, seen.get("log_dispersion", seen.get("cut_steps"))
        )
        return row["weight"] * value


@dataclass(frozen=True)
class OfLevel:
    """The prior of the effects of one level: a Gaussian whose standard deviations are parameters."""

    name: str
    first: int  # of its standard deviations among all
    size: int

    def __call__(self, seen):
        effects = jnp.atleast_1d(seen[f"effects.{self.name}"])
        log_sds = seen["log_sd"][self.first : self.first + self.size]
        scaled = effects * jnp.exp(-log_sds)
        if self.size == 1:
            return norm.logpdf(scaled[0]) - log_sds[0]
        factor, solved = seen[f"correlation.{self.name}"], []
        for i in range(self.size):  # forward substitution, written out
            solved.append((scaled[i] - sum(factor[i, j] * solved[j] for j in range(i))) / factor[i, i])
        slopes = jnp.sum(jnp.log(jnp.diagonal(factor)))
        return sum(norm.logpdf(one) for one in solved) - slopes - jnp.sum(log_sds)


@dataclass(frozen=True)
class OfFixed:
    """The prior of one fixed effect."""

    def __call__(self, seen, row):
        return norm.logpdf(seen["fixed"], 0.0, row)


@dataclass(frozen=True)
class OfSds:
    """Half-normal standard deviations, as densities of their logarithms."""

    scale: float

    def __call__(self, seen):
        log_sd = seen["log_sd"]
        return jnp.sum(jnp.log(2.0) + norm.logpdf(jnp.exp(log_sd), 0.0, self.scale) + log_sd)


@dataclass(frozen=True)
class OfDispersion:
    """The prior of the logarithm of a dispersion."""

    centre: float

    def __call__(self, seen):
        return norm.logpdf(seen["log_dispersion"], self.centre, 2.0)


@dataclass(frozen=True)
class OfCuts:
    """The prior of the first cut point, and of the logarithms of the steps from it."""

    def __call__(self, seen):
        steps = seen["cut_steps"]
        return norm.logpdf(steps[0], 0.0, 5.0) + jnp.sum(norm.logpdf(steps[1:], 0.0, 1.5))


@dataclass(frozen=True)
class OfCorrelation:
    """LKJ of the rows of a Cholesky factor: each is a point of a ball, whose density is a power of what is left to length one."""

    name: str
    size: int

    def __call__(self, seen):
        diagonal = jnp.diagonal(seen[f"correlation.{self.name}"])[1:]
        below = np.arange(1, self.size)
        powers = self.size - 1 - below + 2.0 * (_LKJ - 1.0)
        whole_balls = 0.5 * below * np.log(np.pi) + gammaln(0.5 * powers + 1.0) - gammaln(0.5 * (powers + below) + 1.0)
        return jnp.sum(powers * jnp.log(diagonal)) - np.sum(whole_balls)


@dataclass(frozen=True)
class WithHyper:
    """A term of rows some of whose parameters are hyperparameters, raised instead of integrated over."""

    function: Any

    def __call__(self, seen, row, hyper):
        return self.function({**seen, **hyper}, row)


@dataclass(frozen=True)
class WithHyperAlone:
    """The same for a term without rows."""

    function: Any

    def __call__(self, seen, hyper):
        return self.function({**seen, **hyper})


def _each(function: Any, data: Any, sees: dict[str, Any], raised: bool) -> list[Any]:
    """A term; with `raised`, what it sees of the hyperparameters comes from elsewhere, and none if it sees nothing else."""
    left = {name: what for name, what in sees.items() if not (raised and name in _HYPER)}
    if len(left) == len(sees):
        return [each(function, data, sees=sees)]
    wrapped = WithHyperAlone(function) if data is None else WithHyper(function)
    return [each(wrapped, data, sees=left)] if left else []


@dataclass(frozen=True, eq=False)
class Written:
    """A mixed model as `nested` and `fit` take it."""

    target: Target
    start: dict[str, Any]
    transforms: dict[str, Any]
    outer: list[str]
    hyper: dict[str, Any] | None


def write(design: MixedDesign, likelihood: str, weights: np.ndarray, raised: bool) -> Written:
    """The sum of terms, where it begins, and which parameters are outer."""
    gaussian = likelihood == "gaussian"
    unit = float(np.std(design.response)) or 1.0 if gaussian else 1.0
    rows = {"y": design.response, "offset": design.offset, "weight": weights}
    if design.trials is not None:
        rows["n"] = design.trials
    names = tuple(factor.name for factor in design.factors)
    fixed, dispersed = design.fixed.shape[1] > 0, likelihoods[likelihood].dispersed
    sees: dict[str, Any] = {"fixed": dot(design.fixed)} if fixed else {}
    start: dict[str, Any] = {"fixed": np.zeros(design.fixed.shape[1])} if fixed else {}
    terms, outer, first, transforms = [], [], 0, {}
    for factor in design.factors:
        sees[f"effects.{factor.name}"] = factor.index
        rows[f"z:{factor.name}"] = factor.covariates
        shape = (len(factor.levels),) if factor.size == 1 else (len(factor.levels), factor.size)
        start.setdefault("effects", {})[factor.name] = np.zeros(shape)
        own: dict[str, Any] = {f"effects.{factor.name}": each_entry, "log_sd": whole}
        if factor.size > 1:
            leaf = f"correlation.{factor.name}"
            start.setdefault("correlation", {})[factor.name] = np.eye(factor.size)
            transforms.setdefault("correlation", {})[factor.name] = correlation_cholesky
            own[leaf] = whole
            outer.append(leaf)
            terms += _each(OfCorrelation(factor.name, factor.size), None, {leaf: whole}, raised)
        terms += _each(OfLevel(factor.name, first, factor.size), None, own, raised)
        first += factor.size
    if first:
        start["log_sd"] = np.full(first, np.log(0.5 * unit))
        outer.append("log_sd")
        terms += _each(OfSds(2.5 * unit), None, {"log_sd": whole}, raised)
    if dispersed:
        sees["log_dispersion"] = whole
        start["log_dispersion"] = np.log(unit)
        outer.append("log_dispersion")
        terms += _each(OfDispersion(float(np.log(unit))), None, {"log_dispersion": whole}, raised)
    if design.categories:
        sees["cut_steps"] = whole
        start["cut_steps"] = _first_cuts(design.response)
        outer.append("cut_steps")
        terms += _each(OfCuts(), None, {"cut_steps": whole}, raised)
    if fixed:
        terms += _each(OfFixed(), _fixed_sds(design, unit, gaussian), {"fixed": each_entry}, raised)
        if gaussian and "Intercept" in design.names:
            start["fixed"][design.names.index("Intercept")] = design.response.mean()
    terms += _each(OfRow(likelihood, names, fixed), rows, sees, raised)
    hyper = {name: np.asarray(start.pop(name), float) for name in _HYPER if name in start} if raised else None
    return Written(sum_of(*terms), start, transforms, outer, hyper or None)


def _fixed_sds(design: MixedDesign, unit: float, gaussian: bool) -> np.ndarray:
    spread = np.std(design.fixed, axis=0)
    sds = 10.0 * unit / np.where(spread > 0.0, spread, 1.0)
    if gaussian:
        sds = np.where(spread > 0.0, sds, sds + abs(float(design.response.mean())))
    return sds


def _first_cuts(codes: np.ndarray) -> np.ndarray:
    """Where the shares of the categories would put them."""
    shares = np.cumsum(np.bincount(codes.astype(int)))[:-1] / len(codes)
    cuts = np.log(shares / (1.0 - shares))
    return np.concatenate([cuts[:1], np.log(np.maximum(np.diff(cuts), 1e-3))])
