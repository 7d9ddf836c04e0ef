"""Sec. 3.3, Table 1: logistic regression on radial basis functions, against Jaakkola and Jordan, Laplace, and the truth.

The truth for this model class is the best Gaussian of all, found with one-dimensional quadrature per data point. The
same quadrature gives the true bound of every method's Gaussian, so the methods can be compared on one scale.
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from quenched.baselines import laplace
from quenched.draws import iid
from quenched.fitting import Alternating, Joint, fit
from quenched.paper.datasets import partition as load_partition
from quenched.paper.experiments import printed
from quenched.paper.experiments.experiment import Experiment, Section, results
from quenched.paper.experiments.features import radial_basis
from quenched.paper.experiments.gains import gains
from quenched.paper.experiments.records import Record, beside, by_method, shown, summarise
from quenched.paper.experiments.tasks import Outcome, Task
from quenched.paper.rivals import LogisticPosterior, best_gaussian, jaakkola_jordan, logistic_bound
from quenched.report import Markup, table
from quenched.results import Fit
from quenched.targets import with_gaussian_prior

_WIDTH = 0.5
_SAMPLES = 200
_PAPER_DRAWS = 200
_PAPER_ROUNDS = 200
_PAPER_CENTRES = 100
_METHODS = {"frozen": "frozen draws", "jaakkola": "Jaakkola–Jordan", "laplace": "Laplace", "truth": "best Gaussian"}
_METRICS = ("accuracy", "sample_accuracy", "test_log_likelihood", "bound", "true_bound", "seconds", "evaluations")


def log_likelihood(weights, data):
    """Σ y log σ(φᵀw) + (1 − y) log(1 − σ(φᵀw))."""
    features, labels = data
    scores = features @ weights
    return jnp.sum(labels * scores - jnp.logaddexp(0.0, scores))


def run(dataset: str, partition: int, mode: str, max_rounds: int = _PAPER_ROUNDS) -> dict[str, Any]:
    """All methods on one partition, on the same features."""
    part = load_partition(dataset, partition + 1)
    centres = _centres(part.train_features, mode, seed=partition)
    train, test = (radial_basis(x, centres, _WIDTH) for x in (part.train_features, part.test_features))
    labels = part.train_labels.astype(float)
    answers = {
        "frozen": _frozen(train, labels, mode, partition, max_rounds),
        "jaakkola": _timed(jaakkola_jordan, train, labels),
        "laplace": _laplace(train, labels),
        "truth": _timed(best_gaussian, train, labels),
    }
    for answer in answers.values():
        mean, covariance = np.array(answer.pop("mean")), np.array(answer.pop("covariance"))
        answer["true_bound"] = logistic_bound(mean, covariance, train, labels, answer["prior_precision"])
        answer.update(_predictions(mean, covariance, test, part.test_labels))
    return {"methods": answers, "n_weights": train.shape[1], "origin": part.origin}


def _centres(inputs: np.ndarray, mode: str, seed: int) -> np.ndarray:
    """All distinct training points, or in paper mode a seeded subset that 200 iid draws can serve."""
    distinct = np.unique(inputs, axis=0)
    if mode == "default" or len(distinct) <= _PAPER_CENTRES:
        return distinct
    return np.random.default_rng(seed).choice(distinct, _PAPER_CENTRES, replace=False)


def _frozen(features: np.ndarray, labels: np.ndarray, mode: str, seed: int, max_rounds: int) -> dict[str, Any]:
    dim = features.shape[1]
    options: dict[str, Any] = {"draws": 2 * dim, "method": Joint()}
    if mode == "paper":
        options = {"draws": iid(_PAPER_DRAWS, dim, seed), "method": Alternating(max_rounds=max_rounds)}
    return _of_fit(fit, features, labels, seed=seed, **options)


def _laplace(features: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    return _of_fit(laplace, features, labels, draws=2 * features.shape[1])


def _of_fit(using: Callable[..., Fit], features: np.ndarray, labels: np.ndarray, **options: Any) -> dict[str, Any]:
    target, start = with_gaussian_prior(log_likelihood), np.zeros(features.shape[1])
    fitted = using(target, start, data=(features, labels), throw=False, progress=False, **options)
    return {
        "mean": fitted.posterior.mean,
        "covariance": fitted.covariance,
        "prior_precision": fitted.hyper["prior_precision"],
        "bound": fitted.bound,
        "seconds": fitted.seconds,
        "evaluations": fitted.n_evaluations,
        "status": str(fitted.status),
    }


def _timed(compute: Callable[..., LogisticPosterior], features: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    began = time.perf_counter()
    answer = compute(features, labels)
    return {
        "mean": answer.mean,
        "covariance": answer.covariance,
        "prior_precision": answer.prior_precision,
        "bound": answer.bound,
        "seconds": time.perf_counter() - began,
        "evaluations": None,
        "status": "converged" if answer.converged else "not converged",
    }


def _predictions(
    mean: np.ndarray, covariance: np.ndarray, features: np.ndarray, labels: np.ndarray
) -> dict[str, float]:
    """Accuracy of the averaged probability, mean accuracy of single samples, and the test log likelihood."""
    values, vectors = np.linalg.eigh(covariance)
    normal = np.random.default_rng(1).standard_normal((_SAMPLES, len(mean)))
    weights = mean + normal @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    scores = features @ weights.T
    probability = np.mean(expit(scores), axis=1)
    right = np.where(labels > 0, probability, 1.0 - probability)
    return {
        "accuracy": float(np.mean((probability > 0.5) == (labels > 0))),
        "sample_accuracy": float(np.mean((scores > 0) == (labels[:, None] > 0))),
        "test_log_likelihood": float(np.mean(np.log(np.maximum(right, 1e-12)))),
    }


def _tasks(full: bool) -> list[Task]:
    counts = {"default": 10 if full else 2, "paper": 10 if full else 1}
    rounds = _PAPER_ROUNDS if full else 20
    chosen = []
    for mode, count in counts.items():
        for dataset in printed.LOGISTIC_PROPOSED:
            for partition in range(count):
                arguments = {"dataset": dataset, "partition": partition, "mode": mode}
                if mode == "paper":
                    arguments["max_rounds"] = rounds
                name = f"{dataset}-{partition}-{mode}" + (f"-{rounds}" if mode == "paper" else "")
                chosen.append(Task("logistic", name, f"{__name__}:run", arguments, cost=3.0))
    return chosen


def _records(outcomes: Sequence[Outcome]) -> list[Record]:
    rows = []
    for dataset in printed.LOGISTIC_PROPOSED:
        for mode in ("paper", "default"):
            found = results(outcomes, dataset=dataset, mode=mode)
            for key, method in _METHODS.items():
                for metric in _METRICS:
                    values = [r["methods"][key][metric] for r in found if r["methods"][key][metric] is not None]
                    if values:
                        theirs = _paper_value(dataset, key) if metric == "accuracy" else None
                        rows.append(summarise("logistic", dataset, mode, method, metric, values, theirs))
    return rows


def _paper_value(dataset: str, key: str) -> tuple[float, float] | None:
    return {"frozen": printed.LOGISTIC_PROPOSED, "jaakkola": printed.LOGISTIC_JAAKKOLA}.get(key, {}).get(dataset)


def _sections(outcomes: Sequence[Outcome], records: Sequence[Record]) -> list[Section]:
    parts = [
        _setting(outcomes),
        _accuracies(outcomes, records),
        "The bound that each method reports, and the true bound of its Gaussian (quadrature, at its own prior "
        "precision): the best Gaussian is the ceiling.",
        _bounds(records),
        "What the default mode gains over the paper's, with frozen draws: how many times more work the paper's mode "
        "takes, and by how much the default's bound and accuracy are higher. The weights differ where the centres do.",
        gains(records, ("frozen draws", "frozen draws")),
    ]
    return [("Logistic regression (Sec. 3.3, Table 1)", parts)]


def _setting(outcomes: Sequence[Outcome]) -> str:
    origins = _collected({result["origin"] for result in results(outcomes)})
    return (
        f"Radial basis functions of width {_WIDTH} and a bias, prior precision learned. The paper does not say how "
        "many centres it used. In default mode every distinct training point is one; in paper mode "
        f"(iid draws, S = {_PAPER_DRAWS}, Algorithm 1 with scaled conjugate gradients) a seeded subset of at most "
        f"{_PAPER_CENTRES}, since fewer draws than weights leave directions at the prior. Accuracy is that of the "
        f"probability averaged over {_SAMPLES} posterior samples; the next column is the mean accuracy of single "
        f"samples. Algorithm 1 stops after at most {_PAPER_ROUNDS} rounds (20 in a quick run). Partitions: "
        + "; ".join(origins).rstrip(".")
        + "."
    )


def _accuracies(outcomes: Sequence[Outcome], records: Sequence[Record]) -> Markup:
    rows = []
    for (dataset, mode, method), cell in by_method(records).items():
        n_weights = results(outcomes, dataset=dataset, mode=mode)[0]["n_weights"]
        accuracy, single, likelihood = (cell.get(metric) for metric in _METRICS[:3])
        rows.append(
            (
                dataset,
                mode,
                method,
                n_weights,
                shown(accuracy),
                beside(accuracy),
                shown(single, 3),
                shown(likelihood, 3),
            )
        )
    columns = ["dataset", "mode", "method", "weights", "accuracy", "paper", "single samples", "test log likelihood"]
    return table(columns, rows)


def _bounds(records: Sequence[Record]) -> Markup:
    digits = {"bound": 2, "true_bound": 2, "seconds": 2, "evaluations": 0}
    rows = [
        (*group, *(shown(cell.get(metric), n) for metric, n in digits.items()))
        for group, cell in by_method(records).items()
    ]
    return table(["dataset", "mode", "method", "own bound", "true bound", "seconds", "gradient evaluations"], rows)


def _collected(origins: Iterable[str]) -> list[str]:
    """Origins that differ by a number in one phrase: "partition 1, 2, 3 of 100 of ..."."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for origin in origins:
        before, number, after = re.split(r"(\d+)", origin, maxsplit=1)
        numbers.setdefault((before, after), []).append(int(number))
    return sorted(before + ", ".join(map(str, sorted(found))) + after for (before, after), found in numbers.items())


logistic = Experiment("logistic", "Logistic regression", _tasks, _records, _sections)
