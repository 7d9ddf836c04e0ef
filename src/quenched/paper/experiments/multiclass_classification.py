"""Sec. 3.4, Table 2: softmax classification with one independent Gaussian per class, against mRVM2."""

import time
import warnings
from collections.abc import Sequence
from typing import Any

import jax.nn
import jax.numpy as jnp
import numpy as np
from scipy.special import softmax
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from quenched.draws import iid
from quenched.families import Blocks
from quenched.fitting import Alternating, Joint, fit
from quenched.models import fit_multiclass_rvm
from quenched.paper.datasets import load
from quenched.paper.experiments import printed
from quenched.paper.experiments.experiment import Experiment, Section, results
from quenched.paper.experiments.features import KERNELS, kernel_features
from quenched.paper.experiments.gains import gains
from quenched.paper.experiments.records import Record, beside, by_method, shown, summarise
from quenched.paper.experiments.tasks import Outcome, Task
from quenched.report import Markup, table
from quenched.targets import with_gaussian_prior

_FOLDS, _SAMPLES, _PAPER_DRAWS, _MOST_CENTRES = 10, 200, 200, 100
_QUICK_FOLDS = 5  # one where a fit takes long
_PAPER_ROUNDS = 30  # a round of Ecoli takes about 0.4 s
_METRICS = ("accuracy", "test_log_likelihood", "seconds", "evaluations", "relevance_vectors", "gap")


def log_likelihood(weights, data):
    """Σ log softmax(φᵀw)_class."""
    features, classes = data
    scores = features @ weights.T
    return jnp.sum(scores * classes) - jnp.sum(jax.nn.logsumexp(scores, axis=1))


def run(dataset: str, fold: int, mode: str, max_rounds: int = _PAPER_ROUNDS) -> dict[str, Any]:
    """One fold: frozen draws in one of the two modes, or mRVM2 (mode "rvm")."""
    loaded = load(dataset)
    with warnings.catch_warnings():  # two classes of Ecoli have two members each
        warnings.simplefilter("ignore", UserWarning)
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(loaded.features, loaded.labels)
        train, test = list(folds)[fold]
    scaler = StandardScaler().fit(loaded.features[train])
    inputs, test_inputs = (scaler.transform(loaded.features[rows]) for rows in (train, test))
    labels, truth = loaded.labels[train], loaded.labels[test]
    kind, n_classes = printed.MULTICLASS_KERNELS[dataset], len(loaded.classes)
    began = time.perf_counter()
    if mode == "rvm":
        answer = _relevance(kind, inputs, test_inputs, labels, n_classes)
    else:
        answer = _frozen(kind, inputs, test_inputs, labels, n_classes, mode, fold, max_rounds)
    probability = answer.pop("probability")
    right = probability[np.arange(len(truth)), truth]
    return {
        "accuracy": float(np.mean(np.argmax(probability, axis=1) == truth)),
        "test_log_likelihood": float(np.mean(np.log(np.maximum(right, 1e-12)))),
        "seconds": time.perf_counter() - began,
        **answer,
    }


def _relevance(kind: str, inputs, test_inputs, labels, n_classes: int) -> dict[str, Any]:
    machine = fit_multiclass_rvm(KERNELS[kind](inputs, inputs), labels, n_classes=n_classes)
    return {
        "probability": machine.predict_probability(KERNELS[kind](test_inputs, inputs)),
        "relevance_vectors": len(machine.relevance),
        "evaluations": None,
        "gap": None,
        "status": "converged" if machine.converged else "not converged",
    }


