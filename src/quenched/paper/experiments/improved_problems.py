"""The posteriors on which improved Gaussian approximations are compared, as sums of terms.

Classification has radial basis functions and one unknown scale of their weights; Gaussian-process classification a fixed
kernel of unknown amplitude; the mixed models have the priors of Fong, Rue and Wakefield (2010), where they state them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import lgamma
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, log_ndtr
from jax.scipy.stats import norm

from quenched.paper.datasets import mixed_table
from quenched.paper.datasets import partition as load_partition
from quenched.paper.experiments import printed
from quenched.paper.experiments.features import radial_basis
from quenched.targets import Target, dot, each, each_entry, sum_of, whole

_CENTRES, _WIDTH = 50, 0.5
_PROCESS_POINTS = 60


@dataclass(frozen=True, eq=False)
class Posed:
    """A posterior, and which of its parameters are outer."""

    target: Target
    start: dict[str, Any]
    outer: list[str] | None
    exact: tuple[float, ...] | None = field(default=None)  # the vector of a skew density, which a grid integrates
    spreads: dict[str, int] = field(default_factory=dict)  # of effects: the place of their standard deviation in log_sd


def log_bernoulli(predictor, row):
    return row["y"] * predictor - jnp.logaddexp(0.0, predictor)


def log_binomial(predictor, row):
    ways = gammaln(row["n"] + 1.0) - gammaln(row["y"] + 1.0) - gammaln(row["n"] - row["y"] + 1.0)
    return ways + row["y"] * predictor - row["n"] * jnp.logaddexp(0.0, predictor)


def log_poisson(predictor, row):
    return row["y"] * predictor - jnp.exp(predictor) - gammaln(row["y"] + 1.0)


def log_probit(predictor, row):
    return log_ndtr((2.0 * row["y"] - 1.0) * predictor)


@dataclass(frozen=True)
class ComparedRow:
    """A row of a table: fixed effects and one effect of each grouping."""

    likelihood: Callable[[Any, Any], Any]
    groups: tuple[str, ...]

    def __call__(self, seen, row):
        return self.likelihood(seen["beta"] + sum(seen[name] for name in self.groups), row)


@dataclass(frozen=True)
class OfEffect:
    """The prior of one effect of a grouping."""

    name: str
    place: int

    def __call__(self, seen):
        log_sd = seen["log_sd"][self.place]
        return norm.logpdf(seen[self.name] * jnp.exp(-log_sd)) - log_sd


@dataclass(frozen=True)
class ComparedFixed:
    """The prior of one fixed effect."""

    sd: float

    def __call__(self, seen):
        return norm.logpdf(seen["beta"], 0.0, self.sd)


@dataclass(frozen=True)
class OfPrecisions:
    """Gamma priors of the precisions, as densities of the logarithms of the standard deviations."""

    shape: float
    rate: float

    def __call__(self, seen):
        log_precision = -2.0 * seen["log_sd"]
        constant = self.shape * np.log(self.rate) - lgamma(self.shape) + np.log(2.0)
        return jnp.sum(constant + self.shape * log_precision - self.rate * jnp.exp(log_precision))


def grouped(
    likelihood: Callable[[Any, Any], Any],
    rows: dict[str, np.ndarray],
    design: np.ndarray,
    groups: dict[str, np.ndarray],
    prior: tuple[float, float],
) -> Posed:
    """A mixed model with one effect for each level of each grouping; `prior` are shape and rate of the precisions."""
    codes = {name: np.unique(values, return_inverse=True)[1] for name, values in groups.items()}
    effects = [
        each(OfEffect(name, place), sees={name: each_entry, "log_sd": whole}) for place, name in enumerate(groups)
    ]
    target = sum_of(
        each(ComparedRow(likelihood, tuple(groups)), rows, sees={"beta": dot(design), **codes}),
        *effects,
        each(ComparedFixed(float(np.sqrt(1000.0))), sees={"beta": each_entry}),
        each(OfPrecisions(*prior), sees={"log_sd": whole}),
    )
    start: dict[str, Any] = {"beta": np.zeros(design.shape[1])}
    start |= {name: np.zeros(code.max() + 1) for name, code in codes.items()}
    spreads = {name: place for place, name in enumerate(groups)}
    return Posed(target, {**start, "log_sd": np.full(len(groups), -0.5)}, ["log_sd"], spreads=spreads)


def _columns(*columns: Any) -> np.ndarray:
    n = max(np.size(column) for column in columns)
    return np.stack([np.broadcast_to(column, n) for column in columns], axis=1).astype(float)


def _salamander(experiment: int) -> Posed:
    table = mixed_table("salamander")
    own = table["Experiment"] == experiment
    female, male = (table[name][own] == "W" for name in ("TypeF", "TypeM"))
    groups = {"female": table["Female"][own], "male": table["Male"][own]}
    return grouped(
        log_bernoulli, {"y": table["Mate"][own]}, _columns(1.0, female, male, female & male), groups, (1.0, 0.622)
    )


def _seeds() -> Posed:
    table = mixed_table("Seeds")
    rows = {"y": table["r"], "n": table["n"]}
    design = _columns(1.0, table["x1"], table["x2"])
    return grouped(log_binomial, rows, design, {"plate": table["plate"]}, (0.5, 0.0164))


def _epil() -> Posed:
    table = mixed_table("Epil")
    centred = lambda values: values - values.mean()
    base, age = np.log(table["Base"] / 4.0), np.log(table["Age"])
    columns = (base, table["Trt"], base * table["Trt"], age, table["V4"])
    design = _columns(1.0, *(centred(column) for column in columns))
    groups = {"person": table["Ind"], "visit": table["rand"]}
    return grouped(log_poisson, {"y": table["y"]}, design, groups, (2.0, 1.14))


def _verbal_aggression() -> Posed:
    table = mixed_table("VerbAgg")
    columns = [table["Anger"] - table["Anger"].mean(), table["Gender"] == "M"]
    columns += [table["btype"] == kind for kind in ("scold", "shout")]
    columns += [table["situ"] == "self", table["mode"] == "do"]
    groups = {"person": table["id"], "item": table["item"]}
    return grouped(
        log_bernoulli, {"y": (table["r2"] == "Y").astype(float)}, _columns(1.0, *columns), groups, (1.0, 0.5)
    )


def of_reaction(seen, row):
    """In tenths of a second."""
    mean = seen["beta"] + seen["person"][0] + seen["person"][1] * row["days"]
    return norm.logpdf(row["y"], mean, jnp.exp(seen["log_noise"]))


def of_person(seen):
    sds, correlation = jnp.exp(seen["log_sd"]), jnp.tanh(seen["turn"])
    first, second = seen["person"] / sds
    rest = jnp.sqrt(1.0 - correlation**2)
    own = norm.logpdf(first) + norm.logpdf((second - correlation * first) / rest)
    return own - jnp.sum(seen["log_sd"]) - jnp.log(rest)


def of_scales(seen):
    """Standard normal logarithms of all standard deviations, around those that reaction times have."""
    return jnp.sum(norm.logpdf(seen["log_sd"], -1.5, 1.0)) + norm.logpdf(seen["log_noise"], -1.0, 1.0)


def of_turn(seen):
    """A correlation that is uniform."""
    return jnp.log(0.5) + jnp.log1p(-(jnp.tanh(seen["turn"]) ** 2))


def _sleepstudy() -> Posed:
    table = mixed_table("sleepstudy")
    people = np.unique(table["Subject"], return_inverse=True)[1]
    rows = {"y": table["Reaction"] / 100.0, "days": table["Days"]}
    target = sum_of(
        each(of_reaction, rows, sees={"beta": dot(_columns(1.0, table["Days"])), "person": people, "log_noise": whole}),
        each(of_person, sees={"person": each_entry, "log_sd": whole, "turn": whole}),
        each(ComparedFixed(10.0), sees={"beta": each_entry}),
        each(of_scales, sees={"log_sd": whole, "log_noise": whole}),
        each(of_turn, sees={"turn": whole}),
    )
    start = {"beta": np.array([2.5, 0.1]), "person": np.zeros((people.max() + 1, 2)), "log_sd": np.full(2, -1.5)}
    return Posed(target, {**start, "log_noise": -1.0, "turn": 0.0}, ["log_sd", "log_noise", "turn"])


@dataclass(frozen=True)
class OfCase:
    """A row of a classification problem."""

    likelihood: Callable[[Any, Any], Any]

    def __call__(self, seen, row):
        return self.likelihood(seen["weight"], row)


def of_scale(seen):
    return norm.logpdf(seen["log_sd"][0], 0.0, 1.0)


def _weighted(likelihood: Callable[[Any, Any], Any], design: np.ndarray, labels: np.ndarray) -> Posed:
    """Weights of one unknown scale."""
    target = sum_of(
        each(OfCase(likelihood), {"y": labels}, sees={"weight": dot(design)}),
        each(OfEffect("weight", 0), sees={"weight": each_entry, "log_sd": whole}),
        each(of_scale, sees={"log_sd": whole}),
    )
    return Posed(
        target, {"weight": np.zeros(design.shape[1]), "log_sd": np.zeros(1)}, ["log_sd"], spreads={"weight": 0}
    )


def _classification(dataset: str) -> Posed:
    part = load_partition(dataset, 1)
    distinct = np.unique(part.train_features, axis=0)
    chosen = np.random.default_rng(15).permutation(len(distinct))[:_CENTRES]
    design = radial_basis(part.train_features, distinct[np.sort(chosen)], _WIDTH)
    return _weighted(log_bernoulli, design, part.train_labels.astype(float))


def _process() -> Posed:
    """Probit Gaussian-process classification: values of the process are root · weights."""
    part = load_partition("banana", 1)
    inputs, labels = part.train_features[:_PROCESS_POINTS], part.train_labels[:_PROCESS_POINTS]
    distances = np.sum((inputs[:, None] - inputs) ** 2, axis=2)
    root = np.linalg.cholesky(np.exp(-0.5 * distances / 0.6**2) + 1e-6 * np.eye(len(inputs)))
    return _weighted(log_probit, root, labels.astype(float))


def of_plane(seen):
    return jnp.sum(norm.logpdf(seen["w"]))


@dataclass(frozen=True)
class OfSkew:
    """log 2 Φ(h(w)), Eq. (15)."""

    vector: tuple[float, ...]

    def __call__(self, seen):
        (x, y), a = seen["w"], self.vector
        h = a[0] * x + a[1] * y + a[2] * x * y**2 + a[3] * x**2 * y + a[4] * x**3 + a[5] * y**3
        return jnp.log(2.0) + log_ndtr(h)


def _skew(which: str) -> Posed:
    vector = printed.SKEW_VECTORS[which]
    target = sum_of(each(OfSkew(vector), sees={"w": whole}), each(of_plane, sees={"w": whole}))
    return Posed(target, {"w": np.zeros(2)}, None, vector)


PROBLEMS: dict[str, Callable[[], Posed]] = {
    **{f"skew-{which}": (lambda which=which: _skew(which)) for which in printed.SKEW_VECTORS},
    **{dataset: (lambda dataset=dataset: _classification(dataset)) for dataset in printed.LOGISTIC_PROPOSED},
    "gaussian-process": _process,
    "seeds": _seeds,
    "epil": _epil,
    **{f"salamander-{n}": (lambda n=n: _salamander(n)) for n in (1, 2, 3)},
    "verbagg": _verbal_aggression,
    "sleepstudy": _sleepstudy,
}
