"""The estimators of linear predictors beside scikit-learn's: how long they take, and what their probabilities are worth.

    python benchmarks/estimators.py speed
    QUENCHED_DATA=... python benchmarks/estimators.py calibration [--figure docs/estimators_reliability.png]

Speed: 10,000 rows of 100 features, all in turns, medians over repetitions in one run. Calibration: the paper's data sets and
features, the same for all; probabilities that integrate over the posterior beside those of one set of weights.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.linear_model import BayesianRidge, LogisticRegressionCV
from sklearn.linear_model import LogisticRegression as PlugIn
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from quenched.models import LinearRegression, LogisticRegression
from quenched.paper.datasets import load, partition
from quenched.paper.experiments.features import kernel_features, radial_basis
from quenched.paper.experiments.printed import LOGISTIC_PROPOSED, MULTICLASS_KERNELS

REPETITIONS = 15
CENTRES = 100
BINS = 10


def speed() -> None:
    random = np.random.default_rng(5)
    features, weights = random.normal(size=(10_000, 100)), 0.3 * random.normal(size=100)
    predictors = features @ weights
    labels = (random.uniform(size=10_000) < 1 / (1 + np.exp(-predictors))).astype(int)
    targets = predictors + random.normal(size=10_000)
    estimators = {
        "scikit-learn LogisticRegression": (PlugIn(), labels),
        "quenched LogisticRegression": (LogisticRegression(), labels),
        "scikit-learn BayesianRidge": (BayesianRidge(), targets),
        "quenched LinearRegression": (LinearRegression(), targets),
    }
    wall, processor = {name: [] for name in estimators}, {name: [] for name in estimators}
    for _ in range(REPETITIONS + 1):
        for name, (estimator, y) in estimators.items():
            began, worked = time.perf_counter(), time.process_time()
            estimator.fit(features, y)
            wall[name].append(time.perf_counter() - began)
            processor[name].append(time.process_time() - worked)
    print("| estimator | wall ms | processor ms |\n|---|---|---|")
    for name in estimators:  # the first of each is warming up
        print(f"| {name} | {1e3 * np.median(wall[name][1:]):.0f} | {1e3 * np.median(processor[name][1:]):.0f} |")
    for ours, theirs in (tuple(estimators)[1::-1], tuple(estimators)[3:1:-1]):
        ratios = [np.median(times[ours][1:]) / np.median(times[theirs][1:]) for times in (wall, processor)]
        print(f"{ours} / {theirs}: {ratios[0]:.2f} (wall), {ratios[1]:.2f} (processor)")


def rivals(n_classes: int):
    """Name to estimator; ours twice, once with the weights held at their posterior mean."""
    return {
        "integrated": LogisticRegression(),
        "plug-in, C = 1": PlugIn(max_iter=2000),
        "plug-in, C by cross-validation": LogisticRegressionCV(Cs=7, cv=5, scoring="neg_log_loss", max_iter=2000),
    }


def splits(n_splits: int, datasets: list[str] | None):
    """Name of the data set, training features and labels, test features and labels."""
    for name in LOGISTIC_PROPOSED:
        if datasets and name not in datasets:
            continue
        for number in range(n_splits):
            part = partition(name, number + 1)
            centres = np.unique(part.train_features, axis=0)[:: max(1, len(part.train_features) // CENTRES)]
            train, test = (radial_basis(x, centres, 0.5)[:, :-1] for x in (part.train_features, part.test_features))
            yield name, train, part.train_labels > 0, test, part.test_labels > 0
    for name, kind in MULTICLASS_KERNELS.items():
        if datasets and name not in datasets:
            continue
        loaded = load(name)
        kept = np.isin(loaded.labels, np.flatnonzero(np.bincount(loaded.labels) >= 10))  # enough to be in every fold
        inputs, labels = loaded.features[kept], loaded.labels[kept]
        folds = StratifiedKFold(10, shuffle=True, random_state=0).split(inputs, labels)
        for _, (train, test) in zip(range(n_splits), folds, strict=False):
            scaler = StandardScaler().fit(inputs[train])
            known, new = scaler.transform(inputs[train]), scaler.transform(inputs[test])
            centres = known[:: max(1, len(known) // CENTRES)]
            make = lambda x: kernel_features(kind, x, centres)[:, :-1]  # noqa: B023
            yield name, make(known), labels[train], make(new), labels[test]


def calibration(n_splits: int, figure: str | None, datasets: list[str] | None) -> None:
    names, found, pooled = [], {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, train, labels, test, truth in splits(n_splits, datasets):
            for method, estimator in rivals(len(np.unique(labels))).items():
                began = time.perf_counter()
                probability = estimator.fit(train, labels).predict_proba(test)
                seconds = time.perf_counter() - began
                place = np.searchsorted(estimator.classes_, truth)
                own = probability[np.arange(len(truth)), place]
                squares = np.sum((probability - np.eye(len(estimator.classes_))[place]) ** 2, axis=1)
                found.setdefault((name, method), []).append(
                    (
                        np.mean(-np.log(np.maximum(own, 1e-15))),
                        np.mean(squares),
                        np.mean(np.argmax(probability, axis=1) != place),
                        seconds,
                    )
                )
                confident = np.column_stack([probability.max(axis=1), np.argmax(probability, axis=1) == place])
                pooled.setdefault(method, []).append(confident)
            names.append(name)
    print("| data set | method | log loss | Brier score | error | seconds |\n|---|---|---|---|---|---|")
    for (name, method), rows in found.items():
        mean = np.mean(rows, axis=0)
        print(f"| {name} | {method} | {mean[0]:.3f} | {mean[1]:.3f} | {mean[2]:.3f} | {mean[3]:.2f} |")
    curves = {method: reliability(np.concatenate(parts)) for method, parts in pooled.items()}
    for method, (centres, shares, counts) in curves.items():
        off = np.sum(counts * np.abs(shares - centres)) / np.sum(counts)
        print(f"{method}: expected calibration error {off:.3f} over {int(np.sum(counts))} test rows")
    if figure is not None:
        draw(curves, figure)


def reliability(confident: np.ndarray):
    """Mean probability of the class that was predicted, share that were right, and how many, by bins of the first."""
    which = np.minimum((confident[:, 0] * BINS).astype(int), BINS - 1)
    used = [np.flatnonzero(which == place) for place in range(BINS)]
    used = [rows for rows in used if len(rows) >= 20]
    means = np.array([confident[rows].mean(axis=0) for rows in used])
    return means[:, 0], means[:, 1], np.array([len(rows) for rows in used])


def draw(curves, path: str) -> None:
    from quenched.plots import BLUE, GREEN, GREY, ORANGE, dress, new_figure

    figure = new_figure(4.6, 4.2)
    axes = figure.subplots()
    axes.plot([0.2, 1], [0.2, 1], color=GREY, lw=0.8)
    styles = zip(curves.items(), ((BLUE, "-"), (ORANGE, "--"), (GREEN, ":")), strict=True)
    for (method, (centres, shares, _)), (colour, dash) in styles:
        axes.plot(centres, shares, dash, color=colour, marker="o", ms=3.5, label=method)
    dress(
        axes,
        title="Reliability on the paper's data sets",
        xlabel="probability of the predicted class",
        ylabel="share that is right",
    )
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=160)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "calibration"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--datasets", nargs="*", help="some of them; all by default")
    parser.add_argument("--figure")
    asked = parser.parse_args()
    if asked.what == "speed":
        speed()
    else:
        calibration(asked.splits, asked.figure, asked.datasets)