def _frozen(kind, inputs, test_inputs, labels, n_classes: int, mode: str, seed: int, max_rounds: int) -> dict[str, Any]:
    centres = inputs
    if kind == "gaussian" and len(inputs) > _MOST_CENTRES:
        centres = np.random.default_rng(seed).choice(inputs, _MOST_CENTRES, replace=False)
    features, test_features = (kernel_features(kind, x, centres) for x in (inputs, test_inputs))
    n_weights = features.shape[1]
    dim = n_classes * n_weights
    draws: Any = max(64, 2 * dim + dim // 5 * 2)
    method: Any = Joint(gradient_tolerance=1e-3)
    if mode == "paper":
        draws, method = iid(_PAPER_DRAWS, dim, seed), Alternating(max_rounds=max_rounds)
    with warnings.catch_warnings():  # the paper's S is below the number of weights: the gap in the report shows it
        warnings.simplefilter("ignore", UserWarning)
        fitted = fit(
            with_gaussian_prior(log_likelihood),
            np.zeros((n_classes, n_weights)),
            data=(features, np.eye(n_classes)[labels]),
            family=Blocks([n_weights] * n_classes),
            draws=draws,
            method=method,
            seed=seed,
            throw=False,
            progress=False,
        )
    scores = np.einsum("scm,nm->snc", fitted.sample(_SAMPLES, seed=1), test_features)
    return {
        "probability": softmax(scores, axis=-1).mean(axis=0),
        "relevance_vectors": None,
        "evaluations": fitted.n_evaluations,
        "gap": fitted.gap,
        "n_weights": dim,
        "status": str(fitted.status),
    }


def _capped(found: Sequence[dict[str, Any]]) -> str:
    """How many of the paper's runs ended at the limit of rounds."""
    ended = sum(result["status"] == "max_evaluations" for result in found)
    return (
        f"Algorithm 1 stops after at most {_PAPER_ROUNDS} rounds (5 in a quick run); {ended} of {len(found)} runs did."
    )


_MODES = {"paper": "frozen draws, iid", "default": "frozen draws, matched", "rvm": "mRVM2"}


def _tasks(full: bool) -> list[Task]:
    chosen = []
    rounds = _PAPER_ROUNDS if full else 5
    for dataset in printed.MULTICLASS_KERNELS:
        large = dataset in ("ecoli", "vehicle", "glass")
        for mode in _MODES:
            quick = _QUICK_FOLDS if mode == "rvm" or (mode == "default" and not large) else 1
            folds = _FOLDS if full else quick
            for fold in range(folds):
                arguments = {"dataset": dataset, "fold": fold, "mode": mode}
                if mode == "paper":
                    arguments["max_rounds"] = rounds
                name = f"{dataset}-{fold}-{mode}" + (f"-{rounds}" if mode == "paper" else "")
                cost = 5.0 if large and mode != "rvm" else 1.0
                chosen.append(Task("multiclass", name, f"{__name__}:run", arguments, cost))
    return chosen


def _records(outcomes: Sequence[Outcome]) -> list[Record]:
    rows = []
    for dataset in printed.MULTICLASS_KERNELS:
        for mode, method in _MODES.items():
            found = results(outcomes, dataset=dataset, mode=mode)
            theirs = (printed.MULTICLASS_RVM if mode == "rvm" else printed.MULTICLASS_PROPOSED)[dataset]
            for metric in _METRICS:
                values = [r[metric] for r in found if r.get(metric) is not None]
                if values:
                    label = "default" if mode == "rvm" else mode
                    beside = theirs if metric == "accuracy" else None
                    rows.append(summarise("multiclass", dataset, label, method, metric, values, beside))
    return rows


def _sections(outcomes: Sequence[Outcome], records: Sequence[Record]) -> list[Section]:
    parts = [
        f"{_FOLDS}-fold cross-validation, stratified and seeded; features standardised on the training part. Softmax "
        "likelihood, one dense Gaussian per class, prior precision learned. Linear and quadratic kernels are written "
        f"out as features; Gaussian ones have at most {_MOST_CENTRES} training points as centres, and width "
        "1 / (number of features). The paper prints neither. In default mode the draws are matched across all "
        f"classes (2.4 per weight); in paper mode there are {_PAPER_DRAWS} iid ones, fewer than most of these models "
        "have weights, and the gap shows what that costs. " + _capped(results(outcomes, mode="paper")),
        "mRVM2 depends on the precision it starts from, which its formulas leave open; ours was chosen on five of "
        "these datasets, so its column is not blind.",
        _accuracies(records),
        "What the default mode gains over the paper's: how many times more work the paper's mode takes, and by how "
        "much the default's accuracy is higher (over the folds that each has run).",
        gains(records, (_MODES["paper"], _MODES["default"])),
    ]
    return [("Multiclass classification (Sec. 3.4, Table 2)", parts)]


def _accuracies(records: Sequence[Record]) -> Markup:
    digits = {"test_log_likelihood": 3, "seconds": 2, "evaluations": 0, "gap": 1, "relevance_vectors": 1}
    rows = []
    for (dataset, _, method), cell in by_method(records).items():
        accuracy = cell["accuracy"]
        measures = (shown(cell.get(metric), n) for metric, n in digits.items())
        kind = printed.MULTICLASS_KERNELS[dataset]
        rows.append((dataset, kind, method, shown(accuracy, 3), beside(accuracy, 3), *measures, accuracy.repetitions))
    columns = ["dataset", "kernel", "method", "accuracy", "paper", "test log likelihood", "seconds", "evaluations"]
    return table([*columns, "gap", "relevance vectors", "folds"], rows)


multiclass = Experiment("multiclass", "Multiclass classification", _tasks, _records, _sections)
