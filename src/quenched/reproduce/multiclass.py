"""Sec. 3.4, Table 2: softmax classification with one independent Gaussian per class, against mRVM2."""

import time
from collections.abc import Sequence
from typing import Any

import jax.nn
import jax.numpy as jnp
import numpy as np

import quenched as qd
from quenched import datasets
from quenched.baselines.multiclass_rvm import fit_multiclass_rvm
from quenched.report import table
from quenched.reproduce import paper
from quenched.reproduce.experiment import Experiment, Section, results
from quenched.reproduce.features import kernel, kernel_features, standardise
from quenched.reproduce.gains import gains
from quenched.reproduce.records import Record, pair, shown, summarise
from quenched.reproduce.tasks import Outcome, Task

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
    from sklearn.model_selection import StratifiedKFold

    loaded = datasets.load(dataset)
    splitter = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    train, test = list(_quietly_split(splitter, loaded.features, loaded.labels))[fold]
    inputs, test_inputs = standardise(loaded.features[train], loaded.features[test])
    labels, truth = loaded.labels[train], loaded.labels[test]
    kind, n_classes = paper.MULTICLASS_KERNELS[dataset], len(loaded.classes)
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


def _quietly_split(splitter, features: np.ndarray, labels: np.ndarray):
    import warnings

    with warnings.catch_warnings():  # two classes of Ecoli have two members each
        warnings.simplefilter("ignore", UserWarning)
        yield from splitter.split(features, labels)


def _relevance(kind: str, inputs, test_inputs, labels, n_classes: int) -> dict[str, Any]:
    machine = fit_multiclass_rvm(kernel(kind, inputs, inputs), labels, n_classes=n_classes)
    return {
        "probability": machine.predict_probability(kernel(kind, test_inputs, inputs)),
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
    method: Any = qd.Joint(gradient_tolerance=1e-3)
    if mode == "paper":
        draws, method = qd.iid(_PAPER_DRAWS, dim, seed), qd.Alternating(max_rounds=max_rounds)
    import warnings

    with warnings.catch_warnings():  # the paper's S is below the number of weights: the gap in the report shows it
        warnings.simplefilter("ignore", UserWarning)
        fit = qd.fit(
            qd.with_gaussian_prior(log_likelihood),
            np.zeros((n_classes, n_weights)),
            data=(features, np.eye(n_classes)[labels]),
            family=qd.Blocks([n_weights] * n_classes),
            draws=draws,
            method=method,
            seed=seed,
            throw=False,
            progress=False,
        )
    weights = fit.sample(_SAMPLES, seed=1)
    scores = np.einsum("scm,nm->snc", weights, test_features)
    scores -= scores.max(axis=-1, keepdims=True)
    probability = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    return {
        "probability": probability.mean(axis=0),
        "relevance_vectors": None,
        "evaluations": fit.n_evaluations,
        "gap": fit.gap,
        "n_weights": dim,
        "status": str(fit.status),
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
    for dataset in paper.MULTICLASS_KERNELS:
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
                chosen.append(Task("multiclass", name, "quenched.reproduce.multiclass:run", arguments, cost))
    return chosen


def _records(outcomes: Sequence[Outcome]) -> list[Record]:
    rows = []
    for dataset in paper.MULTICLASS_KERNELS:
        for mode, method in _MODES.items():
            found = results(outcomes, dataset=dataset, mode=mode)
            theirs = (paper.MULTICLASS_RVM if mode == "rvm" else paper.MULTICLASS_PROPOSED)[dataset]
            for metric in _METRICS:
                values = [r[metric] for r in found if r.get(metric) is not None]
                if values:
                    label = "default" if mode == "rvm" else mode
                    beside = theirs if metric == "accuracy" else None
                    rows.append(summarise("multiclass", dataset, label, method, metric, values, beside))
    return rows


def _sections(outcomes: Sequence[Outcome]) -> list[Section]:
    records = _records(outcomes)
    rows = []
    for dataset, kind in paper.MULTICLASS_KERNELS.items():
        for method in _MODES.values():
            cells = {r.metric: r for r in records if r.dataset == dataset and r.method == method}
            accuracy = cells.get("accuracy")
            if accuracy is None or accuracy.paper_value is None:
                continue
            rows.append(
                (dataset, kind, method, shown(accuracy, 3), pair(accuracy.paper_value, accuracy.paper_spread, 3))
                + (shown(cells.get("test_log_likelihood"), 3), shown(cells.get("seconds"), 2))
                + (shown(cells.get("evaluations"), 0), shown(cells.get("gap"), 1))
                + (shown(cells.get("relevance_vectors"), 1), accuracy.repetitions)
            )
    columns = ["dataset", "kernel", "method", "accuracy", "paper", "test log likelihood", "seconds", "evaluations"]
    return [
        (
            "Multiclass classification (Sec. 3.4, Table 2)",
            [
                f"{_FOLDS}-fold cross-validation, stratified and seeded; features standardised on the training part. Softmax "
                "likelihood, one dense Gaussian per class, prior precision learned. Linear and quadratic kernels are written "
                f"out as features; Gaussian ones have at most {_MOST_CENTRES} training points as centres, and width "
                "1 / (number of features). The paper prints neither. In default mode the draws are matched across all "
                f"classes (2.4 per weight); in paper mode there are {_PAPER_DRAWS} iid ones, fewer than most of these models "
                "have weights, and the gap shows what that costs. " + _capped(results(outcomes, mode="paper")),
                "mRVM2 depends on the precision it starts from, which its formulas leave open; ours was chosen on five of "
                "these datasets, so its column is not blind.",
                table([*columns, "gap", "relevance vectors", "folds"], rows),
                "What the default mode gains over the paper's: how many times more work the paper's mode takes, and by how "
                "much the default's accuracy is higher (over the folds that each has run).",
                gains(records, (_MODES["paper"], _MODES["default"])),
            ],
        )
    ]


multiclass = Experiment("multiclass", "Multiclass classification", _tasks, _records, _sections)
